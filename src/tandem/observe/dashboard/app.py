"""The dashboard's application: what each path answers."""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import TypeAlias, TypeVar

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from tandem.errors import TandemError
from tandem.observe.compare.overlay import overlay_figure, overlay_title
from tandem.observe.dashboard.assets import page_routes
from tandem.observe.dashboard.board import encode
from tandem.observe.dashboard.drawing import draw_stretch, figure_note
from tandem.observe.dashboard.follower import Follower, Pace
from tandem.observe.dashboard.priority import step_back
from tandem.observe.dashboard.refusal import refusal_page
from tandem.observe.dashboard.roster import Roster
from tandem.observe.dashboard.stream import Stream
from tandem.observe.figures import FIGURES
from tandem.observe.sinks.prometheus import CONTENT_TYPE, metrics_text
from tandem.observe.watch.state import WatchState
from tandem.web.guard import POLICY, Guard
from tandem.web.names import Names
from tandem.web.packing import packed_json
from tandem.web.refusal import Refusal, refusal_handlers
from tandem.web.token import Token

__all__ = ["Dashboard", "build_app"]

MOST_STREAMS = 64
MOST_COMPARED = 16
MOST_DRAWERS = 2
"""Requests that are drawn at once; the others wait."""
LOOK_S = 2.0
"""Between two looks at the folders of runs."""
SCRAPED_S = 90.0
"""How long a run is followed after it was asked for by a scraper, which comes back in less."""
OPENING_S = 2.0
"""How long a scraper waits for runs that are being read."""

Answer: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]
Done = TypeVar("Done")


class Dashboard:
    """Answers requests about the runs of a roster."""

    def __init__(self, roster: Roster, *, pace: Pace | None = None) -> None:
        self.ending = asyncio.Event()
        """Set when the server ends: streams end then."""
        self._roster, self._pace = roster, pace or Pace()
        self._followers: dict[str, Follower] = {}
        self._listed: list[str] = []
        """Keys of those that are there; one that is gone is kept while somebody looks at it."""
        self._looking = asyncio.Lock()
        self._looked_at = -math.inf
        self._streams = 0
        self._drawers = asyncio.Semaphore(MOST_DRAWERS)
        # Of its own, so that the end waits for none of them.
        self._threads = ThreadPoolExecutor(MOST_DRAWERS + 2, "dashboard", initializer=step_back)

    def routes(self) -> list[Route]:
        """The paths of the API."""
        return [
            Route("/healthz", self.health),
            Route("/metrics", self.metrics),
            Route("/api/runs", self.runs),
            Route("/api/runs/{key}/stream", self.stream),
            Route("/api/runs/{key}/figures/{name}", self.figure),
            Route("/api/compare", self.compare),
        ]

    async def health(self, _request: Request) -> Response:
        """Tell that the server answers."""
        return JSONResponse({"status": "ok"})

    async def runs(self, request: Request) -> Response:
        """List the runs."""
        await self._look()
        followers = [self._followers[key] for key in self._listed]
        return await self._beside(
            lambda: packed_json(request, encode({"runs": [each.summary() for each in followers]}))
        )

    async def metrics(self, _request: Request) -> Response:
        """Tell where the runs stand, for Prometheus."""
        followers = await self._opened(SCRAPED_S)
        text = await self._beside(lambda: _metrics(followers))
        return PlainTextResponse(text, headers={"Content-Type": CONTENT_TYPE})

    async def stream(self, request: Request) -> Response:
        """Tell of a run as it goes on."""
        follower = await self._follower(request.path_params["key"])
        asked = {name for name in request.query_params.get("figures", "").split(",") if name}
        unknown = sorted(asked - FIGURES.keys())
        if unknown:
            raise Refusal(404, f"There is no figure {unknown[0]!r}: take some of {', '.join(FIGURES)}.")
        if self._streams >= MOST_STREAMS:
            sentence = f"{MOST_STREAMS} pages are open already: close one, and this one opens by itself."
            raise Refusal(503, sentence, headers={"Retry-After": "5"})
        return _Counted(self, Stream(follower, asked, ending=self.ending))

    async def figure(self, request: Request) -> Response:
        """Draw a stretch of a figure anew."""
        follower, name = await self._follower(request.path_params["key"]), request.path_params["name"]
        if name not in FIGURES:
            raise Refusal(404, f"There is no figure {name!r}: take one of {', '.join(FIGURES)}.")
        begin, end = _stretch(request)

        def draw() -> Response | None:
            series = follower.series()
            if math.isinf(begin) and math.isinf(end):
                whole = FIGURES[name](series)
                return None if whole is None else packed_json(request, encode(figure_note(name, whole)))
            note = draw_stretch(name, series, begin, end)
            return None if note is None else packed_json(request, encode(note))

        drawn = await self._drawn(draw)
        if drawn is None:
            raise Refusal(404, f"The run has nothing to show in the figure {name!r} there.")
        return drawn

    async def compare(self, request: Request) -> Response:
        """Lay runs over one another."""
        keys = [key for key in request.query_params.get("runs", "").split(",") if key][:MOST_COMPARED]
        followers = {key: await self._follower(key) for key in dict.fromkeys(keys)}
        quantity = request.query_params.get("quantity", "loss")
        against = request.query_params.get("against", "steps")

        def draw() -> Response | None:
            named = {key: each.series() for key, each in followers.items()}
            figure = overlay_figure(named, quantity=quantity, against=against)
            if figure is None:
                return None
            title = f"{overlay_title(quantity)} against {against}"
            return packed_json(request, encode(figure_note(quantity, figure, title=title)))

        drawn = await self._drawn(draw)
        if drawn is None:
            raise Refusal(404, f"None of these runs has anything to show of {quantity!r}.")
        return drawn

    async def _drawn(self, draw: Callable[[], Done]) -> Done:
        async with self._drawers:
            try:
                return await self._beside(draw)
            except TandemError as error:
                raise Refusal(404, str(error)) from error
            except OSError as error:
                sentence = f"The log cannot be read now ({error.strerror or error}): try again later."
                raise Refusal(503, sentence) from error

    async def _beside(self, work: Callable[[], Done]) -> Done:
        """Do what reads or reckons in a thread, so that the others are answered meanwhile."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    async def _look(self) -> None:
        """Look at the folders again, where the last time is long enough ago."""
        # Who comes meanwhile waits for what is found.
        async with self._looking:
            if time.monotonic() - self._looked_at >= LOOK_S:
                self._looked_at = time.monotonic()
                self._take(await self._beside(self._roster.look))

    def _take(self, found: Mapping[str, Path]) -> None:
        for key, run in found.items():
            if key not in self._followers:
                self._followers[key] = Follower(run, key=key, pace=self._pace)
        self._listed = list(found)
        for key in self._followers.keys() - found.keys():
            # A page that looks at it is told that it is gone.
            if not self._followers[key].board.is_seen:
                del self._followers[key]

    async def _follower(self, key: str) -> Follower:
        if key not in self._listed:
            self._looked_at = -math.inf
        await self._look()
        if key not in self._listed:
            raise Refusal(404, f"There is no run {key!r} here: /api/runs lists those that there are.")
        return self._followers[key]

    async def _opened(self, seconds: float) -> list[Follower]:
        """All runs, each followed for so long from now; those that are being read are waited for a little."""
        await self._look()
        followers = [self._followers[key] for key in self._listed]
        for each in followers:
            each.need(seconds)
        until = time.monotonic() + OPENING_S
        while time.monotonic() < until and not all(each.is_told for each in followers):
            await asyncio.sleep(0.02)
        return followers

    def count_stream(self, change: int) -> None:
        """One stream more or less."""
        self._streams += change


class _Counted(Response):
    """A stream that counts while it is open."""

    def __init__(self, dashboard: Dashboard, answer: Answer) -> None:
        super().__init__()
        self._dashboard, self._answer = dashboard, answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._dashboard.count_stream(1)
        try:
            await self._answer(scope, receive, send)
        finally:
            self._dashboard.count_stream(-1)


def _metrics(followers: list[Follower]) -> str:
    with ExitStack() as stack:
        held = {each.key: stack.enter_context(each.standing()) for each in followers}
        states: dict[str, WatchState] = {key: state for key, state in held.items() if state is not None}
        folders = {each.key: each.run for each in followers}
        return metrics_text(states, now_ns=time.time_ns(), folders=folders)


def _stretch(request: Request) -> tuple[float, float]:
    """From where to where; without an end where none is named."""
    begin, end = _place(request, "from", -math.inf), _place(request, "to", math.inf)
    if begin >= end:
        raise Refusal(400, "from is not before to: write the smaller one first.")
    return begin, end


def _place(request: Request, name: str, default: float) -> float:
    if name not in request.query_params:
        return default
    try:
        value = float(request.query_params[name])
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise Refusal(400, f"{name} is no place on an axis: write a number.")
    return value


def build_app(dashboard: Dashboard, *, names: Names, token: Token | None) -> ASGIApp:
    """The application with API and page."""
    sentences = {404: "There is nothing here: the page is at /."}
    app = Starlette(
        routes=[*dashboard.routes(), *page_routes()],
        exception_handlers=refusal_handlers(sentences, refusal_page),
    )
    # plotly writes styles, and pictures of its own.
    policy = POLICY.format(styles=" 'unsafe-inline'", images=" data:", forms="'self'")
    return Guard(app, names=names, token=token, is_read_only=True, page=refusal_page, policy=policy)
