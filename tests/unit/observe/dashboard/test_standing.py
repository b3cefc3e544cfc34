"""Where a run stands, as the page shows it."""

import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.observe.story import Teller, finished, started, training, write_log
from tests.unit.observe.watch.host_story import sampling

from tandem.lock import beside
from tandem.observe.dashboard.standing import (
    Seen,
    listed_note,
    state_note,
    summary_note,
    unread_note,
)
from tandem.observe.listing import list_run
from tandem.observe.watch.state import WatchState
from tandem.runlog.event import Event, HostDescribed, HostSampled, RunFinished, RunImported, RunStarted
from tandem.runlog.layout import RunLayout
from tandem.runlog.record import Record

NANO = 1_000_000_000


def state_after(records: Iterable[Record]) -> WatchState:
    state = WatchState(run="demo")
    for record in records:
        state.apply(record)
    return state


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "demo"
    write_log(folder, [Teller().tell(RunFinished(reason=""), rank=None)])
    return folder


def note_of(state: WatchState, run: Path, *, after_s: float = 1.0) -> dict[str, Any]:
    return state_note(state, Seen(key="demo", run=run, now_ns=state.last_time_ns + int(after_s * NANO)))


def test_progress_time_left_and_numbers_are_told(run: Path) -> None:
    note = note_of(state_after(training(Teller(), steps=400)), run)
    assert note["progress"]["text"] == "step 400 of 1,000"
    assert note["progress"]["left_s"] > 0
    assert note["equipment"] == "2 ranks, cuda bf16 · 60.9 million parameters"
    assert {each["name"]: each["value"] for each in note["numbers"]}["target tokens/s"] == "100,000"
    assert [each["is_best_bleu"] for each in note["evaluations"]] == [True, True]
    json.dumps(note, allow_nan=False)


def test_a_run_before_its_first_step_has_no_numbers(run: Path) -> None:
    note = note_of(WatchState(), run)
    assert note["progress"] is None
    assert note["numbers"][1]["value"] == "–"
    assert note["run"] == "demo"


def test_only_the_last_evaluations_are_told(run: Path) -> None:
    note = note_of(state_after(training(Teller(), steps=50, every=2)), run)
    assert [each["step"] for each in note["evaluations"]] == list(range(12, 52, 2))


def test_a_silent_run_is_said_to_be_silent_and_has_no_time_left(run: Path) -> None:
    note = note_of(state_after(training(Teller(), steps=20)), run, after_s=120)
    assert note["is_silent"]
    assert note["status"] == "silent for 2 min 00 s (was training)"
    assert note["silent_s"] == 120
    assert note["progress"]["left_s"] is None


def test_a_run_that_ended_is_not_silent(run: Path) -> None:
    teller = Teller()
    records = [
        *training(teller, steps=20),
        teller.tell(finished(20)),
        teller.tell(RunFinished(reason="completed")),
    ]
    note = note_of(state_after(records), run, after_s=9_999)
    assert (note["is_silent"], note["is_closed"], note["silent_s"]) == (False, True, 0)
    assert note["ended"] == "reached 20 steps"


def dead_process() -> int:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        pass
    return process.pid


def test_a_run_whose_process_is_gone_is_lost_before_its_silence_tells_and_promises_no_end(run: Path) -> None:
    state = state_after(training(Teller(), steps=20))
    RunLayout(run).host_log(platform.node()).touch()
    beside(run, "lock").write_text(json.dumps({"pid": dead_process()}), encoding="utf-8")
    before, after = note_of(state, run, after_s=1), note_of(state, run, after_s=8)
    assert (before["status"], before["is_silent"], before["is_lost"]) == ("training", False, False)
    assert (after["is_silent"], after["is_lost"]) == (True, True)
    assert after["status"] == "lost for 5.0 s: its process is gone without a word (was training)"
    assert (before["progress"]["left_s"] is None, after["progress"]["left_s"] is None) == (False, True)


def test_of_a_process_of_another_host_nothing_is_known(run: Path) -> None:
    beside(run, "lock").write_text(json.dumps({"pid": dead_process()}), encoding="utf-8")
    assert note_of(state_after(training(Teller(), steps=20)), run, after_s=8)["status"] == "training"


def test_a_silence_is_not_told_anew_with_every_second(run: Path) -> None:
    state = state_after(training(Teller(), steps=20))
    notes = [{**note_of(state, run, after_s=seconds), "now_ns": 0} for seconds in (120, 124.9, 125)]
    assert notes[0] == notes[1]
    assert notes[1] != notes[2]


def test_an_imported_run_is_neither_silent_nor_on_its_way(run: Path) -> None:
    teller = Teller()
    imported = RunImported(tool="tensorboard", files=(), times="wall", step_kind="each", facts={})
    state = state_after([teller.tell(imported), *training(teller, steps=20)])
    note = note_of(state, run, after_s=9_999)
    assert (note["status"], note["doing"]) == ("imported", "imported")
    assert (note["is_silent"], note["is_closed"], note["silent_s"], note["progress"]) == (
        False,
        True,
        0,
        None,
    )
    assert summary_note(state, Seen(key="demo", run=run, now_ns=1))["text"] == "step 20"


def test_a_run_has_the_name_of_its_folder_and_that_of_its_recipe_beside_it(run: Path) -> None:
    begun = RunStarted(
        run="other", tandem="0", command=(), recipe="", world_size=1, host="a", python="3", torch="2"
    )
    state = state_after([Teller().tell(begun)])
    state.run = "other"
    note = note_of(state, run)
    assert (note["run"], note["recipe"]) == ("demo", "other")
    assert summary_note(state, Seen(key="demo", run=run, now_ns=1))["name"] == "demo"


def test_a_share_in_words_is_never_all_before_the_end(run: Path) -> None:
    teller = Teller()
    state = state_after([teller.tell(started()), *(teller.step(number) for number in range(1, 1_000))])
    assert note_of(state, run)["progress"]["share_text"] == "99 %"
    summary = summary_note(state, Seen(key="demo", run=run, now_ns=state.last_time_ns))
    assert (summary["share"], summary["share_text"]) == (0.999, "99 %")


@pytest.mark.parametrize("end", [(), (finished(1_000), RunFinished(reason="completed"))])
def test_a_run_is_told_alike_whether_it_is_followed_or_read_at_its_ends(
    tmp_path: Path, end: tuple[Event, ...]
) -> None:
    run, teller = tmp_path / "run", Teller()
    records = [*training(teller, steps=1_000), *(teller.tell(event) for event in end)]
    write_log(run, records)
    now_ns = teller.time_ns + 60 * NANO
    followed = summary_note(state_after(records), Seen(key="run", run=run, now_ns=now_ns))
    listed = listed_note(list_run(run, now_ns=now_ns), key="run")
    # Of the log only the ends are read: the best scores may not be there.
    unlike = {"best_loss", "left_s"}
    assert {name: value for name, value in followed.items() if name not in unlike} == {
        **{name: value for name, value in listed.items() if name not in unlike},
        "doing": "finished" if end else "training",
    }


def test_a_full_disk_is_said(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = os.statvfs_result((4096, 4096, 100, 0, 0, 10, 10, 10, 0, 255))
    monkeypatch.setattr("tandem.observe.dashboard.standing.os.statvfs", lambda _path: full)
    note = note_of(state_after(training(Teller(), steps=20)), run)
    assert [each["text"].partition(":")[0] for each in note["troubles"]] == [
        "the disk that holds the log is full"
    ]


def test_a_log_that_is_gone_is_said(tmp_path: Path) -> None:
    note = note_of(state_after(training(Teller(), steps=20)), tmp_path / "nowhere")
    assert note["is_silent"]
    assert note["status"].startswith("the log is gone: ")
    seen = Seen(key="x", run=tmp_path / "nowhere", now_ns=1)
    assert unread_note("no rights", seen)["status"] == "no rights"
    assert unread_note("no rights", seen).keys() == note.keys()


def test_hosts_are_told_by_their_last_sample(run: Path) -> None:
    teller = Teller()
    described = HostDescribed(
        cores=8,
        memory_bytes=1_000,
        gpus=("H100",),
        gpu_memory_bytes=(100,),
        gpu_power_limit_w=(700.0,),
        interfaces=("lo", "eth0"),
        interface_bits_per_s=(0, 10**9),
        disk="",
    )
    sampled = HostSampled(
        seconds=1.0,
        cpu=0.25,
        memory_bytes=250,
        disk_free_bytes=1,
        disk_read_bytes_per_s=0.0,
        disk_written_bytes_per_s=0.0,
        gpu_utilisation=(0.5,),
        gpu_memory_bytes=(-1,),
        gpu_power_w=(350.0,),
        gpu_clock_mhz=(1.0,),
        gpu_temperature_c=(61.0,),
        gpu_throttled=("heat",),
        received_bytes_per_s=(1.0, 2.0),
        sent_bytes_per_s=(3.0, float("nan")),
        packets_per_s=(0.0, 0.0),
        dropped=(0, 0),
        retransmitted=0,
    )
    state = state_after([teller.tell(described, rank=None), teller.tell(sampled, rank=None)])
    (host,) = note_of(state, run)["hosts"]
    assert (host["name"], host["cpu"], host["memory"]) == ("alpha", 0.25, 0.25)
    assert host["gpus"] == [
        {
            "name": "H100",
            "utilisation": 0.5,
            "memory": None,
            "power_w": 350.0,
            "power_limit_w": 700.0,
            "temperature_c": 61.0,
            "is_throttled": True,
        }
    ]
    assert host["nics"][1] == {
        "name": "eth0",
        "received_bytes_per_s": 2.0,
        "sent_bytes_per_s": None,
        "link": "highest seen < 1 Mb/s, nominal 1 Gb/s",
    }


def test_a_host_that_was_not_sampled_lately_has_an_age_and_no_values(run: Path) -> None:
    state = state_after([])
    for record in sampling("h1", seconds=3):
        state.apply(record)
    last_ns = state.hosts["h1"].moments[-1].time_ns
    state.last_time_ns = last_ns
    (fresh,), (old,) = (note_of(state, run, after_s=later)["hosts"] for later in (29, 95))
    assert (fresh["age_s"], len(fresh["gpus"])) == (None, 4)
    assert old == {
        "name": "h1",
        "time_ns": last_ns,
        "age_s": 95,
        "cpu": None,
        "memory": None,
        "gpus": [],
        "nics": [],
    }


def test_of_a_run_that_is_over_the_hosts_are_told_as_they_were_at_its_end(run: Path) -> None:
    state = state_after([*sampling("h1", seconds=60), *sampling("gone", seconds=3)])
    teller = Teller(start_ns=state.hosts["h1"].moments[-1].time_ns)
    state.apply(teller.tell(RunFinished(reason="completed"), rank=None))
    note = note_of(state, run, after_s=9_999)
    (kept, gone) = note["hosts"]
    assert note["is_over"]
    assert (kept["age_s"], len(kept["gpus"]), len(kept["nics"])) == (None, 4, 2)
    assert (gone["age_s"], len(gone["gpus"])) == (55, 4)


def test_a_line_of_a_list_has_the_best_scores(run: Path) -> None:
    state = state_after(training(Teller(), steps=400))
    note = summary_note(state, Seen(key="demo", run=run, now_ns=state.last_time_ns))
    assert note["share"] == 0.4
    assert note["best_loss"] == pytest.approx(state.evaluations[0].valid_loss, rel=1e-5)
    assert note["best_bleu"] == pytest.approx(state.evaluations[1].bleu, rel=1e-5)
