"""Runs that other tools trained, read from the files they left into a run folder like any other."""

from tandem.observe.imports.imported import Imported
from tandem.observe.imports.observed import Observed, read_bits_per_s, read_bytes_per_s, read_share
from tandem.observe.imports.openseq2seq import import_openseq2seq
from tandem.observe.imports.tensorboard import import_tensorboard

__all__ = [
    "Imported",
    "Observed",
    "import_openseq2seq",
    "import_tensorboard",
    "read_bits_per_s",
    "read_bytes_per_s",
    "read_share",
]
