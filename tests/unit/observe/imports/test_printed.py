import math

import pytest
from tests.unit.observe.imports.printing import evaluation, step

from tandem.observe.imports.console import Line
from tandem.observe.imports.printed import (
    Begun,
    Ended,
    Evaluated,
    Printed,
    Saved,
    Story,
    read_story,
    segments,
)


def story(text: str, *, rank: int | None = None) -> Story:
    lines = [Line(text=line, rank=rank) for line in text.splitlines()]
    return read_story(lines, also=lambda _text: None)


def steps(told: Story) -> list[tuple[int, float, float]]:
    return [(item.step, item.loss, item.mean_s) for item in told.items if isinstance(item, Printed)]


@pytest.mark.parametrize(
    "text",
    [
        "*** Global step 100: ***     Train loss: 7.1250 \ntime per step = 0:01:2.500\n",
        "*** Global step 100: loss: 7.1250 , time per step = 0:01:2.500\n",
        "*** Global step 100: loss = 7.1250, time per step = 0:01:2.500\n",
        "*** Epoch 3, global step 100: loss: 7.1250 | ppl = 1242.6479 | bpc = 10.2792, time per step = 0:01:2.500\n",
        "*** Global step 100: Encoder: a word of another rank\nloss: 7.1250 , time per step = 0:01:2.500\n",
    ],
)
def test_every_version_of_the_tool_is_understood(text: str) -> None:
    assert steps(story(text)) == [(100, 7.125, 62.5)]


def test_an_epoch_is_kept_where_it_is_printed() -> None:
    told = story("*** Epoch 3, global step 100: loss: 7.1250 , time per step = 0:00:1.500\n")
    assert told.items[-1] == Printed(step=100, epoch=3, loss=7.125, mean_s=1.5)


@pytest.mark.parametrize(
    "text",
    [
        "*** Global step 100: loss: 7.12",
        "*** Global step 100: loss: 7.12503 , time per step = 0:00:1.5",
        "Global step 100: nothing\n",
        "val_loss=1.5943-step-44012\n",
        "***     Train Source[0]:     <s> Global step 5: loss: 1.2345 , time per step = 0:00:9.999\n",
    ],
)
def test_a_number_that_may_be_cut_is_no_number(text: str) -> None:
    assert steps(story(text)) == []


def test_a_loss_that_is_no_number_is_told_as_it_is() -> None:
    ((_, loss, mean_s),) = steps(story("*** Global step 5: loss: nan , time per step = 0:00:1.500\n"))
    assert math.isnan(loss)
    assert mean_s == 1.5


def test_lines_that_were_printed_twice_count_once() -> None:
    text = step(100, 5.0, 1.5) + step(200, 4.0, 1.5)
    told = story(text + text)
    assert [each[0] for each in steps(told)] == [100, 200]
    assert told.repeated == 2
    assert len(segments(told)) == 1


def test_a_whole_log_that_was_printed_twice_is_one_run() -> None:
    text = (
        "*** Starting training from scratch\n"
        + evaluation(9.5, 0.9)
        + step(0, 9.0, 0.5)
        + step(100, 5.0, 1.5)
    )
    ((_, items),) = segments(story(text + text))
    assert len(items) == 3


def test_only_the_rank_that_tells_of_steps_is_listened_to() -> None:
    told = read_story(
        [
            Line(text="Global step 100: loss: 5.0000 ,", rank=0),
            Line(text="Global step 100: loss: 6.0000 , time per step = 0:00:9.000", rank=1),
            Line(text="time per step = 0:00:1.500", rank=0),
        ],
        also=lambda _text: None,
    )
    assert steps(told) == [(100, 5.0, 1.5)]


def test_a_restart_that_is_told_begins_a_part() -> None:
    text = (
        "*** Starting training from scratch\n"
        + step(0, 9.0, 0.5)
        + step(100, 5.0, 1.5)
        + "*** Restored checkpoint from /there/model.ckpt-50. Resuming training\n"
        + step(50, 6.0, 0.5)
    )
    parts = segments(story(text))
    assert [begun.resumed_from for begun, _ in parts] == ["", "/there/model.ckpt-50"]
    assert [len(items) for _, items in parts] == [2, 1]


def test_steps_that_go_back_are_a_restart_with_the_evaluation_before_them() -> None:
    told = story(step(100, 5.0, 1.5) + step(200, 4.0, 1.5) + evaluation(4.5, 0.1) + step(100, 4.75, 0.5))
    first, second = segments(told)
    assert [type(item) for item in first[1]] == [Printed, Printed]
    assert [type(item) for item in second[1]] == [Evaluated, Printed]
    assert not second[0].is_told


def test_an_evaluation_has_its_loss_and_its_score() -> None:
    told = story(step(100, 5.0, 1.5) + evaluation(4.5, 0.125) + "***     Validation loss: 4.5000 \n")
    assert told.items[-1] == Evaluated(loss=4.5, score=0.125)
    assert told.repeated == 1


def test_an_evaluation_that_was_printed_again_with_its_first_line_counts_once() -> None:
    told = story(2 * evaluation(6.25, 0.125))
    assert [item for item in told.items if isinstance(item, Evaluated)] == [Evaluated(loss=6.25, score=0.125)]
    assert told.repeated


def test_the_end_and_checkpoints_are_told() -> None:
    told = story(
        "INFO:tensorflow:Saving checkpoints for 998 into /there/model.ckpt.\n*** Finished training\n"
    )
    assert told.items[1:] == [Saved(step=998, path="/there/model.ckpt"), Ended()]


def test_the_first_time_of_day_after_a_start_is_its_time() -> None:
    stamp = "2020-06-26 15:36:42.500000: I tensorflow/a.cc:957] a word\n"
    later = "2020-06-26 15:36:43.500000: I tensorflow/a.cc:957] a word\n"
    told = story("*** Starting training from scratch\n" + stamp + later + step(0, 9.0, 0.5))
    assert isinstance(told.items[0], Begun)
    assert told.items[0].time_s == 1593185802.5
    assert story("2020-99-26 15:36:42.5: I nonsense\n").items == []
