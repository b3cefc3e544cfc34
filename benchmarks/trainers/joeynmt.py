"""JoeyNMT's side of the measurement of training."""

import json
import re
from datetime import datetime
from pathlib import Path

from benchmarks.measure import Stages
from benchmarks.program import install_toolkit
from benchmarks.trainers.trainer import (
    LONGEST,
    Speed,
    Trainer,
    TrainJob,
    average_speed,
    last_log,
    module_command,
    no_speed,
    threaded,
)

__all__ = ["JOEYNMT"]

_LINE = re.compile(r"^(\S+ \S+) .* Step: +(\d+),.* Tokens per Sec: +(\d+)")


def _install(home: Path) -> None:
    needs = ["numpy<2", "setuptools<81", "pyyaml", "sentencepiece", "subword-nmt", "sacrebleu", "tensorboard"]
    needs += ["datasets", "matplotlib", "seaborn", "pandas", "packaging", "importlib-metadata"]
    install_toolkit(home, "joeynmt==2.3.0", needs=needs)


def _stages(job: TrainJob) -> Stages:
    side = {"max_length": LONGEST, "level": "word", "voc_file": "../text/vocabulary.txt"}
    stack = {
        "type": "transformer",
        "num_layers": 6,
        "num_heads": 4,
        "embeddings": {"embedding_dim": 512, "scale": True, "dropout": 0.1},
        "hidden_size": 512,
        "ff_size": 1024,
        "dropout": 0.1,
        "layer_norm": "pre",
    }
    settings = {
        "name": "bench",
        "model_dir": "model",
        "use_cuda": False,
        "fp16": False,
        "random_seed": 1,
        "data": {
            "train": "../text/pieces",
            "dev": "../text/few",
            "dataset_type": "plain",
            "src": {"lang": "en", **side},
            "trg": {"lang": "de", **side},
        },
        "testing": {"beam_size": 1},
        "training": {
            "loss": "crossentropy",
            "label_smoothing": 0.1,
            "normalization": "tokens",
            "optimizer": "adamw",
            "adam_betas": [0.9, 0.98],
            "learning_rate": 7e-4,
            "learning_rate_min": 0.0,
            "learning_rate_warmup": 4000,
            "scheduling": "warmupinversesquareroot",
            "clip_grad_norm": 1.0,
            # It counts padding, and does not sort by length: this comes to some 4,096 target tokens.
            "batch_type": "token",
            "batch_size": 10_700,
            "updates": job.steps,
            "logging_freq": job.warmup,
            "validation_freq": 10 * job.steps,
        },
        "model": {
            "initializer": "xavier_uniform",
            "embed_initializer": "xavier_uniform",
            "tied_embeddings": True,
            "tied_softmax": True,
            "encoder": stack,
            "decoder": stack,
        },
    }
    (job.out / "joeynmt.yaml").write_text(json.dumps(settings))
    command = module_command(JOEYNMT, "joeynmt", "train", "joeynmt.yaml", "--skip-test")
    return [[threaded(job.threads, command)]]


def _read_speed(job: TrainJob) -> Speed:
    """Take the rate from its log, and tokens from the rate and the times of the lines."""
    lines = [found.groups() for line in last_log(job).splitlines() if (found := _LINE.match(line))]
    if [int(step) for _, step, _ in lines] != [job.warmup, job.steps]:
        raise no_speed(JOEYNMT, job)
    before, after = (datetime.strptime(time, "%Y-%m-%d %H:%M:%S,%f") for time, _, _ in lines)  # noqa: DTZ007
    rate = float(lines[-1][2])
    seconds = (after - before).total_seconds()
    return average_speed(tokens=rate * seconds, seconds=seconds, steps=job.warmup)


JOEYNMT = Trainer(
    name="joeynmt",
    version="2.3.0",
    does="the same shape, pre-norm, batches of any lengths mixed; its own figure of target tokens a second",
    stages=_stages,
    speed=_read_speed,
    install=_install,
)
