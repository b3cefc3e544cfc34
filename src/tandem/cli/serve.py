"""`tandem serve`: models behind an HTTP API and a page."""

# Imports wait until a command runs, so that --help answers at once.

import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from socket import socket
from typing import TYPE_CHECKING, Annotated, Literal, NoReturn, TypeAlias

import typer

from tandem.cli.searching import WholeLinesOption
from tandem.errors import TandemError

if TYPE_CHECKING:
    from tandem.serve.keys import ApiKeys
    from tandem.serve.limits import Limits
    from tandem.serve.served import ServedModel
    from tandem.translate.open import EngineName

__all__ = ["name_models", "serve"]

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
ORIGIN = re.compile(r"https?://[A-Za-z0-9.:\[\]-]+")

MOST_DEADLINE_S = 3_600.0

WARM_UP = "Hello."
"""Translated once before the first request: what a model lacks shows then."""

UNKNOWN = "und"
"""The code of a language that a model does not tell."""


ThreadsOption: TypeAlias = Annotated[
    int | None, typer.Option(min=1, help="Processor threads of each model; as many as cores if not given.")
]


def serve(
    models: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL|NAME=MODEL ...",
            help="Runs, checkpoints, bundles or exported folders; named after the folder where no name is given.",
        ),
    ],
    *,
    host: Annotated[
        str, typer.Option(help="Address to listen on; 0.0.0.0 is every address of this machine.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65_535, help="Port to listen on; 0 for any free one.")
    ] = 8000,
    api_keys_file: Annotated[
        Path | None, typer.Option(help="File of API keys, one a line: requests must bring one of them.")
    ] = None,
    cors: Annotated[
        list[str] | None,
        typer.Option(help="Origin whose pages may use the API, as https://example.org; may be repeated."),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(help="Name by which a proxy on this machine gives it out; may be repeated."),
    ] = None,
    queue: Annotated[int, typer.Option(min=1, help="Lines that may wait for a model.")] = 2_000,
    deadline: Annotated[
        float, typer.Option(min=0.1, max=MOST_DEADLINE_S, help="Seconds that a request may take.")
    ] = 30.0,
    most_characters: Annotated[int, typer.Option(min=1, help="Characters of a request.")] = 20_000,
    most_sentences: Annotated[int, typer.Option(min=1, help="Lines of a request.")] = 500,
    engine: Annotated[
        Literal["auto", "torch", "ctranslate2"],
        typer.Option(help="torch, ctranslate2, or auto: what suits model and device."),
    ] = "auto",
    device: Annotated[str, typer.Option(help="cpu, cuda, or auto: a GPU where there is one.")] = "auto",
    threads: ThreadsOption = None,
    whole_lines: WholeLinesOption = False,
) -> None:
    """Translate over HTTP: an API, LibreTranslate's as well, and a page at / to try it. Ctrl-C or SIGTERM ends."""
    from tandem.serve.keys import ApiKeys, read_keys
    from tandem.serve.limits import Limits
    from tandem.web.listening import is_loopback, listen
    from tandem.web.names import check_names

    named = name_models(models)
    keys = read_keys(api_keys_file) if api_keys_file else ApiKeys()
    limits = Limits(characters=most_characters, sentences=most_sentences, queue=queue, deadline_s=deadline)
    _check_origins(cors or [])
    check_names(allow_host or [])
    with listen(host, port) as bound:
        if not keys.are_needed and not is_loopback(bound):
            _say("warning: anyone who reaches this address can translate: ask for keys with --api-keys-file.")
        opened = [
            _open(name, path, engine=engine, device=device, threads=threads, sentences=not whole_lines)
            for name, path in named.items()
        ]
        _serve(opened, bound, limits=limits, keys=keys, origins=cors or [], allowed=allow_host or [])


def _serve(
    models: Sequence["ServedModel"],
    bound: socket,
    *,
    limits: "Limits",
    keys: "ApiKeys",
    origins: Sequence[str] = (),
    allowed: Sequence[str] = (),
) -> None:
    from tandem.serve.app import Service, build_app
    from tandem.serve.catalogue import Catalogue
    from tandem.serve.language import build_guess
    from tandem.serve.server import serve_app
    from tandem.web.listening import address_of, is_loopback
    from tandem.web.names import Names

    service = Service(Catalogue(models, guess=build_guess()), limits=limits, keys=keys, say=_say)
    names = Names(is_local=is_loopback(bound), allowed=allowed, origins=origins)
    serve_app(
        build_app(service, names=names, origins=origins, say=_say),
        service,
        bound,
        deadline_s=limits.deadline_s,
        is_behind_proxy=bool(allowed),
        on_start=lambda: _say(f"Translating at {address_of(bound)}"),
    )
    _leave(service.unanswered)


def _leave(unanswered: int) -> NoReturn:
    """End at once: an ordinary exit would wait for translations that nobody waits for any more."""
    if unanswered:
        _say(f"error: The server ended before {unanswered:,} requests were answered.")
    else:
        _say("Ended: every request that was taken on is answered.")
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1 if unanswered else 0)


def _open(
    name: str, path: Path, *, engine: "EngineName", device: str, threads: int | None, sentences: bool
) -> "ServedModel":
    from tandem.cli.bars import Bars
    from tandem.cli.library import load_translator
    from tandem.serve.served import ServedModel

    with Bars() as bars, bars.bar(f"opening {name}"):
        translator = load_translator(
            path, engine=engine, device=device, threads=threads, sentences=sentences, progress=bars
        )
        translator.translate([WARM_UP])
    source, target = translator.languages
    return ServedModel(
        name=name,
        source=source or UNKNOWN,
        target=target or UNKNOWN,
        translator=translator,
        wish=translator.wish,
    )


def name_models(words: Sequence[str]) -> dict[str, Path]:
    """Names and paths of the models on the command line."""
    named: dict[str, Path] = {}
    for word in words:
        name, equals, path = word.partition("=")
        if not equals or Path(word).exists():
            name, path = Path(word).resolve().name, word
        if not NAME.fullmatch(name):
            raise TandemError(
                f"A model cannot be called {name!r}: use letters, digits, - _ and ., as in mine={path}."
            )
        if name in named:
            raise TandemError(f"Two models are called {name!r}: give one another name, as in other={path}.")
        named[name] = Path(path)
    return named


def _check_origins(origins: Sequence[str]) -> None:
    for origin in origins:
        if origin != "*" and not ORIGIN.fullmatch(origin):
            raise TandemError(
                f"{origin!r} is not an origin: write it as https://example.org, without a path."
            )


def _say(line: str) -> None:
    typer.echo(line, err=True)
