"""The programs whose training is measured, one a file."""

import sys

from benchmarks.trainers.fairseq import FAIRSEQ
from benchmarks.trainers.joeynmt import JOEYNMT
from benchmarks.trainers.opennmt import OPENNMT
from benchmarks.trainers.tandem import RECIPE, TANDEM, TANDEM_RANKS
from benchmarks.trainers.trainer import Speed, Trainer, TrainJob

__all__ = ["PEERS", "RECIPE", "TANDEM", "TRAINERS", "Speed", "TrainJob", "Trainer"]

# fairseq 0.9.0 needs numpy below 1.24, which no later Python has.
PEERS = (OPENNMT, JOEYNMT, FAIRSEQ) if sys.version_info < (3, 12) else (OPENNMT, JOEYNMT)
TRAINERS = (TANDEM, TANDEM_RANKS, *PEERS)
