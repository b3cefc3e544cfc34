"""A series that is kept up to date is the one that reading all at once gives, however the logs came to be."""

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.unit.observe.series.same import check_same
from tests.unit.observe.series.slow import BEGUN_NS, LogMaker, build_process, build_start, build_step
from tests.unit.observe.series.test_sampled import DESCRIBED, sample

from tandem.errors import TandemError
from tandem.observe.series import part
from tandem.observe.series.fold import read_series
from tandem.observe.series.live import LiveSeries
from tandem.observe.series.room import Disk
from tandem.runlog.event import Event, HostExamined, HostSampled, RoundStarted
from tandem.runlog.layout import RunLayout
from tandem.runlog.record import Record, to_line

EXAMINED = HostExamined(
    host="10.0.0.1",
    address="10.0.0.1",
    interface="eth0",
    interface_bits_per_s=0,
    tandem="0.1.0",
    python="3.11.9",
    torch="2.13.0",
    cores=2,
    memory_bytes=1,
    gpus=(),
    gpu_memory_bytes=0,
    clock_offset_s=0.75,
    clock_uncertainty_s=0.1,
    disk_free_bytes=1,
    disk_write_bytes_per_s=1.0,
)
ROUND = RoundStarted(round=1, hosts=("10.0.0.1",), workers={"10.0.0.1": 8}, address="10.0.0.1", interfaces=())


def lines_of(*events: tuple[float, Event], host: str | None = None, rank: int | None = None) -> bytes:
    return b"".join(
        to_line(
            Record(
                time_ns=BEGUN_NS + round(1e9 * at_s),
                clock_s=at_s,
                rank=rank,
                host=host,
                sequence=sequence,
                event=event,
            )
        )
        for sequence, (at_s, event) in enumerate(events)
    )


def make_files(folder: Path, seed: int) -> dict[str, bytes]:
    """The logs of a random story: rounds, damage, lines that came twice, samples of several forms, clocks."""
    dice = random.Random(seed)
    LogMaker(folder, seed).write()
    files = {path.name: path.read_bytes() for path in RunLayout(folder).log.iterdir()}
    if dice.random() < 0.3:
        name = dice.choice(sorted(files))
        files[name] += b"\n" + b"".join(files[name].splitlines(keepends=True)[-9:-2])
    if dice.random() < 0.7:
        files["host-head.jsonl"] = lines_of((0.5, EXAMINED), (1.0, ROUND), host="head")
    for host in ("alpha", "beta"):
        files[f"samples-{host}.jsonl"] = _make_samples(dice, host)
    return files


def _make_samples(dice: random.Random, host: str) -> bytes:
    events: list[Event] = [DESCRIBED]
    for _ in range(dice.randint(0, 40)):
        others = (DESCRIBED, replace(DESCRIBED, interfaces=("eth0", "eth1")), short_sample())
        events.append(dice.choice(others) if dice.random() < 0.1 else sample(dice.random()))
    held = lines_of(*((2.0 + at, event) for at, event in enumerate(events)), host=host)
    return held.replace(b'"schema":1', b'"schema":', 1) if dice.random() < 0.2 else held


def short_sample() -> HostSampled:
    return replace(sample(), received_bytes_per_s=(1.0,))


class Growth:
    """Brings files to a run in random pieces."""

    def __init__(self, run: Path, files: dict[str, bytes], dice: random.Random) -> None:
        self._log, self._dice = RunLayout(run).log, dice
        self._left = dict(files)
        self._log.mkdir(parents=True, exist_ok=True)

    def go_on(self) -> bool:
        """Append some bytes to some file; returns whether there was something left."""
        left = sorted(name for name, data in self._left.items() if data)
        if not left:
            return False
        name = self._dice.choice(left)
        count = self._dice.choice((1, 30, 300, 3_000, 20_000))
        with (self._log / name).open("ab") as file:
            file.write(self._left[name][:count])
        self._left[name] = self._left[name][count:]
        return True


@pytest.mark.parametrize("seed", range(16))
def test_a_log_that_grows_in_any_pieces_gives_what_reading_it_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    dice = random.Random(seed)
    monkeypatch.setattr(part, "_FEW_BYTES", dice.choice((0, 700, 1 << 13)))
    monkeypatch.setattr(part._StepsFold, "block_bytes", dice.choice((600, 5_000, 1 << 21)))
    run = tmp_path / "run"
    growth = Growth(run, make_files(tmp_path / "drawn", seed), dice)
    # Columns in files are the same as columns in memory.
    disk = Disk(tmp_path, least_bytes=dice.choice((1, 1 << 20)))
    live, gained, others = LiveSeries(run, room=disk), 0, make_files(tmp_path / "other", seed + 100)
    while growth.go_on():
        if dice.random() < 0.3:
            gained += live.refresh(at_most_bytes=dice.choice((None, 1, 400)), leader_only=dice.random() < 0.2)
            live.series()
            disk.let_go()
        if dice.random() < 0.06:
            gained += live.refresh()
            check_same(live.series(), read_series(run))
    gained += live.refresh()
    check_same(live.series(), read_series(run))
    # More where a file that was read ceased to be the leader's.
    assert gained >= sum(live.offsets.values())
    assert live.behind_bytes == 0
    name = dice.choice(sorted(path.name for path in live.offsets))
    # Another file is known by its first times.
    (RunLayout(run).log / name).write_bytes(others.get(name, b"").replace(b'"time_ns":17', b'"time_ns":18'))
    live.refresh()
    check_same(live.series(), read_series(run))


def write_run(run: Path, *, ranks: int = 2, steps: int = 40) -> None:
    RunLayout(run).log.mkdir(parents=True)
    for rank in range(ranks):
        RunLayout(run).rank_log(rank).write_bytes(rank_lines(rank, ranks=ranks, steps=steps))


def rank_lines(rank: int, *, ranks: int = 2, first: int = 1, steps: int = 40, at_s: float = 0.0) -> bytes:
    starts = [(at_s, build_process(ranks)), (at_s + 0.5, build_start(first - 1, ranks))]
    events = [(at_s + 1.0 + step, build_step(step)) for step in range(first, first + steps)]
    return lines_of(*(starts if rank == 0 else starts[:1]), *events, rank=rank)


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def test_the_leader_and_the_logs_of_heads_come_first(tmp_path: Path) -> None:
    write_run(tmp_path)
    head, samples = RunLayout(tmp_path).host_log("a"), RunLayout(tmp_path).samples_log("a")
    head.write_bytes(lines_of((0.0, EXAMINED), host="a"))
    samples.write_bytes(lines_of((0.0, DESCRIBED), (1.0, sample()), host="a"))
    live, leader = LiveSeries(tmp_path), RunLayout(tmp_path).rank_log(0)
    assert live.refresh(leader_only=True) == leader.stat().st_size + head.stat().st_size
    series = live.series()
    assert len(series.steps) == 40
    assert series.examined == (EXAMINED,)
    assert (series.ranks.ranks, len(series.ranks.hosts)) == (1, 1)
    assert np.isfinite(series.ranks.duration_s).all()
    assert not series.samples
    rest = samples.stat().st_size + RunLayout(tmp_path).rank_log(1).stat().st_size
    assert live.behind_bytes == rest
    gained = 0
    while live.behind_bytes:
        gained += live.refresh(at_most_bytes=900)
        assert gained <= rest
    assert gained == rest
    check_same(live.series(), read_series(tmp_path))
    assert live.refresh() == 0


def test_what_was_gained_is_put_to_the_rows_that_are_there(tmp_path: Path) -> None:
    write_run(tmp_path)
    live = LiveSeries(tmp_path)
    live.refresh()
    before = live.series()
    losses = before.steps.loss.copy()
    for rank in (1, 0):
        event = build_step(41, loss=0.5)
        append(RunLayout(tmp_path).rank_log(rank), lines_of((42.0, event), rank=rank))
        live.refresh()
        check_same(live.series(), read_series(tmp_path))
    after = live.series()
    assert np.shares_memory(before.ranks.duration_s, after.ranks.duration_s)
    assert np.shares_memory(before.steps.loss, after.steps.loss)
    np.testing.assert_array_equal(before.steps.loss, losses)
    assert after.steps.loss[-1] == 0.5


def test_a_restart_takes_steps_back_also_where_other_ranks_are_read_before(tmp_path: Path) -> None:
    write_run(tmp_path)
    live = LiveSeries(tmp_path)
    live.refresh()
    live.series()
    for rank in (1, 0):
        more = rank_lines(rank, first=21, steps=10, at_s=100.0)
        append(RunLayout(tmp_path).rank_log(rank), more)
        live.refresh()
        check_same(live.series(), read_series(tmp_path))
    series = live.series()
    assert series.steps.step.tolist() == list(range(1, 31))
    assert series.redone_steps == 20
    assert not np.isnan(series.ranks.duration_s).any()


def test_a_first_rank_that_appears_late_takes_the_lead(tmp_path: Path) -> None:
    write_run(tmp_path)
    leader = RunLayout(tmp_path).rank_log(0)
    data = leader.read_bytes()
    leader.unlink()
    live = LiveSeries(tmp_path)
    live.refresh()
    check_same(live.series(), read_series(tmp_path))
    leader.write_bytes(data)
    live.refresh()
    check_same(live.series(), read_series(tmp_path))
    leader.unlink()
    live.refresh()
    check_same(live.series(), read_series(tmp_path))


def test_the_log_of_a_rank_that_is_gone_leaves_no_numbers(tmp_path: Path) -> None:
    write_run(tmp_path)
    live = LiveSeries(tmp_path)
    live.refresh()
    live.series()
    RunLayout(tmp_path).rank_log(1).unlink()
    live.refresh()
    check_same(live.series(), read_series(tmp_path))
    assert np.isnan(live.series().ranks.duration_s[1]).all()


def test_recipe_and_card_are_those_of_the_moment(tmp_path: Path) -> None:
    write_run(tmp_path)
    live = LiveSeries(tmp_path)
    live.refresh()
    assert (live.series().card, dict(live.series().recipe)) == (None, {})
    (tmp_path / "recipe.yaml").write_text("name: first\n")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "card.json").write_bytes((Path(__file__).parents[1] / "card.json").read_bytes())
    check_same(live.series(), read_series(tmp_path))
    assert live.series().recipe == {"name": "first"}
    assert live.series().card is not None


def test_no_log_is_one_sentence(tmp_path: Path) -> None:
    live = LiveSeries(tmp_path)
    with pytest.raises(TandemError, match="There is no run log in"):
        live.refresh()
    with pytest.raises(TandemError, match="There is no run log in"):
        live.series()
