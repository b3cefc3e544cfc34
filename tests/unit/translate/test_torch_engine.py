"""Our own engine: whatever stands together in a call, every sentence gets what it gets alone."""

import math
from functools import partialmethod
from random import Random

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.unit.translate.small_model import SENTENCES, build_engine

from tandem.data.subword.learn import Subword
from tandem.model import PaddedTokens, Transformer
from tandem.translate.engine import Found, Sentence
from tandem.translate.penalty import LengthPenalty
from tandem.translate.torch_engine import TorchEngine
from tandem.translate.wish import Sampling, Wish

FIXTURES_STAY = [HealthCheck.function_scoped_fixture]


def encoded(subword: Subword, texts: list[str], *, most: int = 24) -> list[Sentence]:
    rows = [subword.source.encode([text]).ids.tolist() for text in texts]
    return [Sentence(source=tuple(row), most=most) for row in rows]


@pytest.fixture
def sentences(subword: Subword) -> list[Sentence]:
    return encoded(subword, ["a", *SENTENCES[:3], f"{SENTENCES[3]} {SENTENCES[4]}"])


def alike(left: list[list[Found]], right: list[list[Found]]) -> bool:
    """The same pieces, and scores but for rounding."""
    pairs = [pair for some in zip(left, right, strict=True) for pair in zip(*some, strict=True)]
    return all(
        one.ids == other.ids
        and one.score == pytest.approx(other.score, abs=1e-3)
        and one.token_scores == pytest.approx(other.token_scores, abs=1e-3)
        and one.alignment == other.alignment
        for one, other in pairs
    )


WISHES = {
    "beam": Wish(beam=4, best=3),
    "greedy": Wish(beam=1),
    "power": Wish(beam=3, penalty=LengthPenalty(alpha=1, kind="power")),
    "all told": Wish(beam=2, best=2, token_scores=True, alignment=True),
    "samples": Wish(best=2, sampling=Sampling(seed=5)),
    "likely samples": Wish(sampling=Sampling(temperature=0.5, top=7)),
}


@pytest.mark.parametrize("wish", WISHES.values(), ids=WISHES)
@settings(max_examples=5, suppress_health_check=FIXTURES_STAY)
@given(tokens=st.integers(1, 200), random=st.randoms(use_true_random=False))
def test_no_batching_or_order_changes_a_result(
    model: Transformer, subword: Subword, sentences: list[Sentence], wish: Wish, tokens: int, random: Random
) -> None:
    alone = build_engine(model, subword, batch_tokens=1).search(sentences, wish)
    order = list(range(len(sentences)))
    random.shuffle(order)
    together = build_engine(model, subword, batch_tokens=tokens).search(
        [sentences[each] for each in order], wish
    )
    assert alike(together, [alone[each] for each in order])


def forced_odds(model: Transformer, sentence: Sentence, found: Found) -> list[float]:
    """Log-probabilities by a pass over the whole translation at once."""
    source = PaddedTokens(
        ids=torch.tensor([[*sentence.source, 2]]), lengths=torch.tensor([len(sentence.source) + 1])
    )
    target = PaddedTokens(ids=torch.tensor([[1, *found.ids]]), lengths=torch.tensor([len(found.ids) + 1]))
    with torch.no_grad():
        odds = model.logits(model(source, target))[0].log_softmax(-1)
    return [float(odds[place, piece]) for place, piece in enumerate([*found.ids, 2])]


@pytest.mark.parametrize("wish", WISHES.values(), ids=WISHES)
def test_scores_are_those_of_a_teacher_forced_pass(
    model: Transformer, subword: Subword, sentences: list[Sentence], wish: Wish
) -> None:
    for sentence, some in zip(sentences, build_engine(model, subword).search(sentences, wish), strict=True):
        for found in some:
            odds = forced_odds(model, sentence, found)
            divisor = 1.0 if wish.sampling else wish.penalty.at(len(found.ids) + 1)
            assert found.score == pytest.approx(sum(odds) / divisor, rel=1e-4)
            assert not found.token_scores or found.token_scores == pytest.approx(odds, rel=1e-3)


@pytest.mark.parametrize("wish", [Wish(beam=3, best=2), Wish(best=2, sampling=Sampling())])
def test_translations_begin_with_their_prefix_and_scores_count_it(
    model: Transformer, subword: Subword, sentences: list[Sentence], wish: Wish
) -> None:
    forced = [
        Sentence(source=each.source, prefix=tuple(range(50, 50 + number)), most=each.most + number)
        for number, each in enumerate(sentences)
    ]
    for sentence, some in zip(forced, build_engine(model, subword).search(forced, wish), strict=True):
        assert len(some) == 2
        for found in some:
            assert found.ids[: len(sentence.prefix)] == sentence.prefix
            assert len(found.ids) <= sentence.most
            divisor = 1.0 if wish.sampling else wish.penalty.at(len(found.ids) + 1)
            assert found.score == pytest.approx(sum(forced_odds(model, sentence, found)) / divisor, rel=1e-4)


def test_what_was_not_asked_for_is_not_told(
    model: Transformer, subword: Subword, sentences: list[Sentence]
) -> None:
    engine = build_engine(model, subword)
    scored = engine.search(sentences, Wish(token_scores=True))
    aligned = engine.search(sentences, Wish(alignment=True))
    assert all(found.token_scores and not found.alignment for some in scored for found in some)
    assert all(not found.token_scores for some in aligned for found in some)
    for sentence, some in zip(sentences, aligned, strict=True):
        assert len(some[0].alignment) == len(some[0].ids)
        assert set(some[0].alignment) <= set(range(len(sentence.source)))


def test_what_does_not_fit_into_memory_is_searched_in_halves(
    model: Transformer, subword: Subword, sentences: list[Sentence], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = build_engine(model, subword, batch_tokens=10_000)
    expected = engine.search(sentences[:4], Wish())
    search, sizes = TorchEngine._search_batch, []

    def short_of_memory(self: TorchEngine, some: list[Sentence], wish: Wish, most: int) -> list[list[Found]]:
        sizes.append(len(some))
        if len(some) > most:
            raise torch.OutOfMemoryError
        return search(self, some, wish)

    monkeypatch.setattr(TorchEngine, "_search_batch", partialmethod(short_of_memory, most=1))
    assert alike(engine.search(sentences[:4], Wish()), expected)
    assert sizes == [4, 2, 1, 1, 2, 1, 1]
    monkeypatch.setattr(TorchEngine, "_search_batch", partialmethod(short_of_memory, most=0))
    with pytest.raises(torch.OutOfMemoryError):
        engine.search(sentences, Wish())


def test_batches_hold_like_lengths_within_their_tokens(model: Transformer, subword: Subword) -> None:
    engine = build_engine(model, subword, batch_tokens=20)
    assert list(engine._batches([3, 9, 1, 9, 30, 3], rows=4)) == [[4], [1, 3], [0, 5, 2]]


@pytest.mark.parametrize("training", [True, False])
def test_the_models_mode_is_restored_and_it_can_learn_afterwards(
    model: Transformer, subword: Subword, sentences: list[Sentence], training: bool
) -> None:
    model.train(training)
    engine = build_engine(model, subword)
    wish = Wish(token_scores=True, alignment=True)
    assert engine.search(sentences, wish) == engine.search(sentences, wish)  # no dropout
    assert all(module.training is training for module in model.modules())
    tokens = PaddedTokens(ids=torch.tensor([[5, 6, 2]]), lengths=torch.tensor([3]))
    model(tokens, tokens).sum().backward()
    assert model.target_embedding.grad is not None


def test_the_mode_is_restored_after_an_error(model: Transformer, subword: Subword) -> None:
    model.train()
    with pytest.raises(IndexError):
        build_engine(model, subword).search([Sentence(source=(10**6,), most=5)], Wish())
    assert model.training


@pytest.mark.parametrize("wish", WISHES.values(), ids=WISHES)
def test_a_model_that_has_diverged_finds_nothing(
    model: Transformer, subword: Subword, sentences: list[Sentence], wish: Wish
) -> None:
    model.target_embedding.data.fill_(math.nan)
    assert build_engine(model, subword).search(sentences, wish) == [[]] * len(sentences)


def test_a_wider_beam_never_scores_worse_than_the_same_found_greedily(
    model: Transformer, subword: Subword, sentences: list[Sentence]
) -> None:
    engine = build_engine(model, subword)
    scores = [engine.search(sentences[3:4], Wish(beam=beam))[0][0].score for beam in (1, 16)]
    assert scores[0] - 1e-4 <= scores[1] < 0


def test_half_precision_searches_too(model: Transformer, subword: Subword, sentences: list[Sentence]) -> None:
    engine = build_engine(model.to(torch.bfloat16), subword)
    found = engine.search(sentences, Wish(token_scores=True, alignment=True))
    assert all(math.isfinite(some[0].score) for some in found)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
@pytest.mark.parametrize("wish", WISHES.values(), ids=WISHES)
def test_a_gpu_gives_the_same_translations(
    model: Transformer, subword: Subword, sentences: list[Sentence], wish: Wish
) -> None:
    on_cpu = build_engine(model, subword)
    expected = on_cpu.search(sentences, wish)
    cuda = torch.device("cuda")
    on_gpu = TorchEngine(model.to(cuda), marks=on_cpu._marks, device=cuda)
    assert alike(on_gpu.search(sentences, wish), expected)
