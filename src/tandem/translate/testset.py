"""Standard test sets by name, as sacreBLEU keeps them: read from its cache, and fetched where they are not there."""

from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

from sacrebleu import DATASETS
from sacrebleu.utils import get_langpairs_for_testset, get_reference_files, get_source_file

from tandem.errors import TandemError

__all__ = ["TestSet", "read_test_set"]

SHOWN = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class TestSet:
    """Sentences to translate, and how people did."""

    __test__ = False  # not a test, whatever pytest thinks of the name

    source: Sequence[str]
    references: Sequence[Sequence[str]]


def read_test_set(name: str, pair: str) -> TestSet:
    """The test set of that name (`wmt14`) in two languages (`en-de`)."""
    known = [held for held in DATASETS if pair in get_langpairs_for_testset(held)]
    if not known:
        raise TandemError(f"sacreBLEU has no test set for {pair!r}: write two languages as en-de.")
    if name not in known:
        what = "is no test set of sacreBLEU" if name not in DATASETS else f"has no {pair}"
        shown = ", ".join(sorted(known)[-SHOWN:])
        raise TandemError(f"{name} {what}: take one that has {pair}, such as {shown}.")
    try:
        with redirect_stdout(StringIO()):  # it tells of its downloads where translations may be printed
            source = get_source_file(name, pair)
            references = get_reference_files(name, pair)
    except (OSError, SystemExit) as error:
        raise TandemError(
            f"The test set {name} is not in sacreBLEU's cache and cannot be fetched ({_reason(error)}): fetch it where "
            f"there is a network with sacrebleu -t {name} -l {pair} --echo src, and copy the folder ~/.sacrebleu."
        ) from error
    return TestSet(source=_lines(source), references=[_lines(path) for path in references])


def _reason(error: BaseException) -> str:
    return str(error) if isinstance(error, OSError) else "the download is damaged"


def _lines(path: str) -> list[str]:
    return Path(path).read_text(encoding="utf-8").removesuffix("\n").split("\n")
