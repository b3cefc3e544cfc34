"""Pushing data through a real receiver in another process, without a network between."""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.prepared import content, make_prepared

from tandem.artefact import building
from tandem.config import load_recipe
from tandem.data.prepare import prepare
from tandem.data.prepared import open_prepared
from tandem.errors import TandemError
from tandem.launch.push import Standing, compare, push
from tandem.launch.ssh import Ssh
from tandem.lock import unused, using
from tandem.progress import SILENT

Way = Callable[[str, list[str]], list[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stub(Ssh):
    """Hosts that are this one: what would run over ssh runs here, as `way` changes it."""

    way: Way = lambda _host, words: words

    def command(self, host: str, words: Sequence[str]) -> list[str]:
        return self.way(host, list(words))


def torn(host: str, words: list[str]) -> list[str]:
    """A connection that carries as many bytes as the host is called, and breaks."""
    relay = shlex.join([sys.executable, "-c", RELAY, host])
    return ["sh", "-c", f"{relay} | {shlex.join(words)}; exit 255"]


RELAY = """
import os, sys
left = int(sys.argv[1])
while left and (data := os.read(0, min(left, 65536))):
    left -= os.write(1, data)
"""


class Noted:
    """Progress that remembers what was said, and how much each bar counted."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.counts: dict[str, int] = {}

    @contextmanager
    def bar(self, task: str, *, total: int | None = None, unit: str = "") -> Iterator["_Bar"]:
        bar = _Bar()
        yield bar
        assert (bar.count, unit) == (total, "B")
        self.counts[task] = bar.count

    def say(self, text: str) -> None:
        self.said.append(text)


class _Bar:
    count = 0

    def advance(self, amount: int) -> None:
        self.count += amount


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return make_prepared(tmp_path / "source")


def send(source: Path, target: Path, *, ssh: Ssh | None = None) -> Noted:
    noted = Noted()
    push(source, ["a"], ssh or Stub(), folder=str(target), progress=noted)
    return noted


def standing(source: Path, target: Path) -> Standing:
    return compare(source, ["a"], Stub(), folder=str(target))["a"]


def total(source: Path) -> int:
    return sum(len(data) for name, data in content(source).items() if not name.endswith("manifest.json"))


def test_a_host_without_data_gets_all_of_it(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "there/prepared"
    assert standing(source, target).state == "missing"
    noted = send(source, target)
    assert content(target) == content(source)
    assert noted.counts == {"Data to a": total(source)}
    assert standing(source, target) == Standing(state="same")


def test_real_prepared_data_opens_there_without_its_clean_text(tmp_path: Path) -> None:
    recipe_file = tmp_path / "tiny.yaml"
    recipe_file.write_text(
        "name: tiny\n"
        "data:\n"
        f"  folder: {tmp_path / 'source'}\n"
        "  train: [{builtin: {pairs: 400}}]\n"
        "  valid: {builtin: {pairs: 50, split: valid}}\n"
        "subword: {vocabulary: 400}\n"
    )
    made = prepare(load_recipe(recipe_file).recipe, workers=1)
    send(made.folder, tmp_path / "there")
    got = open_prepared(tmp_path / "there")
    assert len(got.train()) == len(made.train()) > 0
    assert got.subword().fingerprint == made.subword().fingerprint
    assert got.held_out_text("valid").source == made.held_out_text("valid").source
    assert got.card() == made.card()
    assert not got.clean_folder.exists()


def test_several_hosts_get_it_at_once(source: Path, tmp_path: Path) -> None:
    def at_home(host: str, words: list[str]) -> list[str]:
        return ["env", "-C", str(tmp_path / host), *words]

    for host in "abc":
        (tmp_path / host).mkdir()
    noted = Noted()
    push(source, ["a", "b", "c"], Stub(way=at_home), folder="work/prepared", progress=noted)
    assert [content(tmp_path / host / "work/prepared") for host in "abc"] == [content(source)] * 3
    assert noted.counts == {f"Data to {host}": total(source) for host in "abc"}


def test_nothing_is_sent_to_a_host_that_has_it(source: Path, tmp_path: Path) -> None:
    send(source, tmp_path / "there")
    noted = send(source, tmp_path / "there")
    assert noted.counts == {"Checking the data of a": total(source)}
    assert noted.said == [f"a has the same data in {tmp_path / 'there'} already."]


def test_on_a_shared_disk_nothing_is_sent_or_checked_even_while_it_is_used(source: Path) -> None:
    before = content(source)
    with using(source):
        noted = send(source, source)
    assert (noted.counts, noted.said) == ({}, [f"a has the same data in {source} already."])
    assert content(source) == before


def test_a_damaged_file_is_found_and_only_it_is_sent(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "there"
    send(source, target)
    (target / "train/part-00001.bin").write_bytes(bytes(5_000))
    assert standing(source, target).state == "same", (
        "a comparison before each training does not read every byte"
    )
    noted = send(source, target)
    assert noted.counts["Data to a"] == 5_000 + (source / "card.json").stat().st_size
    assert noted.said == [f"a has other or damaged data in {target}/train: it is replaced."]
    assert content(target) == content(source)


def test_a_file_that_is_gone_or_too_short_is_named(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "there"
    send(source, target)
    (target / "train/part-00002.bin").write_bytes(b"short")
    assert standing(source, target) == Standing(state="different", file=str(target / "train/part-00002.bin"))
    (target / "train/part-00002.bin").unlink()
    assert standing(source, target).state == "different"
    send(source, target)
    assert content(target) == content(source)


def test_other_data_is_named_and_replaced(source: Path, tmp_path: Path) -> None:
    target = make_prepared(tmp_path / "there", seed=1)
    assert standing(source, target) == Standing(state="different", file=str(target / "subword/manifest.json"))
    assert f"a has other or damaged data in {target}/train: it is replaced." in send(source, target).said
    assert content(target) == content(source)


def test_a_part_of_the_data_is_missing_not_different(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "there"
    send(source, target)
    shutil.rmtree(target / "train")
    assert standing(source, target) == Standing(state="missing", file=str(target / "train/manifest.json"))
    noted = send(source, target)
    assert noted.counts["Data to a"] == 15_000 + (source / "card.json").stat().st_size


def test_a_new_card_alone_is_sent_even_while_the_data_is_used(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "there"
    send(source, target)
    (source / "card.json").write_text('{"new": 1}')
    with using(target):
        noted = send(source, target)
    assert noted.counts["Data to a"] == len('{"new": 1}')
    assert content(target) == content(source)


def test_data_in_use_is_not_replaced(source: Path, tmp_path: Path) -> None:
    target = make_prepared(tmp_path / "there", seed=1)
    before = content(target)
    with using(target), pytest.raises(TandemError, match=r"^a: .*there is in use by process \d+: wait until"):
        send(source, target)
    assert content(target) == before


def test_after_a_break_only_what_has_not_arrived_is_sent(source: Path, tmp_path: Path) -> None:
    make_prepared(source, seed=2, parts=40, part_bytes=20_000)
    target = tmp_path / "there"
    with pytest.raises(TandemError, match=r"The connection to 400000 broke off.*give the same command again"):
        push(source, ["400000"], Stub(way=torn), folder=str(target), progress=SILENT)
    assert not (target / "train").exists()
    assert not (target / "card.json").exists()
    assert (target / "subword/manifest.json").exists()
    assert standing(source, target).state == "missing"
    arrived = sum(path.stat().st_size for path in (target / "train.partial").iterdir())
    assert arrived > 100_000
    noted = send(source, target)
    assert noted.counts["Data to a"] <= 40 * 20_000 - arrived + 1_000
    assert content(target) == content(source)
    assert sorted(path.name for path in target.iterdir()) == sorted(path.name for path in source.iterdir())


def test_what_an_interrupted_build_has_left_there_does_not_get_into_the_data(
    source: Path, tmp_path: Path
) -> None:
    target = tmp_path / "there"
    with pytest.raises(TandemError):
        push(source, ["12000"], Stub(way=torn), folder=str(target), progress=SILENT)
    partial = next(target.rglob("*.partial"))
    (partial / "of-my-own.bin").write_text("x")
    (partial / ".part-00000.bin.77.tmp").write_text("x")
    send(source, target)
    assert content(target) == content(source)


def test_a_failure_on_one_host_does_not_keep_the_others_from_it(source: Path, tmp_path: Path) -> None:
    def two_are_down(host: str, words: list[str]) -> list[str]:
        return ["sh", "-c", "echo no route >&2; exit 255"] if host in "ac" else words

    noted = Noted()
    with pytest.raises(TandemError, match=r"Cannot reach a over ssh \(no route\)"):
        push(source, ["a", "b", "c"], Stub(way=two_are_down), folder=str(tmp_path / "there"), progress=noted)
    assert content(tmp_path / "there") == content(source)
    assert [text for text in noted.said if text.startswith("error: Cannot reach c over ssh")] == noted.said


def test_what_a_login_script_prints_is_passed_over(source: Path, tmp_path: Path) -> None:
    def chatty(_host: str, words: list[str]) -> list[str]:
        return ["sh", "-c", f'echo welcome; echo 7; echo "[]"; exec {shlex.join(words)}']

    send(source, tmp_path / "there", ssh=Stub(way=chatty))
    assert content(tmp_path / "there") == content(source)


def test_a_full_disk_there_is_told_and_leaves_nothing_half_written(source: Path, tmp_path: Path) -> None:
    make_prepared(source, seed=2, part_bytes=50_000)

    def small(_host: str, words: list[str]) -> list[str]:
        return ["prlimit", "--fsize=20000", *words]

    with pytest.raises(TandemError, match=r"^a: Cannot write .*subword.*: File too large; make room"):
        send(source, tmp_path / "there", ssh=Stub(way=small))
    assert not list((tmp_path / "there").rglob("manifest.json"))
    assert not list((tmp_path / "there").rglob("*.tmp"))
    send(source, tmp_path / "there")
    assert content(tmp_path / "there") == content(source)


def test_damage_here_is_told_before_it_is_believed_there(source: Path, tmp_path: Path) -> None:
    (source / "train/part-00001.bin").write_bytes(bytes(5_000))
    with pytest.raises(TandemError, match=r"source/train/part-00001.bin is damaged"):
        send(source, tmp_path / "there")
    assert not (tmp_path / "there/train").exists()


@pytest.mark.parametrize("name", ["train/part-00001.bin", "subword/manifest.json", "card.json"])
def test_unfinished_data_is_not_pushed(source: Path, tmp_path: Path, name: str) -> None:
    (source / name).unlink()
    with pytest.raises(TandemError, match=r"source"):
        send(source, tmp_path / "there")
    assert not (tmp_path / "there").exists()


def test_the_source_is_not_changed_while_it_is_sent(source: Path, tmp_path: Path) -> None:
    with unused(source), pytest.raises(TandemError, match="is being made"):
        send(source, tmp_path / "there")


def test_a_host_without_tandem_is_told(source: Path, tmp_path: Path) -> None:
    ssh = Stub(python=shutil.which("python3", path="/usr/bin:/bin") or "/usr/bin/python3")
    with pytest.raises(TandemError, match=r"has no Tandem .*install it there"):
        push(source, ["a"], ssh, folder=str(tmp_path / "there"), progress=SILENT)


def test_a_host_that_asks_for_other_files_gets_none(source: Path, tmp_path: Path) -> None:
    def curious(_host: str, _words: list[str]) -> list[str]:
        answer = '{"is": "wants", "files": ["../../etc/passwd"], "replaced": []}'
        return ["sh", "-c", f"echo '{answer}'; cat"]

    with pytest.raises(TandemError, match=r"asks for ../../etc/passwd"):
        send(source, tmp_path / "there", ssh=Stub(way=curious))


def test_memory_does_not_grow_with_the_files(source: Path, tmp_path: Path) -> None:
    with building(source / "train", kind="train", version=1, fingerprint="big") as build:
        (build.path / "part-00000.bin").touch()
        os.truncate(build.path / "part-00000.bin", 60_000_000)
        build.facts = {}

    def tight(_host: str, words: list[str]) -> list[str]:
        return ["prlimit", f"--data={48 << 20}", *words]

    send(source, tmp_path / "there", ssh=Stub(way=tight))
    assert (tmp_path / "there/train/part-00000.bin").stat().st_size == 60_000_000


def test_hosts_that_share_a_disk_among_them_get_it_once(source: Path, tmp_path: Path) -> None:
    noted = Noted()
    push(source, ["a", "b", "c"], Stub(), folder=str(tmp_path / "there"), progress=noted)
    assert content(tmp_path / "there") == content(source)
    sent = [count for task, count in noted.counts.items() if task.startswith("Data to")]
    assert sent == [total(source)]


def test_a_folder_in_the_home_there_may_be_named_by_a_tilde(source: Path, tmp_path: Path) -> None:
    def at_home(_host: str, words: list[str]) -> list[str]:
        return ["env", "-C", str(tmp_path), f"HOME={tmp_path / 'home'}", *words]

    push(source, ["a"], Stub(way=at_home), folder="~/work/prepared", progress=SILENT)
    assert content(tmp_path / "home/work/prepared") == content(source)


@pytest.mark.parametrize(
    "script",
    [
        pytest.param("exec sleep 60", id="says nothing"),
        pytest.param(
            'echo \'{"is": "wants", "files": ["train/part-00000.bin"], "replaced": []}\'; exec sleep 60',
            id="takes nothing",
        ),
        pytest.param("exec >&-; exec sleep 60", id="does not end"),
    ],
)
def test_a_host_that_hangs_is_given_up_by_name(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    monkeypatch.setattr("tandem.launch.push._SILENCE_S", 0.5)
    make_prepared(source, seed=2, part_bytes=1_000_000)

    def hangs(_host: str, _words: list[str]) -> list[str]:
        return ["sh", "-c", script]

    with pytest.raises(TandemError, match=r"^a has been silent for 0 s: look whether its disk answers"):
        send(source, tmp_path / "there", ssh=Stub(way=hangs))


def test_hosts_that_hang_are_given_up_in_a_comparison_too(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tandem.launch.push._SILENCE_S", 0.5)

    def hangs(_host: str, _words: list[str]) -> list[str]:
        return ["sleep", "60"]

    with pytest.raises(TandemError, match=r"^a has been silent"):
        compare(source, ["a", "b"], Stub(way=hangs), folder=str(tmp_path / "there"))


def test_a_folder_that_another_push_holds_is_waited_for(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "there"
    noted = Noted()
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(target)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdin is not None
        assert holder.stdout.readline() == b"held\n"
        hand = holder.stdin

        class LetsGo(Noted):
            def say(self, text: str) -> None:
                super().say(text)
                hand.close()

        noted = LetsGo()
        push(source, ["a"], Stub(), folder=str(target), progress=noted)
    assert noted.said[0].startswith(f"Waiting for a: {target} is being made by process {holder.pid}")
    assert content(target) == content(source)


HOLD = """
import sys
from pathlib import Path
from tandem.lock import holding
with holding(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize(
    "says",
    [
        '{"is": []}',
        '{"is": "other"}',
        '{"is": "failed"}',
        '{"is": "wants"}',
        '{"is": "wants", "files": "text", "replaced": []}',
        '{"is": "wants", "files": [[]], "replaced": []}',
        '{"is": "checking", "bytes": "many"}',
        '{"is": "checking", "bytes": -5}',
        '{"is": "done"}',
        "x" * 10_000,
    ],
)
def test_a_host_that_talks_nonsense_is_named(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str
) -> None:
    monkeypatch.setattr("tandem.launch.push.LONGEST_LINE", 5_000)

    def talks(_host: str, _words: list[str]) -> list[str]:
        return ["printf", "%s\\n", says]

    there = str(tmp_path / "there")
    with pytest.raises(TandemError, match="a said something that makes no sense"):
        push(source, ["a"], Stub(way=talks), folder=there, progress=Noted())
    with pytest.raises(TandemError, match="a said something that makes no sense"):
        compare(source, ["a"], Stub(way=talks), folder=there)


def test_brackets_without_end_are_passed_over(source: Path, tmp_path: Path) -> None:
    def talks(_host: str, _words: list[str]) -> list[str]:
        return [sys.executable, "-c", 'print(\'[\' * 100_000); print(\'{"is": "missing", "file": ""}\')']

    found = compare(source, ["a"], Stub(way=talks), folder=str(tmp_path / "there"))
    assert found["a"].state == "missing"
