"""The engine on CTranslate2 finds what our own finds, and says the same of it."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from tests.unit.translate.small_model import SENTENCES

from tandem.config import ModelSection
from tandem.data.subword.learn import Subword
from tandem.errors import TandemError
from tandem.export.specification import build_specification
from tandem.model import PaddedTokens, Transformer, build_model
from tandem.translate import ctranslate2_engine
from tandem.translate.ctranslate2_engine import Ctranslate2Engine
from tandem.translate.engine import Engine, Found, Sentence
from tandem.translate.marks import Marks, build_marks
from tandem.translate.penalty import LengthPenalty
from tandem.translate.torch_engine import TorchEngine
from tandem.translate.wish import Sampling, Wish

LINES = SENTENCES[:12]


SECTION = ModelSection(preset="tiny", width=16, heads=2, decoder_layers=1, feed_forward=32, tied="none")


ENDING = 3.0
"""How much is in favour of the end mark: with less, all translations would run to their limits."""


def build(subword: Subword) -> Transformer:
    """A model that has learned nothing, but says many things, and ends most of them by itself."""
    size = subword.vocabulary
    model = build_model(SECTION, source_vocabulary=size, target_vocabulary=size, pad=3, seed=5).eval()
    assert model.output_projection is not None
    model.output_projection.data *= 4
    ids = torch.arange(4, 404).view(8, 50)
    tokens = PaddedTokens(ids=ids, lengths=torch.full((8,), 50))
    with torch.no_grad():
        usual = model(tokens, tokens).mean((0, 1))
    model.output_projection.data[subword.target.special.eos] = usual / usual.norm() * ENDING
    return model


@pytest.fixture(scope="module")
def model(subword: Subword) -> Transformer:
    return build(subword)


@pytest.fixture(scope="module")
def marks(subword: Subword) -> Marks:
    return build_marks(subword, vocabulary=subword.vocabulary)


@pytest.fixture(scope="module")
def folder(model: Transformer, subword: Subword, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(model, subword, tmp_path_factory.mktemp("exported"))


@pytest.fixture(scope="module")
def engine(folder: Path, marks: Marks) -> Ctranslate2Engine:
    return Ctranslate2Engine(folder, marks=marks, threads=1)


@pytest.fixture(scope="module")
def ours(model: Transformer, marks: Marks) -> TorchEngine:
    return TorchEngine(model, marks=marks, device=torch.device("cpu"))


@pytest.fixture(scope="module")
def sentences(subword: Subword) -> list[Sentence]:
    return [Sentence(source=encode(subword, line), most=12 + number % 5) for number, line in enumerate(LINES)]


def write(model: Transformer, subword: Subword, folder: Path) -> Path:
    specification = build_specification(model.section, model.state_dict(), subword)
    specification.validate()
    specification.optimize(quantization="float32")
    specification.save(str(folder))
    return folder


def encode(subword: Subword, line: str) -> tuple[int, ...]:
    return tuple(subword.source.encode([line]).ids.tolist())


def assert_alike(left: list[list[Found]], right: list[list[Found]]) -> None:
    assert [[each.ids for each in some] for some in left] == [[each.ids for each in some] for some in right]
    for one, other in zip(flat(left), flat(right), strict=True):
        assert one.score == pytest.approx(other.score, abs=1e-4)
        assert one.token_scores == pytest.approx(other.token_scores, abs=1e-4)
        assert one.alignment == other.alignment


def flat(found: list[list[Found]]) -> list[Found]:
    return [each for some in found for each in some]


@pytest.mark.parametrize(
    "wish",
    [
        Wish(),
        Wish(beam=1),
        Wish(penalty=LengthPenalty(alpha=0.6, kind="power")),
        Wish(penalty=LengthPenalty(alpha=0.0)),
        Wish(token_scores=True, alignment=True),
    ],
    ids=["gnmt", "greedy", "power", "plain", "explained"],
)
def test_translations_and_scores_are_those_of_our_own_engine(
    engine: Engine, ours: Engine, sentences: list[Sentence], wish: Wish
) -> None:
    assert_alike(engine.search(sentences, wish), ours.search(sentences, wish))


def test_the_best_come_first_and_differ(engine: Engine, sentences: list[Sentence]) -> None:
    for some in engine.search(sentences, Wish(beam=4, best=3)):
        assert len({each.ids for each in some}) == 3
        assert [each.score for each in some] == sorted((each.score for each in some), reverse=True)


def test_what_stands_beside_a_sentence_changes_nothing(
    folder: Path, marks: Marks, engine: Engine, sentences: list[Sentence]
) -> None:
    alone = Ctranslate2Engine(folder, marks=marks, threads=1, batch_tokens=1)
    assert_alike(alone.search(sentences, Wish()), engine.search(sentences, Wish()))


def test_chunks_are_found_in_turn_and_as_if_they_stood_alone(
    folder: Path, marks: Marks, engine: Engine, sentences: list[Sentence]
) -> None:
    busy = Ctranslate2Engine(folder, marks=marks, threads=1, batch_tokens=16)
    chunks = [sentences[:5], [], sentences[5:6], sentences[6:]]
    streamed = list(busy.stream(chunks, Wish()))
    assert [len(found) for found in streamed] == [5, 0, 1, 6]
    assert_alike([some for found in streamed for some in found], engine.search(sentences, Wish()))


def test_the_next_chunk_is_searched_before_one_is_given_but_not_all(
    folder: Path, marks: Marks, sentences: list[Sentence]
) -> None:
    taken: list[int] = []

    def chunks() -> Iterator[list[Sentence]]:
        for number in range(9):
            taken.append(number)
            yield sentences[:2]

    stream = Ctranslate2Engine(folder, marks=marks, threads=1).stream(chunks(), Wish(beam=1))
    next(stream)
    assert 1 < len(taken) < 9


def test_a_forced_prefix_counts_in_the_score(engine: Engine, ours: Engine, sentences: list[Sentence]) -> None:
    mixed = [
        Sentence(source=sentence.source, prefix=(20, 31, 42) if number % 2 else (), most=17)
        for number, sentence in enumerate(sentences)
    ]
    found = engine.search(mixed, Wish(beam=1, token_scores=True))
    assert all(some[0].ids[:3] == (20, 31, 42) for some in found[1::2])
    assert_alike(found, ours.search(mixed, Wish(beam=1, token_scores=True)))


def test_a_translation_that_does_not_end_is_ended_at_its_limit(
    engine: Engine, ours: Engine, sentences: list[Sentence]
) -> None:
    long = max(range(len(sentences)), key=lambda n: len(ours.search([sentences[n]], Wish(beam=1))[0][0].ids))
    # Beside one that may be longer: the limit is the sentence's, not the batch's.
    short = [Sentence(source=sentences[long].source, most=2), sentences[long]]
    found = engine.search(short, Wish(beam=1, alignment=True))
    assert len(found[0][0].ids) == len(found[0][0].alignment) == 2 < len(found[1][0].ids)
    assert_alike(found, ours.search(short, Wish(beam=1, alignment=True)))


def test_marks_are_never_said_however_likely(
    subword: Subword, marks: Marks, sentences: list[Sentence], tmp_path: Path
) -> None:
    model = build(subword)
    assert model.output_projection is not None
    model.output_projection.data[list(marks.banned)] *= 1.5
    eager = Ctranslate2Engine(write(model, subword, tmp_path), marks=marks, threads=1)
    own = TorchEngine(model, marks=marks, device=torch.device("cpu"))
    found = eager.search(sentences, Wish(beam=1))
    assert not any(set(each.ids) & set(marks.banned) for each in flat(found))
    # The probability that marks would have is lost, as in our own search.
    assert_alike(found, own.search(sentences, Wish(beam=1)))


def test_samples_are_scored_as_the_model_would(
    engine: Engine, ours: Engine, sentences: list[Sentence], marks: Marks
) -> None:
    wish = Wish(best=3, sampling=Sampling(temperature=1.5, top=20, seed=4), token_scores=True)
    found = engine.search(sentences, wish)
    assert len({each.ids for some in found for each in some}) > len(sentences)
    for sentence, some in zip(sentences, found, strict=True):
        for each in some:
            assert not set(each.ids) & set(marks.banned)
            assert each.score == pytest.approx(sum(each.token_scores))
            forced = Sentence(source=sentence.source, prefix=each.ids, most=len(each.ids))
            judged = ours.search([forced], Wish(beam=1, penalty=LengthPenalty(alpha=0.0)))[0][0]
            assert each.score == pytest.approx(judged.score, abs=1e-4)


def test_as_many_samples_are_drawn_as_were_asked_for_be_they_the_same(
    engine: Engine, sentences: list[Sentence]
) -> None:
    for some in engine.search(sentences, Wish(best=3, sampling=Sampling(top=1))):
        assert len(some) == 3
        assert len({each.ids for each in some}) == 1


def test_more_places_than_the_model_knows_are_refused(folder: Path, marks: Marks) -> None:
    small = Ctranslate2Engine(folder, marks=marks, threads=1, longest=8)
    with pytest.raises(TandemError, match=r"has 8 pieces, but the exported model knows 8 places: split it"):
        small.search([Sentence(source=(9,) * 8, most=5)], Wish())
    assert len(small.search([Sentence(source=(9,) * 7, most=50)], Wish(beam=1))[0][0].ids) < 8


def test_what_comes_before_a_refused_chunk_is_told(
    folder: Path, marks: Marks, sentences: list[Sentence]
) -> None:
    small = Ctranslate2Engine(folder, marks=marks, threads=1, longest=8)
    short = [Sentence(source=(9,) * 3, most=5)]
    told = small.stream([short, short, [Sentence(source=(9,) * 8, most=5)]], Wish())
    assert next(told) == next(told) == small.search(short, Wish())
    with pytest.raises(TandemError, match="has 8 pieces"):
        next(told)


def test_a_seed_draws_the_same_again_however_many_threads_there_are(
    folder: Path, marks: Marks, sentences: list[Sentence]
) -> None:
    wish = Wish(best=2, sampling=Sampling(temperature=1.5, seed=4))
    chunks = [sentences * 3, sentences * 2, sentences]
    first, second = (
        list(Ctranslate2Engine(folder, marks=marks, threads=4, batch_tokens=40).stream(chunks, wish))
        for _ in range(2)
    )
    assert first == second


def test_a_model_that_has_diverged_finds_nothing(
    subword: Subword, marks: Marks, sentences: list[Sentence], tmp_path: Path
) -> None:
    model = build(subword)
    model.decoder_norm.weight.data.fill_(float("nan"))  # type: ignore[operator]
    broken = Ctranslate2Engine(write(model, subword, tmp_path), marks=marks, threads=1)
    assert broken.search(sentences[:2], Wish(beam=1)) == [[], []]


def test_without_the_library_the_cure_is_said(
    folder: Path, marks: Marks, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(ctranslate2_engine, "import_module", absent)
    with pytest.raises(TandemError, match=r"pip install 'tandem-nmt\[export\]'"):
        Ctranslate2Engine(folder, marks=marks)


def test_a_folder_that_cannot_be_loaded_is_named(folder: Path, marks: Marks, tmp_path: Path) -> None:
    with pytest.raises(TandemError, match=r"has no vocabulary that can be read .*: export the model again"):
        Ctranslate2Engine(tmp_path, marks=marks)
    for name in ("config.json", "shared_vocabulary.json"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    (tmp_path / "model.bin").write_bytes(b"not a model")
    with pytest.raises(TandemError, match=rf"cannot load {tmp_path} on cpu .*: export the model again"):
        Ctranslate2Engine(tmp_path, marks=marks)


def test_ids_are_tokens_of_the_vocabulary(folder: Path, subword: Subword) -> None:
    tokens = json.loads((folder / "shared_vocabulary.json").read_text(encoding="utf-8"))
    assert len(set(tokens)) == len(tokens) == subword.vocabulary
    assert tokens[:4] == ["<unk>", "<s>", "</s>", "<pad>"]
    assert tokens[40:50] == subword.target.spell(range(40, 50))
