"""What counts as the same model."""

from collections.abc import Sequence

import pytest
from tests.unit.translate.small_model import write_subword

from tandem.data.subword.learn import Subword
from tandem.errors import TandemError
from tandem.export.verify import UnlikeError, Verified, refuse_unlike, verify_export
from tandem.translate.engine import Found, Sentence
from tandem.translate.wish import Wish

SENTENCES = [Sentence(source=(number,), most=9) for number in range(10, 14)]


@pytest.fixture(scope="module")
def subword(tmp_path_factory: pytest.TempPathFactory) -> Subword:
    return write_subword(tmp_path_factory.mktemp("data") / "subword")


class Fake:
    """Says each source three times over, but for what it is told, and gives anything a score by its length."""

    name = "fake"

    def __init__(self, *, instead: dict[int, tuple[int, ...]] | None = None, better: float = 0.0) -> None:
        self._instead, self._better = instead or {}, better

    def search(self, sentences: Sequence[Sentence], wish: Wish) -> list[list[Found]]:
        assert wish.best == 1
        said = [
            sentence.prefix or self._instead.get(sentence.source[0], sentence.source * 3)
            for sentence in sentences
        ]
        return [[Found(ids=ids, score=self._better - len(ids))] if ids[0] else [] for ids in said]


def verify(exported: Fake, subword: Subword) -> Verified:
    return verify_export(Fake(), exported, SENTENCES, subword=subword, wish=Wish(beam=4, best=4))


def test_the_same_model_differs_in_nothing(subword: Subword) -> None:
    verified = verify(Fake(), subword)
    assert verified == Verified(sentences=4, differing=0, largest_score_difference=0.0, likeness=100.0)
    refuse_unlike(verified, exact=True)


def test_other_translations_are_counted_and_scored_by_the_source_model(subword: Subword) -> None:
    verified = verify(Fake(instead={11: (11, 11, 12)}, better=0.25), subword)
    assert verified.differing == 1
    assert verified.differing_share == 0.25
    assert verified.largest_score_difference == pytest.approx(0.25)
    assert verified.likeness < 100
    assert str(verified).startswith("3 of 4 sentences are translated the same (25.0% differ")


def test_exact_weights_must_give_exact_scores(subword: Subword) -> None:
    verified = verify(Fake(better=0.002), subword)
    refuse_unlike(verified, exact=False)
    with pytest.raises(UnlikeError, match="is not the same .*, so it was not kept"):
        refuse_unlike(verified, exact=True)


def test_rounded_weights_must_still_say_the_same(subword: Subword) -> None:
    verified = verify(Fake(instead=dict.fromkeys(range(10, 14), (300, 301))), subword)
    with pytest.raises(UnlikeError, match="translates otherwise .*: take a quantization with more bits"):
        refuse_unlike(verified, exact=False)


def test_a_model_that_has_diverged_is_not_exported(subword: Subword) -> None:
    with pytest.raises(TandemError, match="it has diverged; export an earlier checkpoint"):
        verify(Fake(instead={11: (0,)}), subword)
