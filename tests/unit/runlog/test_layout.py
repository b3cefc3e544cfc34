"""Names in a run folder."""

from pathlib import Path

import pytest

from tandem.runlog.layout import RunLayout


def test_every_place_is_inside_the_run_folder() -> None:
    run = RunLayout(Path("runs/first"))
    assert run.rank_log(3) == Path("runs/first/log/rank-00003.jsonl")
    assert run.host_log("node1.example") == Path("runs/first/log/host-node1.example.jsonl")
    assert {run.report.parent, run.checkpoints.parent, run.tensorboard.parent} == {run.folder}


@pytest.mark.parametrize("host", ["../../etc", "a/b", "fe80::1%eth0", "a\0b"])
def test_a_host_name_cannot_leave_the_log_folder(host: str) -> None:
    run = RunLayout(Path("runs/first"))
    assert run.host_log(host).parent == run.log
    assert "\0" not in str(run.host_log(host))
