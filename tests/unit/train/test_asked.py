import os
import signal
from pathlib import Path

from tandem.config import Recipe, load_recipe
from tandem.train.asked import Asked, Clockwork, Signals


def timed_recipe(repository: Path) -> Recipe:
    timed = ["evaluate.every_minutes=10", "checkpoint.every_minutes=3", "train.max_minutes=60"]
    return load_recipe(repository / "recipes" / "demo.yaml", timed).recipe


def test_what_any_rank_asks_for_is_asked_for() -> None:
    sums = [a + b for a, b in zip(Asked(stop=True).numbers(), Asked(save=True).numbers(), strict=True)]
    assert Asked.from_numbers(sums) == Asked(stop=True, save=True)


def test_wishes_add_up() -> None:
    assert Asked(stop=True) | Asked(evaluate=True) == Asked(stop=True, evaluate=True)


def test_the_first_signal_is_a_wish_and_handlers_come_back() -> None:
    heard: list[str] = []
    signals = Signals(heard.append)
    before = signal.getsignal(signal.SIGTERM)
    with signals.caught():
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGINT)
        assert signals.name == "SIGTERM"
    assert heard == ["SIGTERM"]
    assert signal.getsignal(signal.SIGTERM) == before


def test_the_clock_asks_when_its_time_has_come_and_begins_anew(repository: Path) -> None:
    now = 1000.0
    clock = Clockwork(timed_recipe(repository), trained_s=0.0, now=lambda: now)
    assert clock.asks(stop=False, by_clock=True) == Asked()
    now += 180
    assert clock.asks(stop=False, by_clock=True) == Asked(save=True)
    clock.saved()
    assert clock.asks(stop=False, by_clock=True) == Asked()
    now += 420
    assert clock.asks(stop=False, by_clock=True) == Asked(save=True, evaluate=True)
    clock.evaluated()
    assert clock.asks(stop=False, by_clock=True) == Asked()


def test_time_trained_before_a_restart_counts(repository: Path) -> None:
    clock = Clockwork(timed_recipe(repository), trained_s=3599.0, now=lambda: 5.0)
    assert not clock.asks(stop=False, by_clock=True).out_of_time
    clock = Clockwork(timed_recipe(repository), trained_s=3600.0, now=lambda: 5.0)
    assert clock.asks(stop=False, by_clock=True).out_of_time


def test_only_one_rank_goes_by_its_clock(repository: Path) -> None:
    clock = Clockwork(timed_recipe(repository), trained_s=10**6, now=lambda: 5.0)
    assert clock.asks(stop=True, by_clock=False) == Asked(stop=True)
