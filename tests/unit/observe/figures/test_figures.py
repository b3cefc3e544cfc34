import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from plotly.graph_objects import Figure as Plotly
from tests.unit.observe.report.told_run import bare_run, build_run
from tests.unit.observe.verdicts.series_story import (
    build_evaluations,
    build_imported,
    build_ranks,
    build_samples,
    build_series,
    build_start,
    build_steps,
)

from tandem.observe.figures import FIGURES
from tandem.observe.figures.alternative import describe_figure
from tandem.observe.figures.caption import CAPTIONS
from tandem.observe.figures.curve import MOST, MOST_MARKED
from tandem.observe.series.columns import Series

RUN = build_run()


def drawn(name: str, series: Series = RUN) -> Any:
    figure = json.loads(json.dumps(FIGURES[name](series), allow_nan=False))
    Plotly(figure)  # plotly refuses what it does not know
    return figure


def line_of(figure: Any, name: str) -> Any:
    return next(trace for trace in figure["data"] if trace["name"] == name)


@pytest.mark.parametrize("name", FIGURES)
def test_a_whole_run_fills_every_figure(name: str) -> None:
    figure = drawn(name)
    assert figure["data"]
    for trace in figure["data"]:
        assert [value for value in trace["y"] if value is not None]


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_has_its_words(name: str) -> None:
    caption = CAPTIONS[name]
    assert caption.title
    assert caption.meaning
    assert caption.missing
    assert any(character.isdigit() for character in describe_figure(drawn(name)))


@pytest.mark.parametrize("name", [name for name in FIGURES if name not in {"dropped", "lengths"}])
def test_axes_have_titles_or_names(name: str) -> None:
    layout = drawn(name)["layout"]
    assert layout["xaxis"]["title"]["text"]
    assert layout["yaxis"].get("title", {}).get("text") or layout["yaxis"].get("ticks")


def test_what_was_not_measured_is_not_drawn() -> None:
    bare = bare_run()
    nothing = {name for name, draw in FIGURES.items() if draw(bare) is None}
    assert {
        "bleu",
        "anatomy",
        "gpus",
        "network",
        "cpu",
        "step_bytes",
        "exchange",
        "checkpoint_parts",
    } <= nothing
    assert {"dropped", "lengths"} <= nothing


def test_a_run_without_a_step_draws_nothing_of_steps() -> None:
    steps = build_steps(0)
    empty = build_series(steps=steps, ranks=build_ranks(steps), starts=(), recipe={})
    shown = {name for name, draw in FIGURES.items() if draw(empty) is not None}
    assert shown == set()


def test_long_runs_are_thinned_and_keep_their_range() -> None:
    seconds = np.full(20_000, 0.5)
    seconds[777] = 9.0
    steps = build_steps(20_000, duration_s=seconds)
    figure = drawn("step_times", build_series(steps=steps, ranks=build_ranks(steps)))
    band, line = figure["data"]
    assert len(line["x"]) == MOST
    assert max(band["y"]) == 9.0


def test_speed_is_tokens_over_seconds_not_the_mean_of_ratios() -> None:
    count = 2 * MOST
    seconds = np.tile([1.0, 3.0], MOST)
    steps = build_steps(count, duration_s=seconds, target_tokens=np.full(count, 600))
    figure = drawn("throughput", build_series(steps=steps, ranks=build_ranks(steps)))
    assert set(figure["data"][0]["y"]) == {300.0}


def test_a_score_of_another_tool_is_not_called_bleu() -> None:
    scored = tuple(
        replace(each, scores={"Eval_BLEU_Score": 0.37})
        for each in build_evaluations([4001, 8002], [2.0, 1.9])
    )
    figure = drawn("bleu", build_series(evaluations=scored, imported=build_imported()))
    assert [trace["name"] for trace in figure["data"]] == ["Eval_BLEU_Score"]
    assert "no BLEU" in figure["layout"]["yaxis"]["title"]["text"]


@pytest.mark.parametrize("names", [["eval/sacrebleu"], ["Eval_BLEU_Score", "eval/sacrebleu"]])
def test_a_score_that_may_be_bleu_is_not_said_to_be_none(names: list[str]) -> None:
    evaluations = build_evaluations([10, 20], [2.0, 1.9])
    scored = tuple(replace(each, scores=dict.fromkeys(names, 26.4)) for each in evaluations)
    figure = drawn("bleu", build_series(evaluations=scored, imported=build_imported()))
    title = figure["layout"]["yaxis"]["title"]["text"]
    assert title.startswith("score, as its tool computes it")
    assert ("Eval_BLEU_Score is no BLEU" in title) == ("Eval_BLEU_Score" in names)


def test_losses_of_another_tool_are_in_its_unit() -> None:
    titles = [
        drawn("losses", series)["layout"]["yaxis"]["title"]["text"]
        for series in (build_series(imported=build_imported()), RUN)
    ]
    assert titles == ["loss, as that tool has it", "loss, nats a target token"]


def test_bleu_has_its_interval() -> None:
    bars = drawn("bleu")["data"][0]["error_y"]
    assert bars["array"] == pytest.approx([0.6] * 6, abs=1e-3)


@pytest.mark.parametrize(("count", "is_marked"), [(MOST_MARKED, True), (MOST_MARKED + 1, False)])
def test_many_evaluations_are_lines_and_a_band_without_marks(count: int, is_marked: bool) -> None:
    steps = list(range(10, 10 + count))
    found = build_evaluations(steps, [2.0] * count, bleu=[20.0] * count)
    series = build_series(evaluations=tuple(replace(each, bleu_low=19.0, bleu_high=21.0) for each in found))
    mode = "lines+markers" if is_marked else "lines"
    assert line_of(drawn("losses", series), "valid")["mode"] == mode
    *bands, bleu = drawn("bleu", series)["data"]
    assert bleu["mode"] == mode
    assert ("error_y" in bleu) == is_marked
    assert [(each["name"], sorted(set(each["y"]))) for each in bands] == (
        [] if is_marked else [("95 % interval", [19.0, 21.0])]
    )


def test_of_many_evaluations_the_only_one_that_measured_something_is_seen() -> None:
    found = build_evaluations(list(range(10, 60)), [math.nan] * 49 + [2.0], bleu=[20.0] * 50)
    series = build_series(
        evaluations=tuple(
            replace(found[-1], bleu_low=19.0, bleu_high=21.0) if each is found[-1] else each for each in found
        )
    )
    assert line_of(drawn("losses", series), "valid")["mode"] == "lines+markers"
    (bleu,) = drawn("bleu", series)["data"]  # no band where the others have no interval
    assert bleu["error_y"]["array"] == [None] * 49 + [1.0]


def test_bleu_without_an_interval_has_none() -> None:
    series = build_series(evaluations=build_evaluations([10, 20], [2.0, 1.0], bleu=[3.0, 4.0]))
    (trace,) = drawn("bleu", series)["data"]
    assert trace["name"] == "BLEU on valid"
    assert "error_y" not in trace


@pytest.mark.parametrize(("highest", "ticks"), [(0.9, None), (40.0, "D2")])
def test_labels_of_the_gradient_norm_do_not_stand_on_one_another(highest: float, ticks: str | None) -> None:
    steps = build_steps()
    norms = np.linspace(0.5, highest, len(steps))
    series = build_series(steps=replace(steps, gradient_norm=norms))
    assert drawn("gradient_norm", series)["layout"]["yaxis"].get("dtick") == ticks


def test_the_plan_goes_on_to_the_last_planned_step() -> None:
    planned, used = drawn("learning_rate")["data"]
    assert (planned["name"], planned["x"][-1]) == ("planned", 2000)
    assert used["x"][-1] == pytest.approx(1500, abs=3)


def test_phases_add_up_to_the_step() -> None:
    phases = [trace for trace in drawn("anatomy")["data"] if trace.get("stackgroup")]
    assert sum(trace["y"][100] for trace in phases) == pytest.approx(1.66, rel=0.05)


def waits_of(series: Series) -> dict[str, float]:
    """Seconds in the middle of the run, by the name of what ranks wait for."""
    areas = [trace for trace in drawn("anatomy", series)["data"] if "waiting for" in trace["name"]]
    return {area["name"]: area["y"][len(area["y"]) // 2] for area in areas}


def with_waits(*waits_s: float, ranks: int) -> Series:
    steps = build_steps(100)
    waits = np.array(waits_s, np.float32)[:, None] * np.ones(100, np.float32)
    told = build_ranks(steps, ranks=len(waits_s), phases={"backward": 0.5 - waits, "exchange": waits})
    return build_series(steps=steps, ranks=told, starts=((5.0, build_start(ranks=ranks)),))


def test_the_networks_part_of_a_step_does_not_grow_with_the_wait_for_the_slowest_rank() -> None:
    for late_s in (0.1, 0.2, 0.3):
        waits = waits_of(with_waits(0.05 + late_s, 0.05, 0.05 + late_s, 0.05 + late_s, ranks=4))
        assert waits["waiting for the network"] == pytest.approx(0.05)
        assert waits["waiting for the slowest rank"] == pytest.approx(0.75 * late_s)


def test_what_a_part_of_the_ranks_waits_for_is_not_told() -> None:
    assert waits_of(with_waits(0.3, 0.2, ranks=3)) == {
        "waiting for gradients, not all ranks heard": pytest.approx(0.25)
    }


def test_a_lone_rank_waits_for_nobody() -> None:
    assert waits_of(with_waits(0.1, ranks=1)) == {}


def test_every_host_has_a_row_on_one_time_axis() -> None:
    for name in ("gpus", "network", "cpu"):
        figure = drawn(name)
        assert {trace["yaxis"] for trace in figure["data"]} == {"y", "y2", "y99"}
        notes = [note["text"].partition(" ")[0] for note in figure["layout"]["annotations"]]
        assert notes == ["<b>alpha</b>", "<b>beta</b>"]
        assert figure["layout"]["xaxis"]["range"][0] == 0


def test_timelines_have_one_left_edge() -> None:
    edges = [drawn(name)["layout"] for name in ("gpus", "network", "cpu")]
    assert len({layout["margin"]["l"] for layout in edges}) == 1
    assert not any(layout["yaxis"]["automargin"] for layout in edges)


def test_of_several_gpus_the_lowest_and_the_highest_are_seen() -> None:
    busy = np.array([[0.2], [1.0]], np.float32) * np.ones(50, np.float32)
    samples = build_samples(50, gpus=2, gpu_utilisation=busy)
    figure = drawn("gpus", build_series(samples={"alpha": samples}))
    reach = line_of(figure, "utilisation: some kernel ran, lowest to highest")
    assert {min(reach["y"]), max(reach["y"])} == {20.0, 100.0}
    assert not reach["showlegend"]
    assert set(line_of(figure, "utilisation: some kernel ran")["y"]) == {60.0}


def test_interfaces_of_a_host_can_be_told_apart() -> None:
    rates = np.full((3, 50), 1e8, np.float32)
    samples = build_samples(
        50,
        interfaces=("lo", "eth0", "eth1"),
        bits_per_s=(0, 0, 0),
        sent_bytes_per_s=rates,
        received_bytes_per_s=rates,
    )
    figure = drawn("network", build_series(samples={"alpha": samples}))
    looks = [(trace["line"]["color"], trace["line"]["dash"]) for trace in figure["data"]]
    assert len(set(looks)) == len(looks) == 6


def test_hosts_that_are_not_shown_are_counted() -> None:
    series = build_series(samples={f"host-{number:02}": build_samples(5) for number in range(18)})
    notes = [note["text"] for note in drawn("cpu", series)["layout"]["annotations"]]
    assert notes[-2:] == ["<b>host-15</b>", "<b>2 more hosts are not shown</b>"]


def test_evaluations_checkpoints_and_restarts_are_marked() -> None:
    marks = {trace["name"]: len(trace["x"]) for trace in drawn("network")["data"] if trace["yaxis"] == "y99"}
    assert marks == {"evaluation": 6, "checkpoint": 3, "restart": 2}


@pytest.mark.parametrize("nominal", [0, 10**9, 10**10])
def test_a_slow_link_behind_a_fast_card_is_drawn_against_what_it_delivers(nominal: int) -> None:
    rates = np.array([[0.0], [24e6]], np.float32) * np.ones(50, np.float32)
    samples = build_samples(50, bits_per_s=(0, nominal), sent_bytes_per_s=rates, received_bytes_per_s=rates)
    links = tuple(replace(link, bytes_per_s=25e6) for link in RUN.links)
    ranks = build_ranks(build_steps(), hosts=("alpha", "beta"))
    figure = drawn("network", build_series(samples={"alpha": samples}, links=links, ranks=ranks))
    heights = {trace["name"]: max(trace["y"]) for trace in figure["data"]}
    assert heights == {
        "eth0 sent": pytest.approx(24),
        "eth0 received": pytest.approx(24),
        "eth0: link, as measured before": 25,
    }
    claim = f", nominal {nominal // 10**9} Gb/s" if nominal else ""
    assert figure["layout"]["annotations"][0]["text"] == f"<b>alpha</b> eth0: measured 200 Mb/s{claim}"


def test_a_link_that_was_not_measured_has_the_highest_rate_that_was_seen_beside_its_nominal_one() -> None:
    rates = np.array([[0.0], [24e6]], np.float32) * np.ones(50, np.float32)
    samples = build_samples(50, sent_bytes_per_s=rates, received_bytes_per_s=rates)
    figure = drawn("network", build_series(samples={"alpha": samples}))
    assert max(max(trace["y"]) for trace in figure["data"]) == pytest.approx(24)
    note = figure["layout"]["annotations"][0]["text"]
    assert note == "<b>alpha</b> eth0: highest seen 192 Mb/s, nominal 1 Gb/s"


def test_a_quiet_interface_is_left_out_and_the_inner_one_too() -> None:
    rates = np.array([[9e9], [1e8], [10.0]], np.float32) * np.ones(50, np.float32)
    samples = build_samples(
        50,
        interfaces=("lo", "eth0", "eth1"),
        bits_per_s=(0, 0, 0),
        sent_bytes_per_s=rates,
        received_bytes_per_s=rates,
    )
    two_hosts = build_ranks(build_steps(), hosts=("alpha", "beta"))
    figure = drawn("network", build_series(samples={"alpha": samples}, ranks=two_hosts))
    assert {trace["name"] for trace in figure["data"]} == {"eth0 sent", "eth0 received"}


def test_what_ranks_of_one_host_send_each_other_is_shown_whatever_else_goes_on() -> None:
    rates = np.array([[9e9], [1.0]], np.float32) * np.ones(50, np.float32)
    samples = build_samples(50, bits_per_s=(0, 0), sent_bytes_per_s=rates, received_bytes_per_s=rates)
    figure = drawn("network", build_series(samples={"alpha": samples}))
    assert {trace["name"] for trace in figure["data"]} == {"lo sent", "lo received"}


def test_a_time_without_end_is_left_out_of_the_split() -> None:
    seconds = np.full(50, 0.5)
    seconds[20] = math.inf
    steps = build_steps(50, duration_s=0.5)
    endless = build_evaluations([20], [2.0], duration_s=math.inf)
    series = build_series(
        steps=replace(steps, duration_s=seconds), ranks=build_ranks(steps), evaluations=endless
    )
    bars = drawn("time_split", series)["data"][0]
    assert "evaluation" not in bars["y"]
    assert sum(bars["x"]) < 60


def test_bytes_a_step_are_those_of_the_samples() -> None:
    figure = drawn("step_bytes")
    sent = line_of(figure, "alpha sent")["y"]
    assert np.median(sent) == pytest.approx(220 * 1.66, rel=0.05)
    assert line_of(figure, "a ring's need, each direction")["y"] == [365.29, 365.29]


def test_the_probed_cost_is_of_the_slowest_ranks() -> None:
    probed = line_of(drawn("exchange"), "with exchange less without it, same batches")
    assert probed["y"] == pytest.approx([1.17] * 3)


def test_waits_say_of_how_many_ranks_they_are() -> None:
    assert line_of(drawn("exchange"), "network: the least wait of all ranks")["y"]
    waits = RUN.ranks.phases["exchange"].copy()
    waits[2:] = np.nan
    ranks = replace(RUN.ranks, phases={**RUN.ranks.phases, "exchange": waits})
    assert line_of(drawn("exchange", replace(RUN, ranks=ranks)), "network: the least wait of 2 of 4 ranks")[
        "y"
    ]


def test_an_imported_run_without_a_clock_has_no_split_of_wall_time() -> None:
    assert FIGURES["time_split"](build_series(imported=build_imported())) is None


def test_a_name_is_never_taken_for_formatting() -> None:
    samples = build_samples(50)
    figure = drawn("cpu", build_series(samples={"<a href=x>": samples}))
    assert "<a href" not in json.dumps(figure)


def test_losses_that_are_no_numbers_leave_gaps() -> None:
    loss = np.full(10, 2.0)
    loss[5:] = math.nan
    steps = build_steps(10, loss=loss)
    figure = drawn("losses", build_series(steps=steps, ranks=build_ranks(steps)))
    assert figure["data"][0]["y"][5:] == [None] * 5
