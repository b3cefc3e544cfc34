"""The real commands `tandem data list` and `data get`; a proxy on loopback answers for the publishers."""

import io
import json
import os
import socket
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tandem.config import load_recipe
from tandem.data.corpus.public.catalogue import CATALOGUE
from tandem.data.corpus.public.entry import parse_languages
from tandem.data.corpus.public.index import read_index

TANDEM = Path(sys.executable).with_name("tandem")
DEV = "http://data.statmt.org/wmt20/translation-task/dev.tgz"
DEV_WITH_KNOWN_CHECKSUM = "http://data.statmt.org/wmt19/translation-task/dev.tgz"
NOT_IN_MTDATA = {
    "iwslt17",
    "multi30k",
    "news-commentary-v9",
    "news-commentary-v11",
    "wmt14-en-de",
    "wmt16-en-de",
}


class Publishers:
    """Every publisher of the world, as a proxy sees them: files by their whole address."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.asked: list[str] = []
        self.address = ""


@pytest.fixture
def publishers() -> Iterator[Publishers]:
    publishers = Publishers()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            publishers.asked.append(self.path)
            data = publishers.files.get(self.path)
            self.send_response(404 if data is None else 200)
            self.send_header("Content-Length", str(len(data or b"")))
            self.end_headers()
            self.wfile.write(data or b"")

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        publishers.address = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield publishers
        server.shutdown()
        thread.join()


# In one test process, or each would make the index for itself.
with_index = pytest.mark.xdist_group("index")


@pytest.fixture(scope="module")
def index_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache that holds the real index of mtdata, made once: it takes a while."""
    cache = tmp_path_factory.mktemp("index")
    assert next(read_index(cache)).startswith('{"did"')
    return cache


def tandem(*words: str, cache: Path, proxy: str = "http://127.0.0.1:9") -> subprocess.CompletedProcess[str]:
    quiet = {name: text for name, text in os.environ.items() if not name.lower().endswith("_proxy")}
    environment = {**quiet, "TANDEM_CACHE": str(cache), "http_proxy": proxy, "https_proxy": proxy}
    return subprocess.run(
        [TANDEM, "data", *words],
        env=environment,
        cwd=cache.parent,
        capture_output=True,
        text=True,
        check=False,
    )


def pack_tgz(files: Mapping[str, str]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(text.encode())
            archive.addfile(info, io.BytesIO(text.encode()))
    return buffer.getvalue()


def newstest() -> bytes:
    sides = {"src.en": ["One & two.", "Three."], "ref.de": ["Eins & zwei.", "Drei."]}
    return pack_tgz(
        {
            f"dev/newstest2019-ende-{side}.sgm": "".join(
                f'<seg id="{number}">{line.replace("&", "&amp;")}</seg>\n'
                for number, line in enumerate(lines, 1)
            )
            for side, lines in sides.items()
        }
    )


def test_get_writes_aligned_text_and_a_second_time_does_nothing(
    publishers: Publishers, tmp_path: Path
) -> None:
    publishers.files[DEV] = newstest()
    cache = tmp_path / "cache"
    done = tandem("get", "newstest2019", cache=cache, proxy=publishers.address)
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "corpora" / "newstest2019"
    assert (folder / "test.en").read_text(encoding="utf-8") == "One & two.\nThree.\n"
    assert (folder / "test.de").read_text(encoding="utf-8") == "Eins & zwei.\nDrei.\n"
    assert DEV in (folder / "README.md").read_text(encoding="utf-8")
    assert "Wrote: corpora/newstest2019 (test 2 pairs)" in done.stdout
    assert "Downloading dev.tgz" in done.stderr

    again = tandem("get", "newstest2019", cache=cache, proxy=publishers.address)
    assert again.returncode == 0
    assert "Already there: corpora/newstest2019 (test 2 pairs)" in again.stdout
    assert publishers.asked == [DEV]


def test_the_lines_that_get_prints_are_a_recipe(publishers: Publishers, tmp_path: Path) -> None:
    publishers.files[DEV] = newstest()
    done = tandem("get", "newstest2019", "--to", "here", cache=tmp_path / "cache", proxy=publishers.address)
    lines = done.stdout.partition("For a recipe:\n")[2]
    path = tmp_path / "recipe.yaml"
    path.write_text(f"name: x\n{lines}  train: [{{tsv: a.tsv}}]\n", encoding="utf-8")
    data = load_recipe(path).recipe.data
    assert data.test[0].source == tmp_path / "here" / "newstest2019" / "test.en"
    assert data.test[0].target == tmp_path / "here" / "newstest2019" / "test.de"


def test_a_file_other_than_the_known_one_is_refused_in_one_sentence(
    publishers: Publishers, tmp_path: Path
) -> None:
    publishers.files[DEV_WITH_KNOWN_CHECKSUM] = newstest()
    done = tandem("get", "newstest2013", cache=tmp_path / "cache", proxy=publishers.address)
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: {DEV_WITH_KNOWN_CHECKSUM} has ")
    assert not (tmp_path / "corpora").exists()


def test_a_file_that_is_gone_is_one_sentence(publishers: Publishers, tmp_path: Path) -> None:
    done = tandem("get", "newstest2019", cache=tmp_path / "cache", proxy=publishers.address)
    assert done.returncode == 1
    [line] = done.stderr.splitlines()
    assert line.startswith(f"error: {DEV} cannot be downloaded: the server answered 404 Not Found; ")


def test_no_network_is_one_sentence(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        proxy = f"http://127.0.0.1:{closed.getsockname()[1]}"
    done = tandem("get", "multi30k", cache=tmp_path / "cache", proxy=proxy)
    assert done.returncode == 1
    [line] = done.stderr.splitlines()
    assert line.startswith("error: https://raw.githubusercontent.com/multi30k/")
    assert "check the network or the proxy and run the same command again" in line


def test_list_shows_size_licence_and_what_is_not_known(tmp_path: Path) -> None:
    done = tandem("list", "wmt", "attention", cache=tmp_path / "cache")
    assert done.returncode == 0
    assert "wmt14-en-de" in done.stdout
    assert "train 4,520,620, valid 3,000, test 3,003" in done.stdout
    assert "1,695.0 MB" in done.stdout
    assert "licence: free for research" in done.stdout
    assert "newstest" not in done.stdout
    assert "download: unknown" in tandem("list", "tatoeba", cache=tmp_path / "cache").stdout
    assert not (tmp_path / "cache").exists()


def test_list_as_json_narrowed_by_languages(tmp_path: Path) -> None:
    done = tandem("list", "--languages", "en-cs", "--json", cache=tmp_path / "cache")
    corpora = {corpus["name"]: corpus for corpus in json.loads(done.stdout)}
    assert "multi30k" in corpora
    assert "wmt14-en-de" not in corpora
    assert corpora["multi30k"]["languages"] == "en-cs"
    assert corpora["multi30k"]["pairs"] == {"train": 29_000, "valid": 1_014, "test": 1_000}


@with_index
def test_the_whole_index_is_searched_and_fetched_from(
    publishers: Publishers, index_cache: Path, tmp_path: Path
) -> None:
    found = tandem("list", "--all", "statmt", "pmindia", "--languages", "bn-en", cache=index_cache)
    name, url = found.stdout.split()
    assert name == "Statmt-pmindia-1-eng-ben"
    publishers.files[url] = "One.\tএক।\n".encode()
    done = tandem("get", name, "--to", str(tmp_path), cache=index_cache, proxy=publishers.address)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / name / "train.bn").read_text(encoding="utf-8") == "এক।\n"
    assert (tmp_path / name / "train.en").read_text(encoding="utf-8") == "One.\n"


@with_index
def test_the_catalogue_agrees_with_the_index_of_mtdata(index_cache: Path) -> None:
    entries = [json.loads(line) for line in read_index(index_cache)]
    members = {tuple(entry.get("in_paths") or ()) for entry in entries}
    urls = {entry["url"] for entry in entries if isinstance(entry["url"], str)} | {DEV_WITH_KNOWN_CHECKSUM}
    for listing in CATALOGUE:
        if listing.name in NOT_IN_MTDATA:
            continue
        for part in (
            part for pair in listing.languages for part in listing.build(parse_languages(pair)).parts
        ):
            assert part.members in members, part
            assert part.archives[0].url in urls, part
