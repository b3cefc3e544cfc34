"""A web server on loopback that serves archives, and misbehaves when told to."""

import io
import tarfile
import threading
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Self

import pytest


@dataclass
class Request:
    path: str
    range: str | None
    if_range: str | None


@dataclass
class Site:
    """What the server holds, how it behaves, and what it was asked."""

    address: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    marks: dict[str, str] = field(default_factory=lambda: {"ETag": '"one"'})
    ignores_range: bool = False
    chunked: bool = False
    cuts: list[int] = field(default_factory=list)
    """Bytes of the body after which each coming answer breaks off."""
    statuses: list[int] = field(default_factory=list)
    """What each coming request is answered with instead of the file."""
    redirects: dict[str, str] = field(default_factory=dict)
    stall: threading.Event = field(default_factory=threading.Event)
    """An answer that is cut waits for this before the connection closes."""
    requests: list[Request] = field(default_factory=list)

    def publish(self, name: str, data: bytes) -> str:
        self.files[f"/{name}"] = data
        return f"{self.address}/{name}"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    site: Site

    def do_GET(self) -> None:
        site = self.site
        range_, if_range = self.headers["Range"], self.headers["If-Range"]
        site.requests.append(Request(path=self.path, range=range_, if_range=if_range))
        self.close_connection = True
        if self.path in site.redirects:
            self.send_response(302)
            self.send_header("Location", site.redirects[self.path])
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif site.statuses:
            self.send_error(site.statuses.pop(0))
        elif self.path not in site.files:
            self.send_error(404)
        else:
            self.send_file(site.files[self.path], range_, if_range)

    def send_file(self, data: bytes, range_: str | None, if_range: str | None) -> None:
        site, start = self.site, 0
        if range_ and not site.ignores_range and if_range in site.marks.values():
            start = int(range_.removeprefix("bytes=").removesuffix("-"))
        if start and start >= len(data):
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{len(data)}")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        for name, mark in site.marks.items():
            self.send_header(name, mark)
        body = data[start:]
        sent = body[: site.cuts.pop(0)] if site.cuts else body
        if site.chunked:
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(sent), sent) + (b"0\r\n\r\n" if sent == body else b""))
        else:
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(sent)
        if sent != body:
            site.stall.wait()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()
    site.stall.set()
    handler = type("SiteHandler", (Handler,), {"site": site})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        site.address = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield site
        server.shutdown()
        thread.join()


@dataclass
class Packer:
    """Real archives, made in memory."""

    def tgz(self, files: Mapping[str, bytes], links: Mapping[str, str] | None = None) -> bytes:
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
            for name, target in (links or {}).items():
                info = tarfile.TarInfo(name)
                info.type, info.linkname = tarfile.SYMTYPE, target
                archive.addfile(info)
            for name, data in files.items():
                info = tarfile.TarInfo(name)
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
        return buffer.getvalue()

    def zip(self, files: Mapping[str, bytes]) -> bytes:
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in files.items():
                archive.writestr(name, data)
        return buffer.getvalue()


@pytest.fixture
def pack() -> Packer:
    return Packer()


class Spoken:
    """Progress that remembers what it was told."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.bars: list[tuple[str, int | None]] = []
        self.advanced = 0

    def bar(self, task: str, *, total: int | None = None, unit: str = "") -> Self:  # noqa: ARG002
        self.bars.append((task, total))
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to close."""

    def advance(self, amount: int) -> None:
        self.advanced += amount

    def note(self, text: str) -> None:
        self.said.append(text)

    def say(self, text: str) -> None:
        self.said.append(text)


@pytest.fixture
def spoken() -> Spoken:
    return Spoken()


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"
