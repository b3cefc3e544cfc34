"""Which files a corpus is made of, and what is in them by checksum."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from tandem.artefact import write_atomic
from tandem.config import Corpus
from tandem.errors import TandemError
from tandem.files import read_json
from tandem.progress import SILENT, Progress

__all__ = ["CorpusFiles", "TextFiles", "checksums", "find_files"]

COMPRESSIONS = ("", ".gz", ".xz", ".bz2", ".zst")


@dataclass(frozen=True, slots=True, kw_only=True)
class TextFiles:
    """One aligned piece of text: two files line by line, or (target None) one file with tabs."""

    source: Path
    target: Path | None

    @property
    def paths(self) -> tuple[Path, ...]:
        """Both files, or the one."""
        return (self.source,) if self.target is None else (self.source, self.target)


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusFiles:
    """A corpus of the recipe with its files found. The built-in corpus has none."""

    corpus: Corpus
    name: str
    texts: Sequence[TextFiles]

    @property
    def paths(self) -> list[Path]:
        """Every file, in reading order."""
        return [path for text in self.texts for path in text.paths]


def find_files(corpus: Corpus, *, languages: tuple[str, str]) -> CorpusFiles:
    """Find the corpus's files; TandemError where one is missing or has no partner."""
    texts: list[TextFiles]
    if corpus.builtin is not None:
        texts = []
    elif corpus.tsv is not None:
        texts = [TextFiles(source=corpus.tsv, target=None)]
    elif corpus.folder is not None:
        texts = _folder_files(corpus.folder, languages)
    else:
        assert corpus.source is not None
        texts = [TextFiles(source=corpus.source, target=corpus.target)]
    for path in (path for text in texts for path in text.paths):
        if not path.is_file():
            raise TandemError(f"Corpus {corpus.label} has no file {path}; correct the path in the recipe.")
    return CorpusFiles(corpus=corpus, name=corpus.label, texts=texts)


def _folder_files(folder: Path, languages: tuple[str, str]) -> list[TextFiles]:
    if not folder.is_dir():
        raise TandemError(f"There is no folder {folder}; correct the path in the recipe.")
    source, target = (_stems(folder, language) for language in languages)
    lonely = sorted(source.keys() ^ target.keys())
    if lonely:
        raise TandemError(
            f"{folder} holds {lonely[0]} in only one of the languages {' and '.join(languages)}; "
            f"add the other side or name the files with source: and target:."
        )
    if not source:
        raise TandemError(
            f"{folder} holds no files that end in .{languages[0]} and .{languages[1]} "
            f"(plain or with {', '.join(COMPRESSIONS[1:])}); put the text there or correct data.source_language."
        )
    return [TextFiles(source=source[stem], target=target[stem]) for stem in sorted(source)]


def _stems(folder: Path, language: str) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for compression in COMPRESSIONS:
        ending = f".{language}{compression}"
        for path in sorted(
            path for path in folder.iterdir() if path.name.endswith(ending) and path.is_file()
        ):
            stem = path.name.removesuffix(ending)
            if stem in found:
                raise TandemError(
                    f"{folder} holds both {found[stem].name} and {path.name}; remove one of them."
                )
            found[stem] = path
    return found


def checksums(paths: Iterable[Path], *, cache: Path, progress: Progress = SILENT) -> dict[Path, str]:
    """sha256 of each file. `cache` remembers them, so that a file is read again only if its size or time changed."""
    known = _read_cache(cache)
    keys = {path: _stat_key(path) for path in paths}
    missing = [path for path, key in keys.items() if key not in known]
    if missing:
        total = sum(path.stat().st_size for path in missing)
        with progress.bar("checking files", total=total, unit="B") as bar:
            for path in missing:
                known[keys[path]] = _sha256(path, bar.advance)
        cache.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(cache, json.dumps(known, indent=1, sort_keys=True).encode())
    return {path: known[key] for path, key in keys.items()}


def _stat_key(path: Path) -> str:
    facts = path.stat()
    return f"{path.resolve()}|{facts.st_size}|{facts.st_mtime_ns}|{facts.st_ino}"


def _read_cache(cache: Path) -> dict[str, str]:
    try:
        return {str(key): str(value) for key, value in read_json(cache).items()}
    except (OSError, ValueError, AttributeError):
        return {}


def _sha256(path: Path, advance: Callable[[int], None]) -> str:
    digest = sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 22):
            digest.update(block)
            advance(len(block))
    return digest.hexdigest()
