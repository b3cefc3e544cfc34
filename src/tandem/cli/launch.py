"""`tandem launch`: hands a run to a cluster's scheduler."""

# Imports wait until a command runs, so that --help answers at once.

import sys
from pathlib import Path
from typing import Annotated

import typer

from tandem.cli.paths import near
from tandem.cli.train import BatchTokens, Device, Fit, Restarts

__all__ = ["app", "k8s", "slurm"]

app = typer.Typer(
    help="Hands a run to the scheduler of a cluster.", no_args_is_help=True, rich_markup_mode=None
)

_Recipe = Annotated[Path, typer.Argument(help="The recipe, a YAML file.")]
_Overrides = Annotated[list[str] | None, typer.Argument(help="Values to change: a.b=c …")]
_Nodes = Annotated[int, typer.Option(min=1, help="How many machines.")]


@app.command("slurm")
def slurm(
    recipe: _Recipe,
    overrides: _Overrides = None,
    *,
    run: Annotated[Path | None, typer.Option(help="The run's folder; runs/NAME if not given.")] = None,
    nodes: _Nodes = 1,
    workers: Annotated[
        int, typer.Option(min=0, help="Processes a node; 0: one for each of --gpus-per-node, or one.")
    ] = 0,
    gpus_per_node: Annotated[int, typer.Option(min=0, help="GPUs a node.")] = 0,
    cpus_per_task: Annotated[
        int, typer.Option(min=0, help="Cores a process; 0: as the cluster does, often one.")
    ] = 0,
    time: Annotated[str, typer.Option(help="Time limit: 24:00:00, 2-12 for days-hours.")] = "",
    partition: Annotated[str, typer.Option(help="Where to queue.")] = "",
    account: Annotated[str, typer.Option(help="Who pays.")] = "",
    device: Device = "auto",
    fit: Fit = False,
    batch_tokens: BatchTokens = None,
    restarts: Restarts = 3,
    python: Annotated[str, typer.Option(help="The Python of Tandem on the nodes.")] = sys.executable,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the script; submit nothing.")] = False,
) -> None:
    """Write a batch script into the run's folder and submit it; the job saves before its time is up, and goes on.

    The nodes must see this folder, the run's folder and the Python.
    """
    from tandem.cli.training import refuse_other_recipe
    from tandem.config import load_recipe
    from tandem.launch.slurm import SlurmJob, submit
    from tandem.process import python_command

    loaded = load_recipe(recipe, overrides or ()).recipe
    folder = run or Path("runs") / loaded.name
    refuse_other_recipe(loaded, folder)
    command = python_command("tandem", "train", str(recipe.resolve()), *(overrides or ()), python=python)
    command += ["--run", str(folder.resolve()), "--device", device]
    command += ["--fit"] if fit else []
    command += [] if batch_tokens is None else ["--batch-tokens", str(batch_tokens)]
    job = SlurmJob(
        name=loaded.name,
        run=folder.resolve(),
        folder=Path.cwd(),
        command=command,
        nodes=nodes,
        workers=workers or gpus_per_node or 1,
        restarts=restarts,
        time=time,
        partition=partition,
        account=account,
        gpus_per_node=gpus_per_node,
        cpus_per_task=cpus_per_task,
    )
    if dry_run:
        typer.echo(job.script(), nl=False)
        return
    number = submit(job)
    typer.echo(f"Job {number} is submitted; what it prints goes to {near(folder)}/slurm-{number}.txt.")
    typer.echo(f"  squeue -j {number}   tandem watch {near(folder)}   scancel {number}")


@app.command("k8s")
def k8s(
    recipe: _Recipe,
    overrides: _Overrides = None,
    *,
    image: Annotated[str, typer.Option(help="Container image that has Tandem.")],
    claim: Annotated[str, typer.Option(help="PersistentVolumeClaim for text, data and run.")],
    nodes: _Nodes = 1,
    gpus: Annotated[
        int, typer.Option(min=0, help="GPUs a node, each with a process; 0: one process on the CPU.")
    ] = 1,
    namespace: Annotated[str, typer.Option(help="Namespace; the current one if not given.")] = "",
    runtime: Annotated[str, typer.Option(help="The cluster's training runtime.")] = "torch-distributed",
    service_account: Annotated[
        str, typer.Option(help="An account that exists, as for pull secrets; else one without any rights.")
    ] = "",
    out: Annotated[Path | None, typer.Option(help="Write into a file instead of printing.")] = None,
) -> None:
    """Write a manifest for the Kubeflow trainer (2.2 or newer), the recipe in it: kubectl apply -f starts the run."""
    from tandem.artefact import write_atomic
    from tandem.config import load_recipe
    from tandem.launch.kubernetes import TrainJob

    loaded = load_recipe(recipe, overrides or ()).recipe
    job = TrainJob(
        recipe_name=loaded.name,
        recipe=recipe.read_text(encoding="utf-8"),
        overrides=overrides or (),
        image=image,
        claim=claim,
        nodes=nodes,
        gpus=gpus,
        namespace=namespace,
        runtime=runtime,
        service_account=service_account,
    )
    if out is None:
        typer.echo(job.manifest(), nl=False)
        return
    write_atomic(out, job.manifest().encode())
    typer.echo(f"{near(out)} is written: start it with kubectl apply -f {near(out)}.")
