"""A dashboard in a thread, pages that look at it, and a run that goes on as a test says."""

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from tests.unit.observe.story import STEP_S, Teller, training, write_log

from tandem.observe.dashboard.app import Dashboard, build_app
from tandem.observe.dashboard.follower import Pace
from tandem.observe.dashboard.roster import Roster
from tandem.runlog.event import RunStarted
from tandem.web.keys import Patience
from tandem.web.limits import ConnectionLimits
from tandem.web.listening import listen
from tandem.web.names import Names
from tandem.web.server import Server
from tandem.web.token import Token

DEADLINE_S = 60.0
"""For conditions that come true at once where nothing is wrong."""
EVALUATION_S = 10.0
QUICK = Pace(beat_s=0.02, least_s=0.02, rest=1.0, answers_s=0.02, linger_s=0.05)


def wait_until(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < until
        threading.Event().wait(0.01)


class Run:
    """A run whose log is written as it goes on, by the clock of now."""

    def __init__(self, folder: Path, *, steps: int = 40, every: int = 20) -> None:
        self.folder = folder
        length_s = STEP_S * steps + EVALUATION_S * (steps // every)
        self._teller = Teller(start_ns=time.time_ns() - int(length_s * 1e9))
        begun = RunStarted(
            run=folder.name,
            tandem="1",
            command=("tandem", "train"),
            recipe="",
            world_size=2,
            host="alpha",
            python="3",
            torch="2",
        )
        write_log(
            folder, [self._teller.tell(begun, rank=None), *training(self._teller, steps=steps, every=every)]
        )
        self.step = steps

    def go_on(self, steps: int = 1) -> None:
        write_log(self.folder, [self._teller.step(self.step + number) for number in range(1, steps + 1)])
        self.step += steps

    def tell(self, *events: Any, rank: int | None = 0) -> None:
        write_log(self.folder, [self._teller.tell(event, rank=rank) for event in events])


class Page:
    """A stream, read event by event."""

    def __init__(self, response: httpx.Response) -> None:
        self._lines = response.iter_lines()
        self.newest: dict[str, Any] = {}
        """Of each kind; figures by their names."""
        self.figures: list[str] = []
        """Names in the order in which they came."""

    def next(self) -> tuple[str, Any]:
        """The next event, which is waited for."""
        name = ""
        for line in self._lines:
            if line.startswith("event: "):
                name = line.removeprefix("event: ")
            elif line.startswith("data: "):
                value = json.loads(line.removeprefix("data: "))
                self.newest[f"figure {value['name']}" if name == "figure" else name] = value
                self.figures += [value["name"]] if name == "figure" else []
                return name, value
        raise EOFError

    def until(self, condition: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Read on until what was told fits."""
        until = time.monotonic() + DEADLINE_S
        while not condition(self.newest):
            assert time.monotonic() < until
            self.next()
        return self.newest


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A dashboard and a client of it."""

    client: httpx.Client
    port: int
    dashboard: Dashboard

    @contextmanager
    def page(self, key: str, *figures: str) -> Iterator[Page]:
        """Look at a run."""
        with self.client.stream("GET", f"/api/runs/{key}/stream?figures={','.join(figures)}") as response:
            assert response.status_code == 200
            yield Page(response)

    def error(self, path: str, **more: Any) -> tuple[int, str]:
        """Status and sentence of a refusal."""
        answer = self.client.get(path, **more)
        assert [*answer.json()] == ["error"]
        assert answer.json()["error"].endswith(".")
        return answer.status_code, answer.json()["error"]


@contextmanager
def serving(
    places: Sequence[Path],
    *,
    token: str = "",
    is_local: bool = True,
    pace: Pace = QUICK,
    patience: Patience | None = None,
) -> Iterator[Served]:
    """Serve until the end of the block."""
    dashboard = Dashboard(Roster(places), pace=pace)
    app = build_app(
        dashboard,
        names=Names(is_local=is_local),
        token=Token(token, patience=patience) if token else None,
    )
    # A stream that has not noticed yet that its page has gone is not waited for, as in the real server.
    server = Server(app, limits=ConnectionLimits(), lifespan="off", timeout_graceful_shutdown=1)
    with ExitStack() as stack:
        bound = stack.enter_context(listen("127.0.0.1", 0))
        port = bound.getsockname()[1]
        started = threading.Event()
        thread = threading.Thread(target=lambda: server.serve_on(bound, on_start=started.set))
        thread.start()
        stack.callback(thread.join, DEADLINE_S)
        stack.callback(setattr, server, "should_exit", True)
        assert started.wait(DEADLINE_S)
        client = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=DEADLINE_S)
        yield Served(client=stack.enter_context(client), port=port, dashboard=dashboard)


def threads_of(key: str) -> list[str]:
    """What is at work for a run."""
    return [each.name for each in threading.enumerate() if each.name in {f"run {key}", f"pulse {key}"}]
