"""How hosts exchange gradients, in the display and in plain lines."""

from dataclasses import replace

from tests.unit.observe.story import Teller, started
from tests.unit.observe.test_exchange_mode import CHOSEN

from tandem.observe.watch.lines import Narrator
from tandem.observe.watch.progress import equipment_of
from tandem.observe.watch.state import WatchState
from tandem.runlog.event import Event, ResidualsRestored


def take(*events: Event) -> tuple[WatchState, list[str]]:
    state, narrator, teller = WatchState(), Narrator(), Teller()
    lines = []
    for record in [teller.tell(event) for event in events]:
        state.apply(record)
        lines += narrator.lines(record, state)
    return state, lines


def test_a_mode_is_named_beside_the_ranks_and_told_in_a_line() -> None:
    state, lines = take(started(), CHOSEN)
    assert "packed exchange" in equipment_of(state)
    assert lines[-1].startswith("hosts exchange gradients in mode packed (measured): 32.4 MB a step")


def test_an_exact_exchange_and_another_start_are_not_named() -> None:
    assert "exchange" not in equipment_of(take(started(), replace(CHOSEN, mode="exact"))[0])
    assert "exchange" not in equipment_of(take(CHOSEN, started())[0])


def test_lost_residuals_are_a_trouble() -> None:
    state, _ = take(started(), ResidualsRestored(step=4, expected=2, found=1, is_same_layout=True))
    (trouble,) = state.troubles
    assert "1 of 2 residuals" in trouble.text
    assert not list(
        take(started(), ResidualsRestored(step=4, expected=2, found=2, is_same_layout=True))[0].troubles
    )
