import math
from collections.abc import Iterable
from dataclasses import replace

from tests.unit.observe.story import RUN_STARTED, Teller, checkpoint, finished, started, step_event, training
from tests.unit.observe.test_shares import CHANGED

from tandem.observe.shares import shares_sentence
from tandem.observe.watch.life import Life
from tandem.observe.watch.lines import Narrator
from tandem.observe.watch.progress import equipment_of
from tandem.observe.watch.state import WatchState
from tandem.runlog.event import RunFinished, RunImported, WorkersLost
from tandem.runlog.record import Record

NANO = 1_000_000_000


def told(records: Iterable[Record], *, spent_s: float = 0.0) -> list[str]:
    narrator, state, lines = Narrator(), WatchState(), []
    state.spent.training_s = spent_s
    for record in records:
        state.apply(record)
        lines += narrator.lines(record, state)
    return lines


def test_a_start_says_with_what() -> None:
    assert told([Teller().tell(started())]) == [
        "training starts: 60.9 million parameters, 2 ranks (cuda bf16), 25,000 target tokens an update planned"
    ]


def test_a_start_that_goes_a_slower_way_says_why() -> None:
    lines = told([Teller().tell(started(way_reason="Triton is not installed"))])
    assert lines[1:] == ["computing with plain operations, which is slower: Triton is not installed"]


def test_new_shares_are_a_line_and_stand_beside_the_ranks() -> None:
    records = [Teller().tell(event) for event in (started(), CHANGED)]
    assert told(records)[1:] == [shares_sentence(CHANGED)]
    state = WatchState()
    for record in records:
        state.apply(record)
    assert equipment_of(state) == "2 ranks, cuda bf16, shares 75.0 %, 25.0 % · 60.9 million parameters"
    state.apply(Teller().tell(started(400)))
    assert state.shares is None


def test_a_restart_says_from_where() -> None:
    assert told([Teller().tell(started(400))]) == [
        "training goes on after step 400 from checkpoints/step-00000400: 60.9 million parameters, 2 ranks (cuda bf16)"
    ]


def test_steps_are_told_of_every_ten_seconds() -> None:
    teller = Teller()
    lines = told([teller.tell(started()), *(teller.step(step, loss=4.0) for step in range(1, 101))])
    assert lines[1:] == [
        f"step {step} of 1,000 ({step // 10} %), epoch 1, loss 4.000, 100,000 target tokens/s, "
        f"learning rate {7e-4 * step / 400:.2e}, gradient norm 0.75{left}"
        for step, left in ((1, ""), (41, ", 4 min 00 s left"), (81, ", 3 min 50 s left"))
    ]


def test_steps_of_a_long_run_are_told_of_every_minute() -> None:
    teller = Teller()
    lines = told((teller.step(step) for step in range(1, 500)), spent_s=90_000)
    assert [line.partition(",")[0] for line in lines] == ["step 1", "step 241", "step 481"]


def test_an_evaluation_is_a_line_and_a_sample() -> None:
    teller = Teller()
    assert told(teller.evaluation(500)) == [
        (
            "evaluated at step 500 in 10 s: valid loss 3.472, perplexity 32.19, probe loss 3.347, "
            "BLEU 19.7, chrF 44.0, best loss and BLEU so far"
        ),
        "  source     The harbour master closed the northern gate before the storm.",
        "  reference  Der Hafenmeister schloss das Nordtor vor dem Sturm.",
        "  model      Der Hafenmeister schloss das Nordtor vor dem Sturm.",
    ]


def test_an_evaluation_without_translations_tells_of_the_loss_alone() -> None:
    records = list(Teller().evaluation(500, best_loss=False, best_bleu=False))
    lines = told([*records[:2], records[-1]])
    assert lines == ["evaluated at step 500 in 10 s: valid loss 3.972, perplexity 53.07"]


def test_a_checkpoint_is_a_line() -> None:
    assert told([Teller().tell(checkpoint(500))]) == [
        "checkpoint checkpoints/step-00000500: 730.6 MB in 2.5 s, training waited 0.5 s"
    ]


def test_the_end_is_told_once_with_the_time_by_what_it_was_spent_on() -> None:
    teller = Teller()
    records = [*training(teller, steps=400), teller.tell(finished(400))]
    end = [teller.tell(checkpoint(400)), teller.tell(RunFinished(reason="completed"))]
    assert told([*records, *end])[-2:] == [
        (
            "training finished at step 400: reached 400 steps; 1 min 40 s training, 20 s evaluation, "
            "1.0 s waiting for checkpoints"
        ),
        "checkpoint checkpoints/step-00000400: 730.6 MB in 2.5 s, training waited 0.5 s",
    ]


def test_a_run_that_never_trained_still_tells_its_end() -> None:
    teller = Teller()
    ends = [teller.tell(RunFinished(reason="failed: no disk"), rank=rank) for rank in (0, None, 1)]
    assert told(ends) == ["run finished: failed: no disk"]


def test_a_rank_that_failed_and_is_started_again_has_not_ended_the_run() -> None:
    teller = Teller()
    lines = told(
        [
            teller.tell(RUN_STARTED, rank=None),
            teller.tell(RUN_STARTED),
            teller.tell(started()),
            teller.tell(RunFinished(reason="failed: rank 1 is lost")),
            teller.tell(WorkersLost(attempt=1, exit_code=-9, rank=1, reason="killed"), rank=None),
            teller.tell(RUN_STARTED),
            teller.tell(started(400)),
            teller.tell(RunFinished(reason="completed"), rank=None),
        ]
    )
    assert [line.partition(":")[0] for line in lines] == [
        "training starts",
        "training goes on after step 400 from checkpoints/step-00000400 (attempt 2)",
        "run finished",
    ]


def test_other_ranks_tell_nothing() -> None:
    assert told([Teller().step(1, rank=1, loss=math.inf)]) == []


def test_an_imported_run_is_told_without_what_nobody_knows() -> None:
    teller = Teller()
    imported = RunImported(tool="tensorboard", files=(), times="wall", step_kind="each", facts={})
    step = replace(step_event(7, loss=4.0), learning_rate=math.nan, target_tokens=0)
    lines = told([teller.tell(imported), teller.tell(replace(started(), max_steps=0)), teller.tell(step)])
    assert lines == ["imported from tensorboard", "step 7, epoch 1, loss 4.000, gradient norm 0.75"]


class Listener:
    """Tells a run of so many steps, and then what a narrator says while nothing comes."""

    def __init__(self, steps: int) -> None:
        self.teller, self.narrator, self.state = Teller(), Narrator(), WatchState()
        for number in range(1, steps + 1):
            self.take(self.teller.step(number, loss=4.0))

    def take(self, record: Record) -> list[str]:
        self.state.apply(record)
        return self.narrator.lines(record, self.state)

    def wait(self, seconds: float, life: Life = "at work") -> list[str]:
        now_ns = self.state.last_time_ns + int(seconds * NANO)
        return [
            line.partition(",")[0] for line in self.narrator.meanwhile(self.state, life=life, now_ns=now_ns)
        ]


def test_the_last_step_is_told_when_nothing_more_comes_and_only_once() -> None:
    listener = Listener(30)
    assert [listener.wait(seconds) for seconds in (1, 11, 12)] == [[], ["step 30"], []]


def test_a_last_step_that_was_told_is_not_told_again() -> None:
    assert Listener(41).wait(11) == []


def test_a_silence_is_told_once_and_again_only_where_more_is_known() -> None:
    listener = Listener(1)
    lost = "warning: lost for 1 min 00 s: its process is gone without a word (was training)"
    assert listener.wait(45, "silent") == ["warning: silent for 45 s (was training)"]
    assert listener.wait(46, "silent") == []
    assert listener.wait(60, "lost") == [lost]
    assert listener.wait(61, "lost") == []
    assert listener.wait(62, "silent") == []


def test_a_run_that_is_heard_again_says_after_how_long() -> None:
    listener = Listener(1)
    assert listener.narrator.hear(listener.state, life="at work") == []
    listener.wait(45, "silent")
    listener.take(listener.teller.tell(started(1), after_s=120))
    # What was written long ago, and only comes now, is no news.
    assert listener.narrator.hear(listener.state, life="silent") == []
    assert listener.narrator.hear(listener.state, life="at work") == ["heard again after 2 min 00 s"]
    assert listener.narrator.hear(listener.state, life="at work") == []
    assert listener.wait(45, "silent") == ["warning: silent for 45 s (was training)"]


def test_a_run_that_failed_tells_its_last_step_before_its_end() -> None:
    listener = Listener(30)
    first, last = listener.take(listener.teller.tell(RunFinished(reason="failed: no disk")))
    assert first.startswith("step 30, ")
    assert last == "run finished: failed: no disk"


def test_no_step_is_told_after_the_end() -> None:
    listener = Listener(30)
    listener.take(listener.teller.tell(finished(31)))
    assert listener.take(listener.teller.tell(step_event(31), after_s=60)) == []
    assert listener.wait(60, "over") == []
