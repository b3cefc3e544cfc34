"""By which name a server is asked and by whose page: what no page of another site can make its own."""

import re
import socket
from collections.abc import Collection, Iterable
from functools import cache
from ipaddress import ip_address

from starlette.datastructures import Headers

from tandem.errors import TandemError
from tandem.web.refusal import Refusal

__all__ = ["Names", "check_names"]

NAMED = re.compile(r"\[?([^\]]*?)\]?(?::\d+)?")
USUAL_PORT = re.compile(r":(?:80|443)$")
NAME = re.compile(r"(?:[A-Za-z0-9][A-Za-z0-9.-]*|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?")

_ONLY_HERE = (
    "This server answers to localhost only: bind it with --host to reach it by another name, "
    "or tell it the name of the proxy before it with --allow-host."
)
_UNKNOWN_NAME = (
    "This server does not know the name that it is called by: call it by its address, "
    "or start it with --allow-host NAME."
)
_FOREIGN = "Pages of other sites may not ask this server; behind a proxy, start it with --allow-host NAME."


class Names:
    """Names of a server, and the pages that may ask it."""

    def __init__(
        self,
        *,
        is_local: bool,
        allowed: Iterable[str] = (),
        origins: Collection[str] = (),
    ) -> None:
        """`is_local`: bound to loopback.

        `allowed` are names under which a proxy gives it out; pages of `origins` may ask it although they are others'.
        """
        self._is_local = is_local
        self._places = {_place(each) for each in allowed}
        self._allowed = {_name(each) for each in self._places}
        self._origins = frozenset(origins)
        own = socket.gethostname().lower()
        self._host = own.partition(".")[0]
        self._own = {own, f"{self._host}.local"}

    def refusal(self, method: str, headers: Headers) -> Refusal | None:
        """Why a request is refused, if it is."""
        host = headers.get("host", "").lower()
        if self._is_local and not self._is_named_here(_name(host)):
            return Refusal(403, _ONLY_HERE)
        if not self._is_own_page(method, host, headers):
            return Refusal(403, _FOREIGN)
        if not self._is_local and self._is_led_here(_name(host), headers):
            return Refusal(403, _UNKNOWN_NAME)
        return None

    def _is_named_here(self, name: str) -> bool:
        """Whether a name is this machine's: a foreign one that leads here is a page that wants to look in."""
        return _is_loopback(name) or name in self._allowed

    def _is_own_page(self, method: str, host: str, headers: Headers) -> bool:
        """Whether it comes from a page of this server, from one that may, or from no page."""
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        if origin is not None and not self._origins.isdisjoint({origin, "*"}):
            return True
        if site in {"same-origin", "none"}:
            return True
        if origin is not None:
            _, _, place = origin.lower().partition("://")
            return _place(place) in {_place(host), *self._places} and bool(place)
        return site is None or _is_link(method, headers)

    def _is_led_here(self, name: str, headers: Headers) -> bool:
        """Whether it is a name that anyone may have led here, which makes that one's pages the server's own.

        A browser marks what such a page reads in no way.
        """
        if "." not in name or _is_address(name) or _is_loopback(name) or name in self._own | self._allowed:
            return False
        if not self._origins.isdisjoint({headers.get("origin", ""), "*"}):
            return False
        # The system is asked only where it may say yes: that can take a while.
        return name.partition(".")[0] != self._host or name != _full_name()


def _is_link(method: str, headers: Headers) -> bool:
    """Whether somebody follows a link of another site, which gives that site nothing of the answer."""
    opens = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
    return method in {"GET", "HEAD"} and opens


@cache
def _full_name() -> str:
    return socket.getfqdn().lower()


def _place(host: str) -> str:
    """A host with its port, where that is not the usual one."""
    return USUAL_PORT.sub("", host.lower())


def _name(host: str) -> str:
    found = NAMED.fullmatch(host)
    return found[1].lower() if found else ""


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _is_loopback(name: str) -> bool:
    if name == "localhost" or name.endswith(".localhost"):
        return True
    return _is_address(name) and ip_address(name).is_loopback


def check_names(names: Iterable[str]) -> None:
    """Refuse what is no name of a host."""
    for name in names:
        if not NAME.fullmatch(name):
            raise TandemError(
                f"{name!r} is not the name of a host: write it as translate.example.org, or with a port behind it."
            )
