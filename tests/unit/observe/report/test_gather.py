from pathlib import Path

import pytest
from tests.unit.observe.story import Teller, training, write_log
from tests.unit.observe.verdicts.series_story import build_process

from tandem.observe.finding import Finding
from tandem.observe.report.gather import Report, read_report


def found(report: Report, key: str) -> Finding:
    return next(each for each in report.findings if each.key == key)


@pytest.fixture
def first_log(tmp_path: Path) -> Report:
    """A run of two hosts with disks of their own, as the log is on the first of them."""
    teller = Teller()
    begun = teller.tell(build_process(host="alpha", world_size=2))
    write_log(tmp_path, [begun, *training(teller, steps=60, every=20)])
    return read_report(tmp_path)


def test_of_a_run_with_one_of_two_logs_it_is_not_said_that_no_network_was_there(first_log: Report) -> None:
    network = found(first_log, "network")
    assert (network.verdict, network.confidence) == ("cannot tell", "none")
    assert "logs of all ranks for all of the time" in network.missing
    assert "one host" not in network.answer


def test_of_a_run_with_one_of_two_logs_no_hosts_are_counted(first_log: Report) -> None:
    assert "host-hours" not in {each.name for each in found(first_log, "duration").evidence}


def test_a_rank_that_alone_left_a_log_without_a_start_is_not_the_only_one(tmp_path: Path) -> None:
    teller = Teller()
    begun = teller.tell(build_process(host="beta", world_size=2), rank=1)
    write_log(tmp_path, [begun, *(teller.step(number, rank=1) for number in range(1, 61))])
    report = read_report(tmp_path)
    assert found(report, "network").confidence != "high"
    assert "GPUs spent" not in found(report, "gpus").answer
