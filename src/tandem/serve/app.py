"""The application: what each path answers."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any

from starlette.applications import Starlette
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from tandem.errors import TandemError
from tandem.serve.answer import build_answer
from tandem.serve.batcher import Batcher, Job, QueueFull
from tandem.serve.body import BodyReader
from tandem.serve.catalogue import Catalogue
from tandem.serve.counted import Counted
from tandem.serve.keys import ApiKeys
from tandem.serve.limits import Limits
from tandem.serve.metrics import CONTENT_TYPE, Metrics
from tandem.serve.openapi import build_openapi
from tandem.serve.order import DetectRequest, build_order, checked
from tandem.serve.page import page_routes
from tandem.translate.translator import Translation
from tandem.web.clients import client_of
from tandem.web.guard import Guard
from tandem.web.names import Names
from tandem.web.refusal import Refusal, refusal_handlers

__all__ = ["Service", "build_app"]

RETRY_S = 1
GONE = 499
"""Nobody is there to see it."""


class Service:
    """Answers requests for the models of a catalogue."""

    def __init__(
        self, catalogue: Catalogue, *, limits: Limits, keys: ApiKeys, say: Callable[[str], None]
    ) -> None:
        """`say` takes a line for each request that is worth one."""
        self.is_draining = False
        """No new work is wanted: the server ends when what it has taken on is done."""
        self.unanswered = 0
        """Requests that were taken on, and given up when the server had to end."""
        self._catalogue = catalogue
        self._limits = limits
        self._keys = keys
        self._body = BodyReader(most_bytes=limits.body_bytes, most_s=limits.deadline_s)
        self._say = say
        self._batchers: dict[str, Batcher] = {}
        self.metrics = Metrics({model.name: partial(self._waiting, model.name) for model in catalogue.models})
        self._openapi = build_openapi(catalogue, limits, keys=keys.are_needed)

    @asynccontextmanager
    async def running(self, _app: Starlette) -> AsyncIterator[None]:
        """Translate until the end of this context."""
        async with AsyncExitStack() as stack:
            for model in self._catalogue.models:
                batcher = Batcher(
                    model.translator,
                    most_lines=self._limits.queue,
                    on_batch=partial(self.metrics.batch, model.name),
                )
                self._batchers[model.name] = await stack.enter_async_context(batcher)
            yield

    def routes(self) -> list[Route]:
        """The paths of the API."""
        return [
            Route("/translate", self.translate, methods=["POST"]),
            Route("/detect", self.detect, methods=["POST"]),
            Route("/languages", self.languages),
            Route("/models", self.models),
            Route("/healthz", self.health),
            Route("/readyz", self.readiness),
            Route("/metrics", self.measured),
            Route("/openapi.json", self.openapi),
        ]

    async def translate(self, request: Request) -> Response:
        """Translate one text or many."""
        fields = await self._fields(request)
        order = build_order(fields, self._catalogue, self._limits)
        if not order.lines:
            return JSONResponse(build_answer(order, []))
        batcher = self._batchers[order.model.name]
        try:
            job = batcher.submit(order.lines, order.wish)
        except QueueFull:
            raise Refusal(
                429,
                "The server has as much to do as it can take: try again in a moment.",
                headers={"Retry-After": str(RETRY_S)},
            ) from None
        self.metrics.open += 1
        try:
            translations = await self._wait(request, job)
        except asyncio.CancelledError:
            self.unanswered += 1
            raise
        finally:
            self.metrics.open -= 1
            batcher.drop(job)
        if translations is None:
            return Response(status_code=GONE)
        return JSONResponse(build_answer(order, translations))

    async def _wait(self, request: Request, job: Job) -> list[Translation] | None:
        """The translations; none where the client has gone away, or a refusal past the deadline."""
        gone = asyncio.create_task(_gone(request))
        try:
            ends: set[asyncio.Future[Any]] = {job.done, gone}
            await asyncio.wait(ends, timeout=self._limits.deadline_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()
        if job.done.done():
            return self._result(job)
        if gone.done():
            self.metrics.gone()
            return None
        raise Refusal(
            503,
            f"The translation was not done within {self._limits.deadline_s:g} s: try again later, or send less.",
            headers={"Retry-After": str(RETRY_S)},
        )

    def _result(self, job: Job) -> list[Translation]:
        try:
            return job.done.result()
        except TandemError as error:
            raise Refusal(422, str(error)) from error
        except Exception as error:
            self._say(f"failed: {type(error).__name__}: {error}")
            raise Refusal(500, "The server failed at this request; its log says why.") from error

    async def detect(self, request: Request) -> Response:
        """Guess the language of a text."""
        asked = checked(DetectRequest, await self._fields(request))
        if self._catalogue.guess is None:
            raise Refusal(
                404, "This server cannot tell languages; it could with: pip install 'tandem-nmt[language]'."
            )
        code, share = await asyncio.to_thread(self._catalogue.guess, asked.q, ())
        return JSONResponse([{"language": code, "confidence": round(100 * share, 1)}])

    async def languages(self, _request: Request) -> Response:
        """List languages."""
        return JSONResponse(self._catalogue.languages())

    async def models(self, _request: Request) -> Response:
        """List models."""
        return JSONResponse({"models": self._catalogue.listing()})

    async def health(self, _request: Request) -> Response:
        """Tell that the server answers."""
        return JSONResponse({"status": "ok"})

    async def readiness(self, _request: Request) -> Response:
        """Tell whether new requests are welcome."""
        if self.is_draining:
            raise Refusal(503, "The server is about to end: it finishes what it has, and takes no more.")
        if not all(batcher.is_alive for batcher in self._batchers.values()):
            raise Refusal(503, "The server has stopped translating: start it again.")
        return JSONResponse({"status": "ready"})

    async def measured(self, _request: Request) -> Response:
        """Tell what was counted."""
        return PlainTextResponse(self.metrics.render(), headers={"Content-Type": CONTENT_TYPE})

    async def openapi(self, _request: Request) -> Response:
        """Describe the API."""
        return JSONResponse(self._openapi)

    async def _fields(self, request: Request) -> dict[str, Any]:
        client = client_of(request.scope)
        has_key = self._keys.check_header(request.headers.get("authorization"), client)
        fields, is_form = await self._body.read(request)
        if is_form and str(fields.get("alternatives", "")).isdecimal():
            fields["alternatives"] = int(fields["alternatives"][:9])
        if not has_key:
            given = fields.get("api_key")
            self._keys.check_field(given if isinstance(given, str) else None, client)
        return fields

    def _waiting(self, name: str) -> int:
        return self._batchers[name].waiting_lines if name in self._batchers else 0


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


SENTENCES = {
    404: "There is nothing here: /openapi.json lists what there is.",
    405: "This path does not take this method: /openapi.json says which it takes.",
}


def build_app(
    service: Service, *, names: Names, origins: Sequence[str] = (), say: Callable[[str], None]
) -> ASGIApp:
    """The application with API and page; pages of `origins` may use it from a browser."""
    routes = [*service.routes(), *page_routes()]
    app: ASGIApp = Starlette(
        routes=routes, lifespan=service.running, exception_handlers=refusal_handlers(SENTENCES)
    )
    if origins:
        app = CORSMiddleware(
            app,
            allow_origins=list(origins),
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type"],
        )
    return Counted(
        Guard(app, names=names),
        paths=[route.path for route in routes],
        metrics=service.metrics,
        say=say,
        is_draining=lambda: service.is_draining,
    )
