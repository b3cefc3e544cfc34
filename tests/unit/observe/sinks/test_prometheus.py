"""The text, as the parser of Prometheus' own client reads it."""

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families
from tests.unit.observe.sinks.told_twice import described, sampled
from tests.unit.observe.story import START_NS, Teller, finished, started, training

from tandem.observe.sinks.prometheus import metrics_text
from tandem.observe.watch.state import WatchState
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


def test_any_name_of_a_run_comes_back_as_it_was(told: tuple[WatchState, int]) -> None:
    key = 'a "quoted"\\back\nslash ü'
    families = parsed(metrics_text({key: told[0]}, now_ns=told[1]))
    assert value(families, "tandem_step", run=key) == 420


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
