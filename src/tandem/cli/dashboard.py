"""`tandem dashboard`: runs as they go on, in a browser."""

# Imports wait until the command runs, so that --help answers at once.

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

__all__ = ["dashboard"]


def dashboard(
    places: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN|FOLDER ...", help="Runs, or folders of runs: new ones appear by themselves."
        ),
    ],
    *,
    host: Annotated[
        str, typer.Option(help="Address to listen on; other than on this machine's own, a token is needed.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65_535, help="Port to listen on; 0 for any free one.")
    ] = 6007,
    token_file: Annotated[
        Path | None,
        typer.Option(help="File whose first line is the token; without it one is made where it is needed."),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(help="Name by which a proxy on this machine gives it out; may be repeated."),
    ] = None,
) -> None:
    """Show runs live in a browser: progress, curves, hosts, translations, answers so far. Ctrl-C ends it."""
    from tandem.observe.dashboard.app import Dashboard, build_app
    from tandem.observe.dashboard.roster import Roster
    from tandem.observe.dashboard.server import serve_dashboard
    from tandem.web.listening import address_of, is_loopback, listen
    from tandem.web.names import Names, check_names
    from tandem.web.token import Token, read_token

    check_names(allow_host or [])
    roster = Roster(places)
    with listen(host, port) as bound:
        is_local = is_loopback(bound)
        token = "" if is_local and token_file is None else read_token(token_file)
        shown = Dashboard(roster)
        names = Names(is_local=is_local, allowed=allow_host or [])
        app = build_app(shown, names=names, token=Token(token) if token else None)
        address = address_of(bound) + (f"?token={token}" if token and token_file is None else "")
        serve_dashboard(
            app,
            shown,
            bound,
            is_behind_proxy=bool(allow_host),
            on_start=lambda: _say(f"Dashboard at {address}"),
        )
    _leave()


def _leave() -> None:
    """End at once: an ordinary exit would wait for what is being read and drawn."""
    _say("Stopped.")
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _say(line: str) -> None:
    typer.echo(line, err=True)
