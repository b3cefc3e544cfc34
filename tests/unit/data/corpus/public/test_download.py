"""Downloads that are cut, lied to, refused, repeated and killed."""

from __future__ import annotations

import hashlib
import json
import random
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tandem.data.corpus.public.download import download, find_cache
from tandem.data.corpus.public.entry import Archive
from tandem.errors import TandemError

if TYPE_CHECKING:
    from tests.unit.data.corpus.public.conftest import Site, Spoken

DATA = random.Random(1).randbytes(300_000)
SHA = hashlib.sha256(DATA).hexdigest()


class Waits(list[float]):
    """The pauses that were asked for, none of them taken."""

    def __call__(self, seconds: float) -> None:
        self.append(seconds)


@pytest.fixture
def waits() -> Waits:
    return Waits()


def leftovers(cache: Path) -> set[str]:
    return {path.name.partition("-")[2] for path in (cache / "archives").iterdir() if path.suffix != ".lock"}


def test_a_whole_download_is_kept_with_its_checksum(site: Site, cache: Path, spoken: Spoken) -> None:
    url = site.publish("news.tgz", DATA)
    got = download(Archive(url=url), cache, progress=spoken)
    assert got.path.read_bytes() == DATA
    assert (got.bytes, got.sha256) == (len(DATA), SHA)
    record = json.loads(got.path.with_name(f"{got.path.name}.json").read_bytes())
    assert record == {"bytes": len(DATA), "sha256": SHA, "url": url}
    assert leftovers(cache) == {"news.tgz", "news.tgz.json"}
    assert spoken.bars == [("Downloading news.tgz", len(DATA))]
    assert spoken.advanced == len(DATA)


def test_what_is_in_the_cache_is_not_asked_for_again(site: Site, cache: Path) -> None:
    archive = Archive(url=site.publish("news.tgz", DATA))
    first = download(archive, cache)
    assert download(archive, cache) == first
    assert len(site.requests) == 1


def test_a_cut_download_goes_on_where_it_stopped(
    site: Site, cache: Path, waits: Waits, spoken: Spoken
) -> None:
    site.cuts = [100_000, 50_000]
    got = download(Archive(url=site.publish("a", DATA), sha256=SHA), cache, wait=waits, progress=spoken)
    assert got.path.read_bytes() == DATA
    asked = [(request.range, request.if_range) for request in site.requests]
    assert asked == [(None, None), ("bytes=100000-", '"one"'), ("bytes=150000-", '"one"')]
    assert len(waits) == 2
    assert "after 100,000 of 300,000 bytes" in spoken.said[0]


@pytest.mark.parametrize(
    ("marks", "asked_with"),
    [
        ({"Last-Modified": "Wed, 21 Oct 2015 07:28:00 GMT"}, "Wed, 21 Oct 2015 07:28:00 GMT"),
        (
            {"ETag": 'W/"weak"', "Last-Modified": "Wed, 21 Oct 2015 07:28:00 GMT"},
            "Wed, 21 Oct 2015 07:28:00 GMT",
        ),
        ({"ETag": 'W/"weak"'}, None),
        ({}, None),
    ],
)
def test_resuming_needs_a_mark_that_proves_the_version(
    site: Site, cache: Path, waits: Waits, marks: dict[str, str], asked_with: str | None
) -> None:
    site.marks, site.cuts = marks, [100_000]
    got = download(Archive(url=site.publish("a", DATA)), cache, wait=waits)
    assert got.sha256 == SHA
    assert site.requests[1].if_range == asked_with
    assert site.requests[1].range == ("bytes=100000-" if asked_with else None)


@pytest.mark.parametrize("chunked", [False, True])
def test_a_server_that_ignores_ranges_is_read_from_the_start(
    site: Site, cache: Path, waits: Waits, chunked: bool
) -> None:
    site.ignores_range, site.cuts, site.chunked = True, [100_000], chunked
    assert download(Archive(url=site.publish("a", DATA)), cache, wait=waits).path.read_bytes() == DATA
    assert [request.range for request in site.requests] == [None, "bytes=100000-"]


def test_a_file_that_changed_meanwhile_comes_whole_in_its_new_version(
    site: Site, cache: Path, waits: Waits
) -> None:
    url = site.publish("a", DATA)
    site.cuts = [100_000]
    new = DATA[::-1]

    def change(_: float) -> None:
        site.files["/a"], site.marks = new, {"ETag": '"two"'}

    assert download(Archive(url=url), cache, wait=change).path.read_bytes() == new


def test_giving_up_keeps_what_came_for_the_next_run(site: Site, cache: Path, waits: Waits) -> None:
    archive = Archive(url=site.publish("a", DATA))
    site.cuts = [100_000, *[0] * 5]
    with pytest.raises(TandemError, match=r"/a cannot be downloaded .* goes on after 100,000 bytes"):
        download(archive, cache, wait=waits)
    assert waits == [2, 4, 8, 16, 30]
    assert download(archive, cache, wait=waits).path.read_bytes() == DATA
    assert site.requests[-1].range == "bytes=100000-"


def test_attempts_that_bring_something_never_run_out(site: Site, cache: Path, waits: Waits) -> None:
    site.cuts = [10_000] * 25
    assert download(Archive(url=site.publish("a", DATA)), cache, wait=waits).sha256 == SHA


def test_a_download_killed_after_its_last_byte_is_accepted(site: Site, cache: Path, waits: Waits) -> None:
    archive = Archive(url=site.publish("a", DATA))
    got = download(archive, cache)
    got.path.rename(got.path.with_name(f"{got.path.name}.part"))
    got.path.with_name(f"{got.path.name}.part.version").write_text('"one"')
    assert download(archive, cache, wait=waits).path.read_bytes() == DATA
    assert waits == []


def test_more_bytes_than_the_server_has_are_thrown_away(site: Site, cache: Path, waits: Waits) -> None:
    archive = Archive(url=site.publish("a", DATA))
    got = download(archive, cache)
    got.path.unlink()
    got.path.with_name(f"{got.path.name}.part").write_bytes(DATA + b"more")
    got.path.with_name(f"{got.path.name}.part.version").write_text('"one"')
    assert download(archive, cache, wait=waits).path.read_bytes() == DATA


@pytest.mark.parametrize("cuts", [[], [100_000]])
def test_answers_without_a_length_are_read_to_their_end(
    site: Site, cache: Path, waits: Waits, cuts: list[int]
) -> None:
    site.chunked, site.cuts = True, cuts
    assert download(Archive(url=site.publish("a", DATA)), cache, wait=waits).path.read_bytes() == DATA


def test_redirects_are_followed(site: Site, cache: Path) -> None:
    site.redirects["/old"] = site.publish("new", DATA)
    assert download(Archive(url=f"{site.address}/old"), cache).sha256 == SHA


def test_a_bad_checksum_leaves_nothing_and_names_both(site: Site, cache: Path) -> None:
    expected = "0" * 64
    with pytest.raises(TandemError) as caught:
        download(Archive(url=site.publish("a", DATA), sha256=expected), cache)
    assert expected in str(caught.value)
    assert SHA in str(caught.value)
    assert leftovers(cache) == set()


def test_another_size_than_expected_is_refused_before_the_bytes_come(site: Site, cache: Path) -> None:
    with pytest.raises(TandemError, match=r"has 300,000 bytes, not the 5 expected"):
        download(Archive(url=site.publish("a", DATA), size_bytes=5), cache)
    assert leftovers(cache) <= {"a.part.version"}


def test_a_file_that_its_publisher_replaced_is_refused_until_the_record_is_deleted(
    site: Site, cache: Path
) -> None:
    archive = Archive(url=site.publish("a", DATA))
    got = download(archive, cache)
    got.path.unlink()
    site.files["/a"] = b"something else"
    record = got.path.with_name(f"{got.path.name}.json")
    with pytest.raises(TandemError, match=f"delete {record} to accept the new file"):
        download(archive, cache)
    record.unlink()
    assert download(archive, cache).path.read_bytes() == b"something else"


def test_a_damaged_archive_in_the_cache_is_fetched_again(site: Site, cache: Path, spoken: Spoken) -> None:
    archive = Archive(url=site.publish("a", DATA))
    path = download(archive, cache).path
    path.write_bytes(DATA[:-1] + b"x")
    assert download(archive, cache, progress=spoken).path.read_bytes() == DATA
    assert "is damaged; downloading it again" in spoken.said[0]


@pytest.mark.parametrize("status", [401, 403, 404, 410])
def test_a_lasting_refusal_is_one_sentence_at_once(
    site: Site, cache: Path, waits: Waits, status: int
) -> None:
    site.statuses = [status]
    with pytest.raises(TandemError, match=rf"/a cannot be downloaded: the server answered {status}"):
        download(Archive(url=site.publish("a", DATA)), cache, wait=waits)
    assert waits == []


def test_a_passing_refusal_is_tried_again(site: Site, cache: Path, waits: Waits) -> None:
    site.statuses = [503, 429, 500]
    assert download(Archive(url=site.publish("a", DATA)), cache, wait=waits).sha256 == SHA
    assert waits == [2, 4, 8]


def test_a_refused_connection_is_one_sentence_at_once(cache: Path, waits: Waits) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with pytest.raises(TandemError, match=r"no connection to 127\.0\.0\.1: .*refused.*check the network"):
        download(Archive(url=f"http://127.0.0.1:{port}/a"), cache, wait=waits)
    assert waits == []


def test_a_name_that_does_not_resolve_is_one_sentence_at_once(cache: Path, waits: Waits) -> None:
    with pytest.raises(TandemError, match=r"no connection to corpora\.invalid: .*check the network"):
        download(Archive(url="http://corpora.invalid/a"), cache, wait=waits)
    assert waits == []


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://127.0.0.1/a", "a.tgz", "http:///a"])
def test_only_the_web_is_downloaded_from(cache: Path, url: str) -> None:
    with pytest.raises(TandemError, match="not a web address"):
        download(Archive(url=url), cache)


@pytest.mark.parametrize("path", ["..", "%2e%2e%2fup", "a/..", "x" * 300, "ä?b=/../../c", ""])
def test_no_address_leads_out_of_the_cache(site: Site, cache: Path, path: str) -> None:
    site.statuses = [404]
    with pytest.raises(TandemError):
        download(Archive(url=f"{site.address}/{path}".replace("ä", "%C3%A4")), cache)
    assert {found.name for found in cache.parent.iterdir()} == {"cache"}
    assert {found.name for found in cache.iterdir()} == {"archives"}


def test_two_downloads_of_one_archive_do_not_mix(site: Site, cache: Path) -> None:
    archive = Archive(url=site.publish("a", DATA))
    site.cuts = [1000]

    def meanwhile(_: float) -> None:
        with pytest.raises(TandemError, match="Another process is downloading"):
            download(archive, cache)

    assert download(archive, cache, wait=meanwhile).sha256 == SHA
    assert len(site.requests) == 2


def test_a_killed_download_goes_on_where_it_was(site: Site, cache: Path) -> None:
    program = (
        "import sys; from pathlib import Path\n"
        "from tandem.data.corpus.public.download import download\n"
        "from tandem.data.corpus.public.entry import Archive\n"
        "from tandem.progress import Silent\n"
        "class Counting(Silent):\n"
        "    done = 0\n"
        "    def advance(self, amount):\n"
        "        self.done += amount\n"
        "        if self.done == 200_000: print('came', flush=True)\n"
        "download(Archive(url=sys.argv[1]), Path(sys.argv[2]), progress=Counting())\n"
    )
    url = site.publish("a", DATA)
    site.cuts = [200_000]
    site.stall.clear()
    with subprocess.Popen([sys.executable, "-c", program, url, str(cache)], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"came\n"
        child.kill()
    site.stall.set()
    assert download(Archive(url=url), cache).path.read_bytes() == DATA
    resumed = int((site.requests[1].range or "0").strip("bytes=-"))
    assert 0 < resumed <= 200_000


def test_the_cache_is_where_the_environment_says() -> None:
    assert find_cache({"TANDEM_CACHE": "/somewhere"}) == Path("/somewhere")
    assert find_cache({}) == Path.home() / ".cache" / "tandem"
