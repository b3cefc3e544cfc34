"""From a recipe's raw text to shards: each stage is a folder, and only stale ones are made again."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from tandem.artefact import JsonValue, fingerprint, maybe_fresh, write_atomic
from tandem.config import Corpus, Recipe, recipe_yaml
from tandem.data.card import measure_card
from tandem.data.corpus import cleaned as clean_stage
from tandem.data.corpus import held_out as held_out_stage
from tandem.data.corpus.builtin import GRAMMAR_VERSION
from tandem.data.corpus.clean import Cleaner
from tandem.data.corpus.cleaned import CleanRules, clean_corpora
from tandem.data.corpus.files import CorpusFiles, checksums, find_files
from tandem.data.corpus.filters import HeldOutSentences
from tandem.data.corpus.held_out import held_out_sentences, keep_held_out
from tandem.data.corpus.read import CHUNK_BYTES, CHUNK_LINES
from tandem.data.corpus.tally import Tally
from tandem.data.encode import encode_corpora, encode_held_out
from tandem.data.prepared import Prepared
from tandem.data.shards.shardset import SHARDS_KIND, SHARDS_VERSION
from tandem.data.subword import learn as subword_stage
from tandem.data.subword.learn import Subword, learn_subword
from tandem.errors import TandemError
from tandem.files import make_folder, read_bounded
from tandem.lock import holding, unused
from tandem.progress import SILENT, Progress
from tandem.runlog.card import DataCard, write_card
from tandem.runlog.event import DataPrepared, StageFinished, StageStarted
from tandem.runlog.writer import NullLog, RunLog

__all__ = ["prepare"]

_HELD_OUT = (held_out_stage.KIND, held_out_stage.VERSION)
_CLEAN = (clean_stage.KIND, clean_stage.VERSION)
_SUBWORD = (subword_stage.KIND, subword_stage.VERSION)
_SHARDS = (SHARDS_KIND, SHARDS_VERSION)


@dataclass(slots=True, kw_only=True)
class _Stage:
    """A stage under way, for the log."""

    reused: bool = False
    counts: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class _Gate:
    """Stands before every stage: none is made again while somebody uses the folder, or under its card."""

    prepared: Prepared
    stack: ExitStack
    is_open: bool = False

    def ask(self, folder: Path, stage: tuple[str, int], mark: str) -> str:
        """Give back the mark of a stage that is fresh or may be made; InUseError, with nothing changed, else."""
        kind, version = stage
        if not self.is_open and maybe_fresh(folder, kind=kind, version=version, fingerprint=mark) is None:
            self.stack.enter_context(unused(self.prepared.folder))
            # A folder with a card is a finished one: none may vouch for stages that are being made again.
            self.prepared.card_file.unlink(missing_ok=True)
            self.is_open = True
        return mark


def prepare(
    recipe: Recipe, *, workers: int, progress: Progress = SILENT, log: RunLog | None = None
) -> Prepared:
    """Bring the recipe's prepared folder up to date, with its data card.

    Fresh data stays untouched beside those who use it; InUseError where it is not fresh and somebody does.
    """
    prepared = Prepared(folder=recipe.prepared_folder.resolve(), recipe=recipe)
    inputs = _Inputs.find(recipe, prepared.held_out_names)
    # Stages build on each other: two preparations of one folder would mix their text.
    with holding(prepared.folder), ExitStack() as stack:
        gate = _Gate(prepared=prepared, stack=stack)
        _prepare(gate, inputs.hashed(prepared.folder, progress), workers, progress, log or NullLog())
    return prepared


def _prepare(gate: _Gate, inputs: "_Inputs", workers: int, progress: Progress, log: RunLog) -> None:
    prepared, recipe = gate.prepared, gate.prepared.recipe
    for name in prepared.held_out_names:
        make_folder(prepared.held_out_text_folder(name).parent, parents=True, below=prepared.folder)
    held_out = _keep_held_out(gate, inputs)
    with _stage("clean", log) as stage:
        sentences = {name: held_out_sentences(pairs) for name, pairs in held_out.items()}
        mark = _clean_fingerprint(recipe, inputs)
        cleaned, stage.reused = clean_corpora(
            prepared.clean_folder,
            inputs.train,
            _clean_rules(recipe, sentences),
            fingerprint=gate.ask(prepared.clean_folder, _CLEAN, mark),
            workers=workers,
            progress=progress,
        )
        stage.counts = {"pairs": cleaned.pairs}
    with _stage("subword", log) as stage:
        mark = gate.ask(
            prepared.subword_folder, _SUBWORD, _subword_fingerprint(recipe, cleaned.fingerprint, inputs)
        )
        subword, stage.reused = learn_subword(
            prepared.subword_folder, cleaned, recipe.subword, mark=mark, progress=progress
        )
        stage.counts = {"vocabulary": subword.vocabulary}
    with _stage("encode", log) as stage:
        mark = fingerprint([cleaned.fingerprint, subword.fingerprint, recipe.subword.max_pieces])
        stage.reused = encode_corpora(
            prepared.train_folder,
            cleaned,
            prepared.subword_folder,
            corpora=[files.name for files in inputs.train],
            max_pieces=recipe.subword.max_pieces,
            fingerprint=gate.ask(prepared.train_folder, _SHARDS, mark),
            workers=workers,
            progress=progress,
        )
        _encode_held_out(gate, held_out, subword)
        stage.counts = {"pairs": len(prepared.train())}
    with _stage("card", log):
        card = measure_card(prepared, inputs.train, inputs.sums)
        _describe(prepared, card)
    log.log(DataPrepared(card=card.to_json()))


def _encode_held_out(gate: _Gate, held_out: Mapping[str, list[tuple[str, str]]], subword: Subword) -> None:
    for name, pairs in held_out.items():
        folder = gate.prepared.held_out_folder(name)
        mark = gate.ask(folder, _SHARDS, fingerprint([subword.fingerprint, [list(pair) for pair in pairs]]))
        encode_held_out(folder, pairs, subword, name=name, fingerprint=mark)


def _describe(prepared: Prepared, card: DataCard) -> None:
    """Write the recipe and the card, each only where it differs: others may be reading them."""
    text = recipe_yaml(prepared.recipe).encode()
    if not prepared.recipe_file.is_file() or read_bounded(prepared.recipe_file) != text:
        write_atomic(prepared.recipe_file, text)
    with suppress(TandemError):
        if prepared.card() == card:
            return
    write_card(prepared.card_file, card)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Inputs:
    """The recipe's files: text, and a subword model of the user's own."""

    train: Sequence[CorpusFiles]
    held_out: Mapping[str, CorpusFiles]
    model: Path | None
    sums: Mapping[Path, str]

    @classmethod
    def find(cls, recipe: Recipe, held_out_names: Sequence[str]) -> "_Inputs":
        """Find every file; a missing one stops here, before any work."""
        languages = (recipe.data.source_language, recipe.data.target_language)
        train = [find_files(corpus, languages=languages) for corpus in recipe.data.train]
        held_out = {
            name: find_files(corpus, languages=languages)
            for name, corpus in zip(held_out_names, _held_out_corpora(recipe), strict=True)
        }
        model = recipe.subword.model
        if model is not None and not model.is_file():
            raise TandemError(
                f"subword.model names {model}, which is no file; correct the path in the recipe."
            )
        return cls(train=train, held_out=held_out, model=model, sums={})

    def hashed(self, folder: Path, progress: Progress) -> "_Inputs":
        """The same with the checksum of every file."""
        paths = [path for files in (*self.train, *self.held_out.values()) for path in files.paths]
        paths += [] if self.model is None else [self.model]
        return replace(self, sums=checksums(paths, cache=folder / "checksums.json", progress=progress))

    def identity(self, files: CorpusFiles, seed: int) -> JsonValue:
        """What the text of a corpus depends on."""
        builtin = files.corpus.builtin
        if builtin is not None:
            made = {"split": builtin.split, "pairs": builtin.pairs, "seed": seed, "grammar": GRAMMAR_VERSION}
            return {"name": files.name, "builtin": made}
        shape = "tsv" if files.corpus.tsv is not None else "lines"
        return {"name": files.name, shape: [self.sums[path] for path in files.paths]}


def _held_out_corpora(recipe: Recipe) -> list[Corpus]:
    valid = [recipe.data.valid] if recipe.data.valid is not None else []
    return [*valid, *recipe.data.test]


def _keep_held_out(gate: _Gate, inputs: _Inputs) -> dict[str, list[tuple[str, str]]]:
    """Keep the valid and test text as it is, and return its pairs mended as training text is."""
    recipe = gate.prepared.recipe
    rules = _clean_rules(recipe, {})
    cleaner = Cleaner(rules.clean, {}, languages=rules.languages, segmented=rules.segmented)
    mended = {}
    for name, files in inputs.held_out.items():
        folder = gate.prepared.held_out_text_folder(name)
        mark = gate.ask(folder, _HELD_OUT, fingerprint(inputs.identity(files, recipe.seed)))
        text = keep_held_out(folder, files, name=name, seed=recipe.seed, fingerprint=mark)
        mended[name] = [
            (cleaner.mend(source, Tally())[0], cleaner.mend(target, Tally())[0])
            for source, target in zip(text.source, text.target, strict=True)
        ]
    return mended


def _clean_rules(recipe: Recipe, held_out: Mapping[str, HeldOutSentences]) -> CleanRules:
    return CleanRules(
        clean=recipe.clean,
        held_out=held_out,
        languages=(recipe.data.source_language, recipe.data.target_language),
        segmented=recipe.subword.kind == "segmented",
        seed=recipe.seed,
    )


def _clean_fingerprint(recipe: Recipe, inputs: _Inputs) -> str:
    held_out = {name: inputs.identity(files, recipe.seed) for name, files in inputs.held_out.items()}
    return fingerprint(
        {
            "chunk": [CHUNK_LINES, CHUNK_BYTES],
            "train": [inputs.identity(files, recipe.seed) for files in inputs.train],
            "held_out": held_out if recipe.clean.drop_held_out_overlap else {},
            "rules": recipe.clean.model_dump(mode="json"),
            "languages": [recipe.data.source_language, recipe.data.target_language],
            "segmented": recipe.subword.kind == "segmented",
        }
    )


def _subword_fingerprint(recipe: Recipe, cleaned: str, inputs: _Inputs) -> str:
    rules = recipe.subword.model_dump(mode="json", exclude={"max_pieces", "model"})
    model = None if inputs.model is None else inputs.sums[inputs.model]
    return fingerprint({"cleaned": cleaned, "rules": rules, "model": model})


@contextmanager
def _stage(name: str, log: RunLog) -> Iterator[_Stage]:
    stage = _Stage()
    log.log(StageStarted(stage=name))
    begun = time.monotonic()
    yield stage
    log.log(
        StageFinished(
            stage=name, duration_s=time.monotonic() - begun, counts=stage.counts, reused=stage.reused
        )
    )
