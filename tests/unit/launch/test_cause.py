import signal
from pathlib import Path

import pytest

from tandem.launch.cause import Cause, Naming, find_cause, host_lost, local_naming, stalled
from tandem.launch.report import Failure, Kind
from tandem.launch.stall import Stall

OUTPUT = Path("log")


def failure(rank: int, kind: Kind, message: str = "Something.", *, time_s: float = 0.0) -> Failure:
    return Failure(rank=rank, kind=kind, message=message, time_s=time_s)


def cause(failed: dict[int, int], *failures: Failure) -> Cause:
    found = find_cause(failed, {each.rank: each for each in failures}, naming=local_naming(OUTPUT))
    assert found is not None
    return found


def test_there_is_none_where_all_ended_well() -> None:
    assert find_cause({}, {}, naming=local_naming(OUTPUT)) is None


def test_the_first_sentence_is_the_cause() -> None:
    found = cause(
        {0: 1, 1: 1, 2: 1},
        failure(0, "peer", time_s=1.0),
        failure(1, "sentence", "Later.", time_s=3.0),
        failure(2, "sentence", "Sooner.", time_s=2.0),
    )
    assert (found.rank, found.reason, found.is_final) == (2, "Sooner.", True)


def test_a_sentence_counts_more_than_a_crash_that_may_follow_from_it() -> None:
    assert cause({0: -signal.SIGABRT, 1: 1}, failure(1, "sentence", "No disk.")).reason == "No disk."


@pytest.mark.parametrize("kind", ["peer", "unexpected"])
def test_what_others_met_after_a_kill_is_not_the_cause(kind: Kind) -> None:
    found = cause({0: 1, 1: -signal.SIGKILL}, failure(0, kind))
    assert (found.rank, found.exit_code, found.is_final) == (1, -signal.SIGKILL, False)
    assert "SIGKILL, most likely for want of memory" in found.reason


def test_only_sigkill_smells_of_memory() -> None:
    assert cause({0: -signal.SIGSEGV}).reason == "killed by SIGSEGV"
    assert cause({0: -40}).reason == "killed by signal 40"


@pytest.mark.parametrize("failures", [(failure(1, "unexpected", "KeyError: 3"),), ()])
def test_a_bug_is_final_and_says_where_to_look(failures: tuple[Failure, ...]) -> None:
    found = cause({0: 1, 1: 3}, failure(0, "peer"), *failures)
    assert found.is_final
    assert found.reason.startswith("Rank 1 failed with ")
    assert str(OUTPUT / "rank-00001.txt") in found.reason


def test_nothing_but_lost_connections_is_worth_another_start() -> None:
    found = cause({0: 1, 1: 1}, failure(0, "peer", "b", time_s=2.0), failure(1, "peer", "a", time_s=1.0))
    assert (found.rank, found.is_final) == (1, False)
    assert "(a)" in found.reason


def test_a_rank_of_another_host_is_named_with_it() -> None:
    naming = Naming(host=lambda rank: f"h{rank}", output=lambda rank: f"h{rank}:log/{rank}")
    found = find_cause({1: -signal.SIGKILL}, {}, naming=naming)
    assert found is not None
    assert (found.who, found.host, found.hint) == ("Rank 1 on h1", "h1", "what it printed is in h1:log/1")


def test_a_stall_names_the_rank_the_collective_and_the_step() -> None:
    stall = Stall(rank=2, step=40, collective="sum of bucket 3", waited_s=61.0)
    found = stalled(stall, local_naming(OUTPUT))
    assert (found.rank, found.is_final) == (2, False)
    assert found.reason == "nothing moved for 61 s, the last collective being sum of bucket 3 in step 40"


def test_a_lost_host_is_the_subject_of_the_sentence() -> None:
    found = host_lost("h2", rank=4, reason="no sign of life for 20 s")
    assert (found.who, found.host, found.rank, found.is_final) == ("h2", "h2", 4, False)
