"""The data section: which text to learn from, which to watch and which to judge by."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from tandem.config.section import RecipePath, Section

__all__ = ["BuiltinCorpus", "Corpus", "DataSection", "Language"]

_COMPRESSED = {".gz", ".xz", ".bz2", ".zst"}
_WAYS = ("source", "target"), ("tsv",), ("folder",), ("builtin",)

Language = Annotated[str, Field(pattern=r"^[a-z]{2,3}([-_][A-Za-z0-9]+)*$", max_length=35)]
"""A language code such as `en` or `pt-BR`; it is also the ending of file names."""


class BuiltinCorpus(Section):
    """Sentence pairs made by the built-in English–German grammar; the recipe's seed decides which."""

    pairs: Annotated[int, Field(gt=0)]
    """How many sentence pairs to make."""

    split: Literal["train", "valid", "test"] = "train"
    """Which part of the grammar's sentences; the three parts share none."""


class Corpus(Section):
    """One body of text, named in exactly one way: `source` and `target`, `tsv`, `folder` or `builtin`."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": list(way)} for way in _WAYS]})

    source: RecipePath | None = None
    """File of source sentences, one a line; plain, .gz, .xz, .bz2 or .zst."""

    target: RecipePath | None = None
    """File of their translations, line by line."""

    tsv: RecipePath | None = None
    """File with source, a tab, and target on each line."""

    folder: RecipePath | None = None
    """Folder of file pairs named alike but for the language, as `news.en.gz` and `news.de.gz`; not its sub-folders."""

    builtin: BuiltinCorpus | None = None
    """Text made by the built-in grammar, for trying things out without a download."""

    name: Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f/:]+$", max_length=100)] | None = None
    """What reports call it, without slash or colon; by default named after the file or folder."""

    weight: Annotated[float, Field(gt=0, le=1000)] = 1.0
    """How many times an epoch sees each pair, on average; for training text only."""

    @property
    def label(self) -> str:
        """Return the name given, or the one derived from where the text is."""
        if self.name is not None:
            return self.name
        if file := self.source or self.tsv:
            return _stem(file)
        return self.folder.name if self.folder else "builtin"

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Yield what keeps the text from being named in exactly one way."""
        given = {key for way in _WAYS for key in way if getattr(self, key) is not None}
        if given not in [set(way) for way in _WAYS]:
            named = " and ".join(sorted(given)) or "none of them"
            yield (
                "",
                f"must name its text by source and target, or tsv, or folder, or builtin, but has {named}",
            )
        elif self.source is not None and self.source == self.target:
            yield "target", "is the same file as source; it must hold the translations"


class DataSection(Section):
    """Which text to learn from, which to watch while learning and which to judge by."""

    source_language: Language = "en"
    """Code of the language to translate from, such as `en` or `pt-BR`."""

    target_language: Language = "de"
    """Code of the language to translate into, such as `de` or `zh-Hans`."""

    folder: RecipePath | None = None
    """Where prepared data goes; by default `prepared/<name of the recipe>` in the current folder."""

    train: Annotated[tuple[Corpus, ...], Field(strict=False, min_length=1)]
    """The text to learn from: one corpus or several, each seen according to its weight."""

    valid: Corpus | None = None
    """The text to watch while training; it never trains the model."""

    test: Annotated[tuple[Corpus, ...], Field(strict=False)] = ()
    """The texts to judge the finished model by."""

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Yield languages, names, weights and splits that do not fit together."""
        if self.source_language == self.target_language:
            yield "target_language", f"is {self.target_language!r}, the same as source_language"
        yield from _repeated_names("train", self.train)
        yield from _repeated_names("test", self.test)
        for key, corpus in self._trained():
            yield from self._builtin_misused(key, corpus, splits=("train",))
        for key, corpus in self._held_out():
            yield from self._builtin_misused(key, corpus, splits=("valid", "test"))
            if corpus.weight != 1.0:
                yield f"{key}.weight", "means something for training text only; take it out"

    def _trained(self) -> Iterator[tuple[str, Corpus]]:
        for number, corpus in enumerate(self.train):
            yield f"train.{number}", corpus

    def _held_out(self) -> Iterator[tuple[str, Corpus]]:
        if self.valid is not None:
            yield "valid", self.valid
        for number, corpus in enumerate(self.test):
            yield f"test.{number}", corpus

    def _builtin_misused(
        self, key: str, corpus: Corpus, *, splits: tuple[str, ...]
    ) -> Iterator[tuple[str, str]]:
        if corpus.builtin is None:
            return
        if (self.source_language, self.target_language) != ("en", "de"):
            languages = f"{self.source_language} to {self.target_language}"
            yield f"{key}.builtin", f"is English to German, but the recipe is {languages}"
        if corpus.builtin.split not in splits:
            yield (
                f"{key}.builtin.split",
                f"is {corpus.builtin.split!r}, but must be {' or '.join(splits)} here",
            )


def _stem(file: Path) -> str:
    name = Path(file.stem) if file.suffix in _COMPRESSED else file
    return name.stem


def _repeated_names(key: str, corpora: tuple[Corpus, ...]) -> Iterator[tuple[str, str]]:
    seen: set[str] = set()
    for number, corpus in enumerate(corpora):
        if corpus.label in seen:
            yield f"{key}.{number}", f"is called {corpus.label!r} like one before it; give it another name"
        seen.add(corpus.label)
