import math
from dataclasses import replace

import numpy as np
import pytest
from tests.unit.observe.report.told_run import build_run
from tests.unit.observe.verdicts.series_story import (
    build_checkpoint,
    build_imported,
    build_process,
    build_ranks,
    build_samples,
    build_series,
    build_start,
    build_steps,
)

from tandem.observe.report.summary import checkpoints_table, headline, hosts_table, notes, processes_table


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"ranks": 0, "device": ""}, "1,000 steps, 60.9 million parameters"),
        ({"ranks": 4, "device": ""}, "1,000 steps, 4 ranks, 60.9 million parameters"),
        ({"ranks": 1, "device": "cpu"}, "1,000 steps, 1 rank on cpu, 60.9 million parameters"),
        ({"ranks": 0, "device": "NVIDIA V100"}, "1,000 steps, on NVIDIA V100, 60.9 million parameters"),
    ],
)
def test_what_is_not_known_of_ranks_and_devices_is_left_out(fields: dict[str, object], said: str) -> None:
    series = build_series(imported=build_imported(), starts=((0.0, build_start(**fields)),))
    assert headline(series).startswith(said)


def test_of_imported_checkpoints_only_what_is_known_is_told() -> None:
    unknown = build_checkpoint(bytes=0, files={}, blocked_s=math.nan, write_s=math.nan)
    series = build_series(imported=build_imported(), checkpoints=(unknown,))
    assert checkpoints_table(series).rows == (("checkpoints/step-00001000", "1,000", *"–––––"),)
    assert checkpoints_table(build_series(checkpoints=(build_checkpoint(),))).rows[0][-1] == "yes"


def test_ranks_keep_their_numbers_where_the_first_left_no_log() -> None:
    processes = tuple(build_process(rank, host="beta") for rank in (2, 3))
    table = processes_table(build_series(processes=processes, process_ranks=(2, 3)))
    assert [row[0] for row in table.rows] == ["2", "3"]


def test_a_host_that_does_not_say_what_it_has_is_unknown() -> None:
    samples = build_samples()
    described = replace(samples.described, cores=-1, memory_bytes=-1)
    table = hosts_table(build_series(samples={"alpha": replace(samples, described=described)}))
    assert table.rows[0][-2:] == ("–", "–")


def test_ranks_without_a_log_are_told_first() -> None:
    steps = build_steps(30)
    ranks = build_ranks(steps, hosts=("alpha", ""))
    ranks.duration_s[1] = np.nan
    told = notes(build_series(steps=steps, ranks=ranks))
    assert told[0].startswith("The logs of 1 of 2 ranks are not here")
    assert not any("ranks are not here" in note for note in notes(build_run()))
