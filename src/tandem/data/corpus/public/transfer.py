"""One attempt at bringing the bytes of an archive over HTTP, from where the last one stopped."""

import http.client
import os
import socket
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from urllib.parse import urlsplit

from tandem.data.corpus.public.entry import Archive
from tandem.errors import TandemError
from tandem.progress import Bar, Progress

__all__ = ["Cut", "PartialFile", "Unreachable", "transfer"]

_TIMEOUT_S = 60
_CHUNK_BYTES = 1 << 18
_MAY_PASS = {408, 425, 429, 500, 502, 503, 504}
_HOPELESS = (socket.gaierror, ConnectionRefusedError, ssl.SSLCertVerificationError)


class Cut(Exception):  # noqa: N818 - not an error: the caller tries again
    """The transfer failed in a way that may pass."""


class Unreachable(Cut):
    """There is no way to the server at present."""


@dataclass(frozen=True, slots=True)
class PartialFile:
    """What has come so far, and the server's mark of the version that it belongs to."""

    path: Path

    @property
    def version(self) -> Path:
        """The file with the server's mark; without it nothing can be resumed."""
        return self.path.with_name(f"{self.path.name}.version")

    def size(self) -> int:
        """Bytes from which a transfer can go on."""
        return self.path.stat().st_size if self.path.exists() and self.version.exists() else 0

    def clear(self) -> None:
        """Forget what has come so far."""
        self.version.unlink(missing_ok=True)
        self.path.unlink(missing_ok=True)


def transfer(archive: Archive, partial: PartialFile, progress: Progress) -> None:
    """Add to `partial` until it is whole; raises Cut where it is not, with what came kept if possible."""
    have = partial.size()
    try:
        response = _send(archive.url, partial, have)
    except urllib.error.HTTPError as error:
        with error:
            _judge_status(archive.url, partial, have, error)
        return
    except urllib.error.URLError as error:
        kind = Unreachable if isinstance(error.reason, _HOPELESS) else Cut
        raise kind(f"no connection to {urlsplit(archive.url).hostname}: {error.reason}") from error
    except (http.client.HTTPException, OSError) as error:
        raise Cut(f"no answer: {_reason(error)}") from error
    with response:
        if response.status != http.HTTPStatus.PARTIAL_CONTENT:
            have = 0
            partial.clear()
            _keep_version(partial, response.headers)
        total = _read_total(response.headers, have)
        _check_total(archive, total)
        with progress.bar(f"Downloading {archive.url.rsplit('/', 1)[-1]}", total=total, unit="B") as bar:
            bar.advance(have)
            _append(partial.path, response, bar)
    _check_end(partial, total)


def _send(url: str, partial: PartialFile, have: int) -> http.client.HTTPResponse:
    headers = {"Accept-Encoding": "identity", "User-Agent": "tandem-nmt"}
    if have:
        headers |= {"Range": f"bytes={have}-", "If-Range": partial.version.read_text(encoding="latin-1")}
    request = urllib.request.Request(url, headers=headers)  # noqa: S310 - the caller checks the scheme
    response = urllib.request.urlopen(request, timeout=_TIMEOUT_S)  # noqa: S310
    assert isinstance(response, http.client.HTTPResponse)
    return response


def _judge_status(url: str, partial: PartialFile, have: int, error: urllib.error.HTTPError) -> None:
    """Return where the file is whole already; raise in every other case."""
    if error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
        if error.headers.get("Content-Range") == f"bytes */{have}":
            return
        partial.clear()
        raise Cut("the server has another version now")
    if error.code in _MAY_PASS:
        raise Cut(f"the server answered {error.code} {error.reason}")
    raise TandemError(
        f"{url} cannot be downloaded: the server answered {error.code} {error.reason}; "
        "its publisher may have moved it."
    )


def _keep_version(partial: PartialFile, headers: Message) -> None:
    """Note a strong ETag or the date, to ask If-Range with; with neither, a cut download starts over."""
    mark = headers.get("ETag", "")
    if not mark.startswith('"'):
        mark = headers.get("Last-Modified", "")
    if mark:
        partial.version.write_text(mark, encoding="latin-1")


def _read_total(headers: Message, have: int) -> int | None:
    span, _, total = headers.get("Content-Range", "").partition("/")
    if span and not span.startswith(f"bytes {have}-"):
        raise Cut(f"the server sent {span} instead of what follows byte {have}")
    if total.isdigit():
        return int(total)
    length = headers.get("Content-Length", "")
    return have + int(length) if length.isdigit() else None


def _check_total(archive: Archive, total: int | None) -> None:
    if None not in {archive.size_bytes, total} and archive.size_bytes != total:
        raise TandemError(
            f"{archive.url} has {total:,} bytes, not the {archive.size_bytes:,} expected: its publisher has "
            "replaced it, or something on the way answers in its place."
        )


def _append(path: Path, response: http.client.HTTPResponse, bar: Bar) -> None:
    with path.open("ab") as file:
        for chunk in _chunks(response):
            file.write(chunk)
            bar.advance(len(chunk))
        file.flush()
        os.fsync(file.fileno())


def _chunks(response: http.client.HTTPResponse) -> Iterator[bytes]:
    while True:
        try:
            chunk = response.read1(_CHUNK_BYTES)
        except (http.client.HTTPException, OSError) as error:
            raise Cut(f"the connection broke: {_reason(error)}") from error
        if not chunk:
            return
        yield chunk


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__


def _check_end(partial: PartialFile, total: int | None) -> None:
    size = partial.path.stat().st_size
    if total is not None and size > total:
        partial.clear()
    if total is not None and size != total:
        raise Cut(f"the connection ended after {size:,} of {total:,} bytes")
