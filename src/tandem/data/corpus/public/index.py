"""Everything that mtdata knows: its index as a text file in the cache, made once a version of mtdata."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path

from tandem.data.corpus.public.entry import Archive, Form, Part, PublicCorpus, Split
from tandem.data.corpus.public.unpack import require_mtdata
from tandem.errors import TandemError
from tandem.files import explaining_full_disk
from tandem.progress import SILENT, Progress

__all__ = ["IndexEntry", "find_indexed", "read_index", "search_index"]

IndexEntry = Mapping[str, object]
"""One line of mtdata's index: did (its id), url, ext, in_paths, in_ext, cols."""

_FORMS: Mapping[str, Form] = {"txt": "txt", "raw": "txt", "tsv": "tsv", "sgm": "sgm", "wmt21xml": "wmt21xml"}


def read_index(cache: Path, progress: Progress = SILENT) -> Iterator[str]:
    """Yield the index line by line, as JSON."""
    try:
        version = metadata.version("mtdata")
    except metadata.PackageNotFoundError:
        raise TandemError(
            "The whole index needs the library mtdata: pip install 'tandem-nmt[corpora]'"
        ) from None
    path = cache / "mtdata" / f"index-{version}.jsonl"
    if not path.exists():
        progress.say("making mtdata's index of all public corpora, once (about 10 s)")
        with explaining_full_disk(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            _make_index(path)
    with path.open(encoding="utf-8") as lines:
        yield from lines


def _make_index(path: Path) -> None:
    # Importing mtdata's index runs any mtdata*.py of the working folder and loads a pickle from its cache:
    # in another process, in an empty folder of our own, neither can be somebody else's. All that it makes stays, so
    # that looking for garbage would only double the time.
    with tempfile.TemporaryDirectory(dir=path.parent, prefix="making-") as scratch:
        done = subprocess.run(
            [sys.executable, "-P", "-c", "import gc; gc.disable(); import mtdata.index"],
            cwd=scratch,
            env={**os.environ, "MTDATA": scratch},
            capture_output=True,
            text=True,
            check=False,
        )
        made = list(Path(scratch).glob("mtdata.index.*.jsonl"))
        if done.returncode or len(made) != 1:
            last = (done.stderr.strip() or "no reason given").splitlines()[-1]
            raise TandemError(
                f"mtdata could not make its index ({last}): install the version that Tandem is tested with."
            )
        made[0].replace(path)


def search_index(
    cache: Path,
    words: Sequence[str],
    *,
    languages: tuple[str, str] | None = None,
    progress: Progress = SILENT,
) -> Iterator[IndexEntry]:
    """Yield the bilingual corpora whose id holds all `words`, in `languages` either way round."""
    wanted = [word.casefold() for word in words]
    codes = {_to_long(code) for code in languages} if languages else None
    for line in read_index(cache, progress):
        entry = json.loads(line)
        did = entry["did"]
        pair = did.split("-")[3:]
        if (
            len(pair) == 2
            and all(word in did.casefold() for word in wanted)
            and (codes is None or set(pair) == codes)
        ):
            yield entry


def find_indexed(
    name: str, cache: Path, *, languages: tuple[str, str] | None = None, progress: Progress = SILENT
) -> PublicCorpus:
    """Return the corpus with mtdata's id `name`, such as OPUS-tatoeba-v20230412-deu-eng."""
    start = f'{{"did": {json.dumps(name)},'
    for line in read_index(cache, progress):
        if line.startswith(start):
            return _build(json.loads(line), languages)
    raise TandemError(
        f"mtdata has no corpus {name!r}: look for it with `tandem data list --all` and a word of its name."
    )


def _to_long(code: str) -> str:
    with require_mtdata():
        from mtdata.iso.bcp47 import bcp47  # noqa: PLC0415 - an extra, which only the whole index needs

    try:
        return str(bcp47(code))
    except ValueError:
        raise TandemError(
            f"{code!r} is not a language code that mtdata knows: write it as en, de or pt_BR."
        ) from None


def _to_short(code: str) -> str:
    from mtdata.iso.iso639_1 import ISO693_1_to_3  # noqa: PLC0415

    return next((short for short, long in ISO693_1_to_3.items() if long == code), code)


def _build(entry: IndexEntry, wanted: tuple[str, str] | None) -> PublicCorpus:
    did = str(entry["did"])
    match entry:
        case {"url": str(url)}:
            urls = [url]
        case {"url": [str(left), str(right)]}:
            urls = [left, right]
        case _:
            urls = []
    _, name, _, *codes = did.split("-")
    kind = str(entry.get("in_ext") or entry["ext"])
    form = _maybe_form(kind)
    members = tuple(_strings(entry.get("in_paths")))
    one_side_each = form in {"txt", "sgm"}
    if form is None or len(set(codes)) != 2 or one_side_each != (len(members or urls) == 2):
        raise TandemError(
            f"{did} is in a form that Tandem does not read ({kind}): fetch it with mtdata itself, "
            f"`mtdata get -l {'-'.join(codes)} -tr {did} -o FOLDER`."
        )
    with require_mtdata():
        languages = (_to_short(codes[0]), _to_short(codes[1]))
    if wanted and set(wanted) != set(languages):
        raise TandemError(
            f"{did} is in {'-'.join(languages)}, not in {'-'.join(wanted)}: leave --languages out."
        )
    part = Part(
        name=did,
        split=_guess_split(name),
        languages=languages,
        archives=tuple(Archive(url=url) for url in urls),
        members=members,
        form=form,
        columns=_read_columns(entry.get("cols")),
    )
    return PublicCorpus(
        name=did,
        folder=did,
        summary="from mtdata's index",
        licence="unknown: see its publisher",
        languages=wanted or languages,
        parts=(part,),
    )


def _maybe_form(ext: str) -> Form | None:
    return next((form for kind, form in _FORMS.items() if kind in ext.split(".")), None)


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, list):
        yield from (str(item) for item in value)


def _read_columns(value: object) -> tuple[int, int]:
    match value:
        case [int(left), int(right)]:
            return left, right
    return 0, 1


def _guess_split(name: str) -> Split:
    if "test" in name:
        return "test"
    return "valid" if "dev" in name else "train"
