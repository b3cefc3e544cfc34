"""A translator that can be checked at a glance and held up, and a server around it."""

import asyncio
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

from tandem.errors import TandemError
from tandem.serve.app import Service, build_app
from tandem.serve.catalogue import Catalogue
from tandem.serve.keys import ApiKeys
from tandem.serve.language import Guess
from tandem.serve.limits import Limits
from tandem.serve.served import ServedModel
from tandem.serve.server import Drain
from tandem.translate.translator import Link, Translation
from tandem.translate.wish import Wish
from tandem.web.keys import Patience
from tandem.web.listening import listen
from tandem.web.names import Names

DEADLINE_S = 60.0
"""For conditions that come true at once where nothing is wrong."""


@dataclass
class Fake:
    """Turns words around: `a bc` becomes `bc! a!`; refuses `unspeakable`, breaks at `broken`."""

    mark: str = "!"
    batches: list[tuple[list[str], Wish]] = field(default_factory=list)
    open: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.open.set()

    def translate(self, lines: Sequence[str], wish: Wish) -> list[Translation]:
        self.batches.append((list(lines), wish))
        assert self.open.wait(DEADLINE_S)
        for line in lines:
            if "unspeakable" in line:
                raise TandemError("This cannot be said: say something else.")
            if "broken" in line:
                raise ZeroDivisionError("division by zero")
        return [self._one(line, wish) for line in lines]

    def text(self, line: str) -> str:
        return " ".join(word + self.mark for word in reversed(line.split()))

    def _one(self, line: str, wish: Wish) -> Translation:
        text = self.text(line)
        return Translation(
            text=text,
            score=-0.5 * len(line.split()),
            pieces=len(line.split()),
            others=tuple(
                Translation(text=f"{text} {rank}", score=-1.0 - rank, pieces=1)
                for rank in range(1, wish.best)
            ),
            alignment=tuple(self._links(line)) if wish.alignment else (),
        )

    def _links(self, line: str) -> Iterator[Link]:
        place = len(self.text(line))
        start = 0
        for word in line.split():
            start = line.index(word, start)
            length = len(word) + len(self.mark)
            yield Link(source=(start, start + len(word)), target=(place - length, place))
            start += len(word)
            place -= length + 1


def served(fake: Fake, *, name: str = "small", languages: tuple[str, str] = ("en", "de")) -> ServedModel:
    return ServedModel(name=name, source=languages[0], target=languages[1], translator=fake, wish=Wish())


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A server in a thread, and a client of it."""

    service: Service
    client: httpx.Client
    said: list[str]
    loop: asyncio.AbstractEventLoop

    def post(self, path: str = "/translate", **fields: Any) -> httpx.Response:
        return self.client.post(path, json=fields)


@contextmanager
def running(
    *models: ServedModel,
    limits: Limits | None = None,
    keys: Sequence[str] = (),
    origins: Sequence[str] = (),
    guess: Guess | None = None,
    is_local: bool = True,
    patience: Patience | None = None,
    is_behind_proxy: bool = False,
) -> Iterator[Running]:
    """Serve models until the end of this context."""
    said: list[str] = []
    loops: list[asyncio.AbstractEventLoop] = []
    limits = limits or Limits()
    known = ApiKeys(keys, patience=patience)
    service = Service(Catalogue(models, guess=guess), limits=limits, keys=known, say=said.append)
    names = Names(is_local=is_local, origins=origins)
    app = build_app(service, names=names, origins=origins, say=said.append)
    server = Drain(app, service, deadline_s=limits.deadline_s, is_behind_proxy=is_behind_proxy)
    started = threading.Event()

    def note() -> None:
        loops.append(asyncio.get_running_loop())
        started.set()

    with listen("127.0.0.1", 0) as bound:
        port = bound.getsockname()[1]
        thread = threading.Thread(target=lambda: server.serve_on(bound, on_start=note))
        thread.start()
        try:
            assert started.wait(DEADLINE_S)
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=DEADLINE_S) as client:
                yield Running(service=service, client=client, said=said, loop=loops[0])
        finally:
            server.should_exit = True
            thread.join(DEADLINE_S)
