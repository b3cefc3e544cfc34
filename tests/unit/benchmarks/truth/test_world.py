"""Drawn runs are consistent: seconds add up, truth follows its causes, and folders are read as they were written."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from benchmarks.truth.calibrate import judge_seed, summarise
from benchmarks.truth.reliability import draw_reliability, wilson
from benchmarks.truth.world.damage import injected_damage
from benchmarks.truth.world.draw import draw
from benchmarks.truth.world.history import simulate
from benchmarks.truth.world.label import CANNOT_TELL
from benchmarks.truth.world.steady import steady
from benchmarks.truth.world.truth import label_run
from benchmarks.truth.world.world import World
from benchmarks.truth.world.write import write

from tandem.observe.series.fold import read_series
from tandem.observe.verdicts.checkpoint_files import judge as judge_files
from tandem.runlog.layout import RunLayout
from tandem.runlog.reader import ReadReport, read_records

SEEDS = range(24)
QUESTIONS = 11


def with_links(world: World, times: float) -> World:
    speeds = tuple(times * speed for speed in world.network.bytes_per_s)
    return replace(world, network=replace(world.network, bytes_per_s=speeds))


def on_several_hosts(count: int) -> list[World]:
    worlds = (draw(seed) for seed in range(200))
    return [world for world in worlds if len(world.cluster.hosts) > 1 and len(world.starts) == 1][:count]


@pytest.mark.parametrize("seed", SEEDS)
def test_every_second_went_somewhere(seed: int) -> None:
    history = simulate(draw(seed))
    assert sum(history.spent.values()) == pytest.approx(history.wall_s, rel=1e-9)
    assert min(history.spent.values()) >= -1e-6


@pytest.mark.parametrize("seed", SEEDS)
def test_the_phases_of_a_step_fill_it(seed: int) -> None:
    for attempt in simulate(draw(seed)).attempts:
        timing = attempt.timing
        np.testing.assert_allclose(timing.begin + timing.rehearsal + timing.duration, timing.end, rtol=1e-9)
        assert min(phase.min() for phase in (timing.data, timing.exchange, timing.other)) >= 0


@pytest.mark.parametrize("world", on_several_hosts(8), ids=lambda world: str(world.seed))
def test_a_faster_link_leaves_less_to_save(world: World) -> None:
    # A loader that sets the pace, and what happens by the clock, would blur what a link does.
    world = replace(world, loader=replace(world.loader, build_s=0.0, stall_chance=0.0, epoch_s=0.0))
    world = replace(world, compute=replace(world.compute, stalls=()))
    saved = []
    for times in (0.5, 1.0, 2.0, 8.0):
        history = simulate(with_links(world, times))
        saved.append(steady(history, history.attempts).saved)
    assert saved == sorted(saved, reverse=True)


@pytest.mark.parametrize("world", on_several_hosts(4), ids=lambda world: str(world.seed))
def test_a_network_without_time_leaves_nothing_to_save(world: World) -> None:
    calm = replace(world.network, latency_s=0.0, stall_chance=0.0, loss_chance=0.0)
    history = simulate(with_links(replace(world, network=calm), 1e9))
    assert steady(history, history.attempts).saved == pytest.approx(0.0, abs=1e-4)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_folder_is_read_with_no_damage_but_what_was_injected(seed: int, tmp_path: Path) -> None:
    history = write(draw(seed), tmp_path / "run")
    report = ReadReport()
    records = list(read_records(tmp_path / "run", report))
    evidence = history.world.evidence
    assert report.damaged == injected_damage(history, tmp_path / "run")
    assert report.unfinished == evidence.ends_inside_line
    assert report.unknown == 0
    assert len(records) == report.records


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    for seed in (3, 17):
        for copy in ("first", "second"):
            write(draw(seed), tmp_path / f"{copy}-{seed}")
        first, second = (
            {path.name: path.read_bytes() for path in (tmp_path / f"{copy}-{seed}" / "log").iterdir()}
            for copy in ("first", "second")
        )
        assert first == second


def test_draws_are_not_alike() -> None:
    worlds = [draw(seed) for seed in range(300)]
    assert len({world.compute.step_s for world in worlds}) > 280
    assert {world.most_ranks for world in worlds} >= {1, 2, 3, 4, 8, 16}
    assert {len(world.cluster.hosts) for world in worlds} >= {1, 2, 4, 8}
    assert {len(world.starts) for world in worlds} >= {1, 2, 3}


@pytest.mark.parametrize("seed", SEEDS)
def test_labels_decline_only_with_a_reason(seed: int) -> None:
    labels = label_run(simulate(draw(seed)))
    assert len(labels) == QUESTIONS
    for label in labels.values():
        assert label.accepted
        assert label.suffices or CANNOT_TELL in label.accepted
        assert label.suffices or label.reason


def test_drawn_runs_are_judged_and_counted() -> None:
    judged = [answer for seed in range(3) for answer in judge_seed(seed)]
    rows = summarise(judged)
    assert len(judged) == 3 * QUESTIONS
    assert rows[-1]["question"] == "all"
    assert rows[-1]["answers"] == len(judged)
    assert "network" in draw_reliability(rows)


def test_intervals_hold_the_share() -> None:
    low, high = wilson(95, 100)
    assert low < 0.95 < high
    assert wilson(0, 0) == (0.0, 1.0)
    assert wilson(20, 20)[1] == pytest.approx(1.0)


def test_accidents_that_come_by_the_clock_are_the_same_in_every_replay() -> None:
    """A network that takes no time shortens steps: fewer accidents would fall into each, which no log can tell."""
    worlds = (draw(seed) for seed in range(120))
    stalled = [world for world in worlds if any(stall.every_s for stall in world.compute.stalls)]
    seen = 0
    for world in stalled[:3]:
        least = min(stall.seconds for stall in world.compute.stalls if stall.every_s)
        for attempt in simulate(world).attempts:
            hit = attempt.timing.forward.max(axis=1) >= least
            seen += int(hit.sum())
            assert (attempt.timing.durations[:, hit] >= 0.9 * least).all()
    assert seen


@pytest.mark.parametrize("seed", [60353, 60546, 60949])
def test_a_torn_line_of_a_checkpoint_never_leaves_a_wrong_count_sure(seed: int, tmp_path: Path) -> None:
    history = write(draw(seed), tmp_path)
    path = RunLayout(tmp_path).rank_log(0)
    lines = path.read_bytes().splitlines(keepends=True)
    told = [at for at, line in enumerate(lines) if b'"event":"Checkpoint' in line]
    for at in told[:: max(1, len(told) // 12)]:
        torn = lines[at][: len(lines[at]) // 2] + b"\n"
        path.write_bytes(b"".join([*lines[:at], torn, *lines[at + 1 :]]))

        found = judge_files(read_series(tmp_path))

        counts = [each.value for each in found.evidence if each.name == "kept"]
        assert found.confidence != "high" or counts == [len(history.kept_steps)]
