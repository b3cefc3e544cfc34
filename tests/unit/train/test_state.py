import json

from tandem.data.batches.plan import Cursor
from tandem.train.state import TrainState


def test_a_step_moves_the_place_in_the_data_and_counts_tokens() -> None:
    state = TrainState(step=4, tokens=100).advanced(tokens=20, cursor=Cursor(epoch=1, update=2))
    assert (state.step, state.tokens, state.cursor) == (5, 120, Cursor(epoch=1, update=2))


def test_each_best_is_kept_on_its_own() -> None:
    state = TrainState().judged(loss=3.0, bleu=20.0, watch_bleu=False)
    state = state.judged(loss=2.5, bleu=19.0, watch_bleu=False)
    assert (state.best_loss, state.best_bleu) == (2.5, 20.0)


def test_patience_counts_evaluations_without_a_better_score_of_the_watched_kind() -> None:
    by_loss, by_bleu = TrainState(), TrainState()
    for loss, bleu in ((3.0, 10.0), (3.1, 11.0), (3.0, 12.0)):
        by_loss = by_loss.judged(loss=loss, bleu=bleu, watch_bleu=False)
        by_bleu = by_bleu.judged(loss=loss, bleu=bleu, watch_bleu=True)
    assert (by_loss.stale, by_bleu.stale) == (2, 0)


def test_a_loss_that_is_not_a_number_is_never_the_best() -> None:
    state = TrainState().judged(loss=float("nan"), bleu=None, watch_bleu=False)
    state = state.judged(loss=4.0, bleu=None, watch_bleu=False)
    assert state.best_loss == 4.0


def test_a_state_survives_its_way_through_json() -> None:
    state = TrainState(
        step=7, tokens=9, cursor=Cursor(epoch=2, update=3), trained_s=1.5, best_bleu=30.0, stale=1
    )
    assert TrainState.from_json(json.loads(json.dumps(state.to_json()))) == state
