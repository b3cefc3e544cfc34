import math

from tests.unit.observe.story import step_event

from tandem.observe.sinks.window import StepWindow


def test_every_step_is_a_point_at_first_and_every_tenth_later() -> None:
    window, points = StepWindow(), []
    for number in range(1, 1_101):
        if window.add(step_event(number)):
            taken = window.take()
            assert taken is not None
            points.append(taken[0])
    assert points == [*range(1, 1_001), *range(1_010, 1_101, 10)]


def test_a_point_holds_the_means_of_its_steps() -> None:
    window = StepWindow()
    window.add(step_event(1_001, loss=2.0, tokens=300))
    window.add(step_event(1_002, loss=6.0, tokens=100))
    taken = window.take()
    assert taken is not None
    step, scalars = taken
    assert step == 1_002
    assert scalars["train_loss"] == 3.0
    assert scalars["train_nll"] == 2.0
    assert scalars["steps_per_second"] == 4.0
    assert scalars["target_tokens_per_second"] == 800.0
    assert scalars["phase/forward"] == 0.06
    assert scalars["learning_rate"] == 7e-4


def test_skipped_steps_have_no_loss_but_take_time() -> None:
    window = StepWindow()
    window.add(step_event(1_001, loss=2.0))
    window.add(step_event(1_002, loss=math.nan, skipped=True))
    taken = window.take()
    assert taken is not None
    assert taken[1]["train_loss"] == 2.0
    assert taken[1]["steps_per_second"] == 4.0


def test_a_window_of_skipped_steps_says_nothing_of_the_loss() -> None:
    window = StepWindow()
    window.add(step_event(1, loss=math.nan, skipped=True))
    taken = window.take()
    assert taken is not None
    assert not taken[1].keys() & {"train_loss", "train_nll", "global_gradient_norm"}


def test_an_empty_window_has_nothing_to_take() -> None:
    window = StepWindow()
    window.add(step_event(1))
    window.take()
    assert window.take() is None
