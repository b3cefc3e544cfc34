import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import pytest
from rich.console import Console

from tandem.cli.training import How, _follow, _patiently, _stopping, train_here
from tandem.config import load_recipe
from tandem.data.prepared import Prepared
from tandem.errors import TandemError
from tandem.launch.supervisor import Supervisor
from tandem.lock import BusyError, is_held
from tandem.observe.sinks.beside import Beside


class Told:
    """A supervisor that notes what it is told."""

    is_done = True

    def __init__(self) -> None:
        self.words: list[str] = []

    def __getattr__(self, word: str) -> Callable[[], None]:
        return lambda: self.words.append(word)


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def signals(told: Told) -> Iterator[list[signal.Signals]]:
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the tests themselves may be started with nohup
    try:
        with _stopping(cast(Supervisor, told)) as got:
            yield got
    finally:
        signal.signal(signal.SIGHUP, before)


def test_the_first_ctrl_c_asks_and_the_second_kills(told: Told, signals: list[signal.Signals]) -> None:
    signal.raise_signal(signal.SIGINT)
    assert told.words == ["stop"]
    signal.raise_signal(signal.SIGINT)
    assert "kill" in told.words
    assert signals[0] == signal.SIGINT


def test_a_machine_that_asks_twice_does_not_kill(told: Told, signals: list[signal.Signals]) -> None:
    for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGTERM):
        signal.raise_signal(number)
    assert set(told.words) == {"stop"}
    assert signals[0] == signal.SIGHUP


def test_nohup_is_respected_and_handlers_are_put_back(told: Told) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        others = signal.getsignal(signal.SIGTERM)
        with _stopping(cast(Supervisor, told)):
            signal.raise_signal(signal.SIGHUP)
        assert signal.getsignal(signal.SIGTERM) is others
        assert not told.words
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_display_that_fails_does_not_end_the_run(
    told: Told, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError("the terminal is gone")

    monkeypatch.setattr("tandem.observe.watch.follow_run", fail)
    with pytest.raises(OSError, match="terminal"):
        _follow(cast(Supervisor, told), tmp_path, Console(), how=How(plain=True))
    assert told.words == ["start", "wait"]


def test_data_that_another_run_prepares_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tandem.cli.training.BUSY_S", 0)
    answers: list[BusyError | str] = [BusyError("It is being made."), BusyError("It is being made."), "data"]
    said: list[str] = []

    def prepare() -> Prepared:
        answer = answers.pop(0)
        if isinstance(answer, BusyError):
            raise answer
        return cast(Prepared, answer)

    assert cast(object, _patiently(prepare, said.append)) == "data"
    assert said == ["Waiting: It is being made."]


def test_a_call_that_never_began_leaves_the_log_of_an_old_run_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise TandemError("There is no such device.")

    monkeypatch.setattr("tandem.launch.hardware.choose_hardware", refuse)
    recipe = load_recipe(Path(__file__).parents[3] / "recipes/demo.yaml").recipe
    with pytest.raises(TandemError, match="no such device"):
        train_here(recipe, tmp_path / "run", How())
    assert not list((tmp_path / "run").rglob("*.jsonl"))
    assert not (tmp_path / "run/report").exists()


def test_what_the_run_is_forwarded_to_is_waited_for_when_others_may_go_on_with_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = load_recipe(
        Path(__file__).parents[3] / "recipes/demo.yaml", overrides=["telemetry.report=false"]
    ).recipe
    run, held = tmp_path / "run", list[bool]()

    @contextmanager
    def forwarded(folder: Path, tool: str) -> Iterator[list[Beside]]:
        assert (folder, tool) == (run, "wandb")
        held.append(is_held(run))
        try:
            yield []
        finally:
            held.append(is_held(run))

    def refuse(*_: object, **__: object) -> None:
        raise TandemError("There is no data.")

    monkeypatch.setattr("tandem.cli.training.forwarding", forwarded)
    monkeypatch.setattr("tandem.cli.training.make_ready", refuse)
    with pytest.raises(TandemError, match="no data"):
        train_here(recipe, run, How(forward="wandb", device="cpu", workers=1))
    assert held == [True, False]
