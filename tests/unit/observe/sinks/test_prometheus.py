"""The text, as the parser of Prometheus' own client reads it."""

import json
import math
import platform
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families
from tests.unit.observe.sinks.told_twice import described, sampled
from tests.unit.observe.story import START_NS, Teller, finished, started, training, write_log

from tandem.lock import beside
from tandem.observe.sinks.prometheus import metrics_text
from tandem.observe.watch.state import WatchState
from tandem.runlog.event import RunImported
from tandem.runlog.layout import RunLayout
from tandem.runlog.record import Record

GRAFANA = Path(__file__).parents[4] / "docs/grafana/tandem.json"
UNITS = ("seconds", "bytes", "ratio", "watts", "celsius")


def host_records(teller: Teller) -> Iterator[Record]:
    yield teller.tell(described(), rank=None)
    yield teller.tell(sampled(), rank=None)


@pytest.fixture(scope="module")
def told() -> tuple[WatchState, int]:
    """A run in the middle of its training on one host with two GPUs, and the time of its last record."""
    state, teller = WatchState(run="story"), Teller()
    for record in [*training(teller, steps=420), *host_records(teller)]:
        state.apply(record)
    return state, teller.time_ns


def parsed(text: str) -> dict[str, Metric]:
    families = list(text_string_to_metric_families(text))
    assert len({family.name for family in families}) == len(families)
    return {family.name: family for family in families}


def value(families: dict[str, Metric], name: str, **labels: str) -> float:
    (found,) = [
        each
        for family in families.values()
        for each in family.samples
        if each.name == name and labels.items() <= each.labels.items()
    ]
    return float(found.value)


def test_a_run_is_told_with_its_numbers_and_labels(told: tuple[WatchState, int]) -> None:
    state, now_ns = told
    families = parsed(metrics_text({"alpha-run": state}, now_ns=now_ns))
    assert value(families, "tandem_step", run="alpha-run") == 420
    assert value(families, "tandem_progress_ratio") == 0.42
    assert value(families, "tandem_target_tokens_per_second") == 100_000
    assert value(families, "tandem_run_doing", doing="training") == 1
    assert value(families, "tandem_run_doing", doing="finished") == 0
    assert value(families, "tandem_run_silent") == 0
    assert value(families, "tandem_bleu") == pytest.approx(30 - 28 * math.exp(-400 / 500))
    assert value(families, "tandem_best_bleu") == value(families, "tandem_bleu")
    assert value(families, "tandem_phase_ratio", phase="backward") == pytest.approx(0.48)
    assert value(families, "tandem_spent_seconds_total", activity="training") == 105
    assert value(families, "tandem_last_record_timestamp_seconds") > START_NS / 1e9


def test_hosts_are_told_gpu_by_gpu_and_nic_by_nic_and_what_is_not_known_is_left_out(
    told: tuple[WatchState, int],
) -> None:
    state, now_ns = told
    families = parsed(metrics_text({"r": state}, now_ns=now_ns))
    assert value(families, "tandem_gpu_utilisation_ratio", host="alpha", gpu="0") == 0.9
    assert value(families, "tandem_gpu_throttled", gpu="0") == 1
    assert value(families, "tandem_nic_transmit_bytes_per_second", nic="eth0") == 3e6
    assert value(families, "tandem_nic_speed_bytes_per_second", nic="eth0") == 1.25e9
    seen = families["tandem_nic_delivered_bytes_per_second"].samples
    assert {each.labels["by"] for each in seen} == {"highest"}
    assert max(each.value for each in seen) < 1.25e9
    assert {each.labels["gpu"] for each in families["tandem_gpu_power_watts"].samples} == {"0"}
    assert {each.labels["nic"] for each in families["tandem_nic_speed_bytes_per_second"].samples} == {"eth0"}


def test_a_silent_run_is_told_as_silent_without_a_pace_and_without_old_samples(
    told: tuple[WatchState, int],
) -> None:
    state, now_ns = told
    families = parsed(metrics_text({"r": state}, now_ns=now_ns + 120 * 10**9))
    assert value(families, "tandem_run_silent") == 1
    assert value(families, "tandem_step") == 420
    gone = {"tandem_target_tokens_per_second", "tandem_remaining_seconds", "tandem_host_cpu_ratio"}
    assert not gone & set(families)


def test_a_run_that_only_begins_and_one_that_is_over_are_told(told: tuple[WatchState, int]) -> None:
    teller, over = Teller(), WatchState(run="over")
    for record in [teller.tell(started()), teller.step(1, loss=math.inf), teller.tell(finished(1))]:
        over.apply(record)
    families = parsed(metrics_text({"new": WatchState(), "over": over}, now_ns=teller.time_ns))
    assert value(families, "tandem_run_doing", run="new", doing="starting") == 1
    assert value(families, "tandem_run_finished", run="over") == 1
    assert value(families, "tandem_loss", run="over") == math.inf
    assert [each.labels["run"] for each in families["tandem_step"].samples] == ["over"]


def test_any_name_of_a_run_comes_back_as_it_was_but_for_what_is_not_seen(
    told: tuple[WatchState, int],
) -> None:
    key = 'a "quoted"\\back slash ü'
    text = metrics_text({f"{key}\n\x1b[31m\u202e": told[0]}, now_ns=told[1])
    assert value(parsed(text), "tandem_step", run=f"{key}\\n\\x1b[31m\\u202e") == 420
    assert text.replace("\n", "").isprintable()


def test_a_run_whose_process_is_gone_is_lost_and_promises_no_end(
    told: tuple[WatchState, int], tmp_path: Path
) -> None:
    state, now_ns = told
    run = tmp_path / "gone"
    write_log(run, [Teller().step(1)])
    RunLayout(run).host_log(platform.node()).touch()
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        pass
    beside(run, "lock").write_text(json.dumps({"pid": process.pid}), encoding="utf-8")
    later_ns = now_ns + 8 * 10**9
    families = parsed(metrics_text({"r": state}, now_ns=later_ns, folders={"r": run}))
    assert [value(families, f"tandem_run_{name}") for name in ("lost", "silent")] == [1, 1]
    assert "tandem_remaining_seconds" not in families
    assert {each.labels["name"] for each in families["tandem_run_info"].samples} == {"gone"}
    unknown = parsed(metrics_text({"r": state}, now_ns=later_ns))
    assert [value(unknown, f"tandem_run_{name}") for name in ("lost", "silent")] == [0, 0]
    assert "tandem_remaining_seconds" in unknown


def test_an_imported_run_is_over_and_not_silent() -> None:
    teller, state = Teller(), WatchState(run="imported")
    imported = RunImported(tool="tensorboard", files=(), times="wall", step_kind="each", facts={})
    for record in [teller.tell(imported), *training(teller, steps=20)]:
        state.apply(record)
    families = parsed(metrics_text({"r": state}, now_ns=teller.time_ns + 10**15))
    assert value(families, "tandem_run_doing", doing="imported") == 1
    assert [value(families, f"tandem_run_{name}") for name in ("finished", "silent")] == [1, 0]
    assert value(families, "tandem_step") == 20
    assert not {"tandem_progress_ratio", "tandem_remaining_seconds"} & set(families)


def test_a_run_that_starts_again_promises_no_end() -> None:
    teller, state = Teller(), WatchState(run="r")
    records = [
        *training(teller, steps=50),
        teller.tell(started(20)),
        *(teller.step(n) for n in range(21, 30)),
    ]
    for record in records:
        state.apply(record)
    assert "tandem_remaining_seconds" not in parsed(metrics_text({"r": state}, now_ns=teller.time_ns))
    state.apply(teller.step(30))
    assert "tandem_remaining_seconds" in parsed(metrics_text({"r": state}, now_ns=teller.time_ns))


def test_names_follow_the_rules_of_prometheus(told: tuple[WatchState, int]) -> None:
    text = metrics_text({"r": told[0], "s": told[0]}, now_ns=told[1])
    for family in parsed(text).values():
        assert re.fullmatch(r"tandem_[a-z_]+", family.name)
        assert family.documentation.endswith(".")
        for sample in family.samples:
            assert sample.name.endswith("_total") == (family.type == "counter")
        units = [unit for unit in UNITS if unit in family.name.split("_")]
        assert not units or family.name.endswith(units[-1]) or family.name.endswith("per_second")
    series = [line.rsplit(" ", 1)[0] for line in text.splitlines() if not line.startswith("#")]
    assert len(series) == len(set(series))
    assert text.endswith("\n")


def test_no_run_gives_no_text() -> None:
    assert metrics_text({}, now_ns=START_NS) == ""


def test_grafana_asks_only_for_what_is_told(told: tuple[WatchState, int]) -> None:
    board = json.loads(GRAFANA.read_text(encoding="utf-8"))
    panels = [panel for panel in board["panels"] if panel["type"] != "row"]
    asked = [target["expr"] for panel in panels for target in panel["targets"]]
    asked += [each["query"]["query"] for each in board["templating"]["list"] if each["type"] == "query"]
    names = {name for expr in asked for name in re.findall(r"tandem_[a-z_]+", expr)}
    families = parsed(metrics_text({"r": told[0]}, now_ns=told[1])).values()
    assert names <= {sample.name for family in families for sample in family.samples}
    assert all(re.search(r"tandem_[a-z_]+", expr) for expr in asked)
    assert len({panel["id"] for panel in panels}) == len(panels)
