"""The fast search finds what the plain one finds, however many sentences there are and whenever they are done."""

import math

import pytest
import torch
from tests.unit.translate.small_model import SENTENCES, build_engine
from tests.unit.translate.test_torch_engine import alike, encoded

from tandem.data.subword.learn import Subword
from tandem.model import Transformer
from tandem.translate import recorded as module
from tandem.translate.beams import Search
from tandem.translate.engine import Found, Sentence
from tandem.translate.penalty import LengthPenalty
from tandem.translate.recorded import RecordedSearch
from tandem.translate.torch_engine import MOST_ROWS, TorchEngine
from tandem.translate.wish import Sampling, Wish

HAS_GPU = torch.cuda.is_available()
DEVICE = torch.device("cuda" if HAS_GPU else "cpu")

WISHES = {
    "beam": Wish(beam=3, best=2),
    "greedy": Wish(beam=1),
    "power": Wish(beam=2, penalty=LengthPenalty(alpha=1, kind="power")),
}


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small buckets, as the interpreter is slow."""
    monkeypatch.setattr(module, "FEWEST", 1)
    monkeypatch.setattr(module, "LOOK_EVERY", 2)


@pytest.fixture
def sentences(subword: Subword) -> list[Sentence]:
    """Some end long before others."""
    some = encoded(subword, ["a", *SENTENCES[:2]], most=6)
    return [Sentence(source=each.source, most=most) for each, most in zip(some, (1, 6, 2), strict=True)]


def build_fast(model: Transformer, subword: Subword, *, batch_tokens: int | None = None) -> TorchEngine:
    """An engine that searches in the way of a GPU; without one, steps are not recorded."""
    engine = build_engine(model.to(DEVICE), subword, batch_tokens=batch_tokens)
    engine._device = DEVICE
    engine._recorded = RecordedSearch(model, marks=engine._marks)
    return engine


def rooms(engine: TorchEngine) -> list[tuple[int, int]]:
    assert engine._recorded is not None
    return list(engine._recorded._rooms)


@pytest.fixture
def expected(model: Transformer, subword: Subword, sentences: list[Sentence]) -> dict[str, list[list[Found]]]:
    engine = build_engine(model, subword)
    return {name: engine.search(sentences, wish) for name, wish in WISHES.items()}


@pytest.mark.parametrize("name", WISHES)
def test_it_finds_what_the_plain_search_finds(
    model: Transformer,
    subword: Subword,
    sentences: list[Sentence],
    expected: dict[str, list[list[Found]]],
    name: str,
) -> None:
    engine = build_fast(model, subword)
    assert alike(engine.search(sentences, WISHES[name]), expected[name])
    assert rooms(engine) == [(WISHES[name].beam, WISHES[name].best)]


def test_memory_is_used_again_and_nothing_of_the_last_search_is_left(
    model: Transformer, subword: Subword, sentences: list[Sentence]
) -> None:
    wish, other = Wish(beam=2), Wish(beam=2, penalty=LengthPenalty(alpha=3))
    plain = build_engine(model, subword)
    expected = [plain.search(sentences[1:], other), plain.search(sentences[:1], wish)]
    engine = build_fast(model, subword)
    engine.search(sentences, wish)
    assert engine._recorded is not None
    room = engine._recorded._rooms[2, 1]
    assert alike(engine.search(sentences[1:], other), expected[0])
    most = max(sentence.most for sentence in sentences)
    assert room.beams(2).ceilings_B.max() == pytest.approx(other.penalty.at(most + 1))
    assert alike(engine.search(sentences[:1], wish), expected[1])
    assert engine._recorded._rooms[2, 1] is room


def test_a_penalty_that_makes_long_ones_better_is_not_that_of_the_search_before(
    model: Transformer, subword: Subword, sentences: list[Sentence]
) -> None:
    short, long = (Wish(beam=2, penalty=LengthPenalty(alpha=alpha)) for alpha in (0, 3))
    expected = build_engine(model, subword).search(sentences, long)
    engine = build_fast(model, subword)
    engine.search(sentences, short)
    assert alike(engine.search(sentences, long), expected)


def test_what_is_expected_has_room_at_once(
    model: Transformer, subword: Subword, sentences: list[Sentence]
) -> None:
    engine = build_fast(model, subword, batch_tokens=1)
    engine.search(sentences, Wish(beam=1))
    assert engine._recorded is not None
    (room,) = engine._recorded._rooms.values()
    needs = [module._need([sentence], 1) for sentence in sentences]
    assert all(room.size.suffices_for(need) for need in needs)
    assert not any(need.suffices_for(room.size) for need in needs[:1])


def test_longer_and_more_sentences_than_there_is_room_for_get_more(
    model: Transformer, subword: Subword, sentences: list[Sentence]
) -> None:
    wish = Wish(beam=2)
    engine = build_fast(model, subword)
    engine.search(sentences[:1], wish)
    assert alike(engine.search(sentences, wish), build_engine(model.cpu(), subword).search(sentences, wish))


def test_memory_is_kept_for_few_ways_of_searching(
    model: Transformer, subword: Subword, sentences: list[Sentence]
) -> None:
    engine = build_fast(model, subword)
    for beam in (1, 2, 1, 3):
        engine.search(sentences[:1], Wish(beam=beam))
    assert rooms(engine) == [(1, 1), (3, 1)]


def test_batches_have_sizes_that_steps_are_recorded_for(model: Transformer, subword: Subword) -> None:
    engine = build_fast(model, subword, batch_tokens=20)
    assert [len(numbers) for numbers in engine._batches([1] * 17, rows=4)] == [8, 8, 1]
    assert [len(numbers) for numbers in engine._batches([1] * 5, rows=MOST_ROWS // 3)] == [2, 2, 1]
    assert [len(numbers) for numbers in engine._batches([1] * 2, rows=2 * MOST_ROWS)] == [1, 1]


def test_prefixes_are_forced(model: Transformer, subword: Subword, sentences: list[Sentence]) -> None:
    forced = [
        Sentence(source=each.source, prefix=tuple(range(50, 50 + number)), most=each.most + number)
        for number, each in enumerate(sentences)
    ]
    expected = build_engine(model, subword).search(forced, Wish(beam=2))
    found = build_fast(model, subword).search(forced, Wish(beam=2))
    assert alike(found, expected)
    assert [some[0].ids[:number] for number, some in enumerate(found)] == [each.prefix for each in forced]


def test_what_it_finds_can_be_explained(
    model: Transformer, subword: Subword, sentences: list[Sentence]
) -> None:
    wish = Wish(beam=2, token_scores=True, alignment=True)
    expected = build_engine(model, subword).search(sentences, wish)
    assert alike(build_fast(model, subword).search(sentences, wish), expected)


@pytest.mark.filterwarnings(
    "ignore:(invalid value|All-NaN):RuntimeWarning"
)  # the interpreter's numpy says so
def test_a_model_that_has_diverged_finds_nothing(
    model: Transformer, subword: Subword, sentences: list[Sentence]
) -> None:
    model.target_embedding.data.fill_(math.nan)
    assert build_fast(model, subword).search(sentences, Wish(beam=2)) == [[]] * len(sentences)


def test_a_model_that_goes_on_learning_gets_its_memory_back(
    model: Transformer, subword: Subword, sentences: list[Sentence]
) -> None:
    engine = build_fast(model.train(), subword)
    engine.search(sentences[:1], Wish(beam=1))
    assert rooms(engine) == []


def test_where_it_fails_the_plain_search_goes_on_and_says_so_once(
    model: Transformer,
    subword: Subword,
    sentences: list[Sentence],
    expected: dict[str, list[list[Found]]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("no such kernel\nand more")

    monkeypatch.setattr(RecordedSearch, "__call__", fail)
    engine = build_fast(model, subword)
    with pytest.warns(RuntimeWarning, match="cannot be had here: no such kernel$"):
        assert alike(engine.search(sentences, WISHES["beam"]), expected["beam"])
    assert alike(engine.search(sentences, WISHES["beam"]), expected["beam"])


def test_where_memory_does_not_suffice_it_is_given_back_and_halves_are_searched(
    model: Transformer, subword: Subword, sentences: list[Sentence], monkeypatch: pytest.MonkeyPatch
) -> None:
    wish = Wish(beam=2)
    expected = build_engine(model, subword).search(sentences, wish)
    engine = build_fast(model, subword)
    assert engine._recorded is not None
    room = RecordedSearch._room

    def short_of_memory(self: RecordedSearch, need: module.Need, search: Search) -> object:
        if need.sentences > 2:
            raise torch.OutOfMemoryError
        return room(self, need, search)

    monkeypatch.setattr(RecordedSearch, "_room", short_of_memory)
    assert alike(engine.search(sentences, wish), expected)


def test_samples_are_drawn_as_ever(model: Transformer, subword: Subword, sentences: list[Sentence]) -> None:
    wish = Wish(best=2, sampling=Sampling(seed=3))
    expected = build_engine(model, subword).search(sentences, wish)
    engine = build_fast(model, subword)
    assert alike(engine.search(sentences, wish), expected)
    assert rooms(engine) == []


@pytest.mark.gpu
@pytest.mark.skipif(not HAS_GPU, reason="there is no GPU")
@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
def test_recorded_steps_find_what_steps_find_that_are_launched_one_by_one(
    model: Transformer, subword: Subword, precision: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()  # buckets as they are
    many = encoded(subword, SENTENCES[:100])
    engine = build_fast(model.to(precision), subword, batch_tokens=1_000)
    first, again = (engine.search(many, Wish(beam=4, best=2)) for _ in range(2))
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", lambda: None)
    engine = build_fast(model, subword, batch_tokens=1_000)
    assert first == again == engine.search(many, Wish(beam=4, best=2))
