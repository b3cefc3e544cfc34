"""A run on this host from beginning to end: data, workers, display, and where everything lies."""

# Imports wait until a command runs, so that --help answers at once.

import platform
import shlex
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import typer

from tandem import __version__
from tandem.cli.forward import forwarding
from tandem.cli.hosts import HostsOptions, crew_on_hosts, far_place
from tandem.cli.paths import near
from tandem.errors import TandemError
from tandem.files import read_bounded, read_json

if TYPE_CHECKING:
    from rich.console import Console

    from tandem.config import Recipe
    from tandem.data.prepared import Prepared
    from tandem.launch.supervisor import Crew, Supervisor
    from tandem.observe.watch import WatchState
    from tandem.observe.watch.follow import Sink
    from tandem.runlog.writer import RunLog

__all__ = ["How", "make_ready", "newest_step", "refuse_other_recipe", "reporting", "train_here"]

BUSY_S = 0.5
_ON_HOSTS = "hosts.txt"


@dataclass(frozen=True, slots=True, kw_only=True)
class How:
    """With what to train, and how to show it."""

    workers: int = 0
    """Processes; 0 means all GPUs, or on the CPU one, or as many as a run had before."""
    device: str = "auto"
    fit: bool = False
    batch_tokens: int | None = None
    restarts: int = 3
    plain: bool = False
    hosts: HostsOptions | None = None
    """None: this host alone."""
    forward: str = ""
    """A tool that the run is forwarded to; empty: none."""


def train_here(recipe: "Recipe", run: Path, how: How) -> "WatchState":
    """Train in the run's folder with workers of this host or of others, show it, and say where everything lies.

    Raises typer.Exit when it was asked to stop, after the workers have saved.
    """
    from rich.console import Console

    from tandem.launch.supervisor import Supervisor
    from tandem.lock import holding, using
    from tandem.runlog.writer import open_host_log

    console = Console(highlight=False, soft_wrap=True)
    # Whatever the run is forwarded to takes the rest when others may go on with the run already.
    with ExitStack() as outside, holding(run), ExitStack() as after:
        log = open_host_log(run, platform.node())
        reason = "interrupted"
        beside: list[Sink] = []

        def begin() -> None:
            after.enter_context(reporting(recipe, run))
            beside.extend(outside.enter_context(forwarding(run, how.forward)))

        story = _Story(log=log, recipe=recipe, on_begin=begin)
        try:
            with _crew(recipe, run, how, story) as crew, using(recipe.prepared_folder):
                supervisor = Supervisor(
                    crew,
                    log=log,
                    restarts=how.restarts,
                    progress=lambda: (newest_step(run), crew.newest_step),
                )
                state, signals = _follow(supervisor, run, console, how=how, beside=beside)
            reason = f"stopped by {signals[0].name}" if signals else "completed"
        except Exception as error:
            reason = f"failed: {error}"
            raise
        finally:
            story.end(reason)
            log.close()
    _show_end(run, state, console, how=how, is_stopped=bool(signals))
    if signals:
        raise typer.Exit(128 + signals[0])
    return state


@dataclass(slots=True, kw_only=True)
class _Story:
    """What this call tells in the run's log: nothing where it never began, so that an old run stays as it was."""

    log: "RunLog"
    recipe: "Recipe"
    on_begin: Callable[[], None]
    _has_begun: bool = False

    def begin(self, workers: int) -> None:
        """The run begins, or goes on, with so many workers."""
        _log_start(self.log, self.recipe, workers)
        self._has_begun = True
        self.on_begin()

    def end(self, reason: str) -> None:
        """The run ends."""
        from tandem.runlog.event import RunFinished

        if self._has_begun:
            self.log.log(RunFinished(reason=reason))


@contextmanager
def reporting(recipe: "Recipe", run: Path) -> Iterator[None]:
    """Keep the run's report up to date inside the block, and write it a last time after it."""
    from tandem.observe.report.keep import start_keeper

    if not recipe.telemetry.report:
        yield
        return
    keeper = start_keeper(run)
    yield
    # After an error nobody waits: the last report is written when this process is gone.
    keeper.finish()


@contextmanager
def _crew(recipe: "Recipe", run: Path, how: How, story: _Story) -> Iterator["Crew"]:
    """All workers, with their data, ready to start."""
    words = ["--fit"] if how.fit else []
    words += [] if how.batch_tokens is None else ["--batch-tokens", str(how.batch_tokens)]

    def prepare(workers: int) -> None:
        story.begin(workers)
        make_ready(recipe, run, story.log)

    if how.hosts is not None:
        run.mkdir(parents=True, exist_ok=True)
        from tandem.artefact import write_atomic

        write_atomic(run / _ON_HOSTS, shlex.join(how.hosts.words).encode() + b"\n")
        with crew_on_hosts(
            recipe, run, how.hosts, device=how.device, words=words, log=story.log, prepare=prepare
        ) as crew:
            yield crew
        return
    _refuse_alone(run)
    # Not before: a head of other hosts needs no torch, which takes longer to load than all else that it does.
    from tandem.launch.hardware import choose_hardware
    from tandem.launch.local import LocalCrew
    from tandem.process import python_command
    from tandem.runlog.layout import RunLayout

    device, workers = choose_hardware(how.device, how.workers, before=_cpu_ranks(run))
    prepare(workers)
    command = python_command("tandem.cli.rank", str(run), "--device", device, *words)
    yield LocalCrew(command, workers=workers, output=RunLayout(run).log)


def _refuse_alone(run: Path) -> None:
    """A run whose checkpoints are on other hosts must not begin anew here."""
    file = run / _ON_HOSTS
    if file.exists() and newest_step(run) is None:
        raise TandemError(
            f"{run} was begun on other hosts, which have its checkpoints: add "
            f"{read_bounded(file).decode(errors='replace').strip()}, or give "
            "another --run."
        )


def newest_step(run: Path) -> int | None:
    """The step of the newest whole checkpoint, if there is one."""
    from tandem.checkpoint.listing import list_checkpoints
    from tandem.runlog.layout import RunLayout

    infos = list_checkpoints(RunLayout(run).checkpoints)
    return max((info.step for info in infos if info.is_complete), default=None)


def _newest_state(run: Path) -> dict[str, Any]:
    """What the newest checkpoint that can be read says of the run; nothing where there is none."""
    from tandem.checkpoint.layout import STATE, step_folders
    from tandem.runlog.layout import RunLayout

    for folder in reversed(step_folders(RunLayout(run).checkpoints)):
        # The ranks look at every byte, and say what is wrong.
        with suppress(OSError, ValueError):
            state = read_json(folder / STATE)
            if isinstance(state, dict):
                return state
    return {}


def _cpu_ranks(run: Path) -> int:
    """On how many CPU ranks the newest checkpoint was made: as many again go on to the bit."""
    batches = _newest_state(run).get("batches", {})
    ranks = batches.get("ranks") if isinstance(batches, dict) and batches.get("device") == "cpu" else 1
    return ranks if type(ranks) is int and 0 < ranks <= 1024 else 1


def refuse_other_recipe(recipe: "Recipe", run: Path) -> None:
    """A run with checkpoints goes on with what it began with."""
    from tandem.config import differences, load_recipe, may_change_on_resume

    if newest_step(run) is None:
        return
    begun = load_recipe(run / "recipe.yaml").recipe
    changed = [key for key in differences(begun, recipe) if not may_change_on_resume(key)]
    if changed:
        named = ", ".join(changed[:3]) + (" …" if len(changed) > 3 else "")
        raise TandemError(
            f"{run} was begun with another recipe, which differs in {named}: give another --run, or go on with the "
            f"old recipe by tandem resume {run}."
        )


def make_ready(recipe: "Recipe", run: Path, log: "RunLog") -> None:
    """Prepare the data, unless the run has its own already, and write the recipe down for the workers."""
    from tandem.artefact import write_atomic
    from tandem.cli.bars import Bars
    from tandem.config import recipe_yaml
    from tandem.data.prepare import prepare
    from tandem.data.workers import cores

    folder = recipe.prepared_folder.resolve()
    if not _has_its_data(recipe, run):
        with Bars() as progress:
            _patiently(lambda: prepare(recipe, workers=cores(), progress=progress, log=log), progress.say)
    # Wherever the command is given, and with data inside the run even where the run is moved, the same data is found.
    home = run.resolve()
    data = recipe.data.model_copy(
        update={"folder": folder.relative_to(home) if folder.is_relative_to(home) else folder}
    )
    text = recipe_yaml(recipe.model_copy(update={"data": data}))
    run.mkdir(parents=True, exist_ok=True)
    write_atomic(run / "recipe.yaml", text.encode())


def _has_its_data(recipe: "Recipe", run: Path) -> bool:
    """Whether the data that a run has learned from is still there; it goes on with that, whatever the text is now."""
    state = _newest_state(run)
    if not state:
        return False
    from tandem.data.prepared import open_prepared
    from tandem.train.match import DATA, describe_data

    try:
        prepared = replace(open_prepared(recipe.prepared_folder), recipe=recipe)
        return state.get(DATA) == describe_data(prepared)
    except TandemError:
        return False


def _patiently(prepare: Callable[[], "Prepared"], say: Callable[[str], None]) -> "Prepared":
    """Wait where another run makes the same data ready: several may be started at once."""
    from tandem.lock import BusyError

    told = False
    while True:
        try:
            return prepare()
        except BusyError as error:
            if not told:
                say(f"Waiting: {error}")
            told = True
            time.sleep(BUSY_S)


def _log_start(log: "RunLog", recipe: "Recipe", workers: int) -> None:
    from tandem.artefact import fingerprint
    from tandem.runlog.event import RunStarted

    log.log(
        RunStarted(
            run=recipe.name,
            tandem=__version__,
            command=tuple(sys.argv),
            recipe=fingerprint(recipe.model_dump(mode="json")),
            world_size=workers,
            host=platform.node(),
            python=platform.python_version(),
            torch=version("torch"),
        )
    )


@contextmanager
def _stopping(supervisor: "Supervisor") -> Iterator[list[signal.Signals]]:
    """Inside the block the first signal asks the workers to save and end; Ctrl-C after it ends them at once."""
    got: list[signal.Signals] = []

    def ask(number: int, _frame: FrameType | None) -> None:
        if got and number == signal.SIGINT:
            supervisor.kill()
        got.append(signal.Signals(number))
        supervisor.stop()

    caught = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    # What was started with nohup ignores SIGHUP, and shall go on doing so.
    before = {
        number: signal.signal(number, ask)
        for number in caught
        if signal.getsignal(number) is not signal.SIG_IGN
    }
    try:
        yield got
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _follow(
    supervisor: "Supervisor", run: Path, console: "Console", *, how: How, beside: Sequence["Sink"] = ()
) -> tuple["WatchState", list[signal.Signals]]:
    """Start the workers, show what they do, and wait for their end; also gives the signals that came meanwhile."""
    if (step := newest_step(run)) is not None:
        console.print(f"{near(run)} goes on at step {step:,}.", markup=False)
    with _stopping(supervisor) as signals:
        return _show_work(supervisor, run, console, how=how, beside=beside), signals


def _show_work(
    supervisor: "Supervisor", run: Path, console: "Console", *, how: How, beside: Sequence["Sink"]
) -> "WatchState":
    from tandem.observe.sinks.printed import PrintedSink
    from tandem.observe.sinks.tensorboard import TensorBoardSink
    from tandem.observe.watch import follow_run

    since_ns = time.time_ns()
    # Of several hosts nobody can look at all files.
    printed = [PrintedSink(run, console)] if how.hosts is not None else []
    supervisor.start()
    try:
        with TensorBoardSink(run / "tensorboard") as curves:
            state = follow_run(
                run,
                console=console,
                until=lambda: supervisor.is_done,
                since_ns=since_ns,
                plain=how.plain,
                sinks=[curves, *printed, *beside],
            )
    finally:
        # Also where the display failed: a run does not end because nobody can see it.
        supervisor.wait()
    return state


def _show_end(run: Path, state: "WatchState", console: "Console", *, how: How, is_stopped: bool) -> None:
    from tandem.checkpoint.listing import list_checkpoints
    from tandem.observe.visible import visible
    from tandem.runlog.layout import RunLayout

    layout = RunLayout(run)
    whole = [info for info in list_checkpoints(layout.checkpoints) if info.is_complete]
    best = [(info, "BLEU", info.scores.bleu) for info in whole if info.is_best_bleu]
    best += [(info, "loss", info.scores.loss) for info in whole if info.is_best_loss]
    rows = [(near(info.folder), f"the newest checkpoint, of {len(whole)} kept") for info in whole[-1:]]
    rows += [
        (near(info.folder), f"the best {what} on the valid text: {value:.4g}") for info, what, value in best
    ]
    if how.hosts is not None and not whole:
        place = far_place(layout.checkpoints, how.hosts.folder)
        rows.append((place, f"the checkpoints, on each of {how.hosts.hosts}"))
    rows += [
        (near(layout.log), "the run log, and what the workers printed"),
        (near(run / "tensorboard"), "the curves: tensorboard --logdir shows them"),
    ]
    page = layout.report / "report.html"
    rows += [(near(page), "the report: open it in a browser")] if page.exists() else []
    # Where there was no place for the log, the checkpoints still tell.
    step = max([state.step, *(info.step for info in whole)])
    reason = f" ({visible(state.ended)})" if state.ended else ""
    console.print(f"\n{near(run)} is at step {step:,}{reason}.", markup=False)
    width = max(len(left) for left, _ in rows)
    for left, right in rows:
        console.print(f"  {left:<{width}}  {right}", markup=False)
    if whole:
        console.print(f"Translate with it:  tandem translate {near(run)}", markup=False)
    more = "" if is_stopped else " train.max_steps=…"
    where = "" if how.hosts is None else f" {shlex.join(how.hosts.words)}"
    console.print(f"What came of it:    tandem report {near(run)}", markup=False)
    console.print(f"Go on with it:      tandem resume {near(run)}{more}{where}", markup=False)
