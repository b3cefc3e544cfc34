"""fairseq's side of the measurement of training."""

import json
from collections.abc import Mapping

from benchmarks.measure import Stages
from benchmarks.trainers.trainer import (
    Speed,
    Trainer,
    TrainJob,
    last_log,
    module_command,
    no_speed,
    threaded,
)
from benchmarks.yardsticks import FAIRSEQ as PREPARE

__all__ = ["FAIRSEQ"]


def _stages(job: TrainJob) -> Stages:
    (job.out / "vocabulary.txt").write_text(
        "".join(
            f"{piece} 1\n" for piece in (job.out / "../text/vocabulary.txt").read_text().split("\n") if piece
        )
    )
    texts = [
        "--source-lang",
        "en",
        "--target-lang",
        "de",
        "--trainpref",
        "../text/pieces",
        "--validpref",
        "../text/few",
    ]
    vocabulary = ["--srcdict", "vocabulary.txt", "--joined-dictionary", "--destdir", "binary"]
    prepare = module_command(PREPARE, "fairseq_cli.preprocess", *texts, *vocabulary)
    values: Mapping[str, object] = {
        "arch": "transformer",
        "encoder-layers": 6,
        "encoder-embed-dim": 512,
        "encoder-ffn-embed-dim": 1024,
        "encoder-attention-heads": 4,
        "decoder-layers": 6,
        "decoder-embed-dim": 512,
        "decoder-ffn-embed-dim": 1024,
        "decoder-attention-heads": 4,
        "dropout": 0.1,
        "criterion": "label_smoothed_cross_entropy",
        "label-smoothing": 0.1,
        "optimizer": "adam",
        "adam-betas": "(0.9, 0.98)",
        "lr-scheduler": "inverse_sqrt",
        "lr": 7e-4,
        "warmup-updates": 4000,
        "clip-norm": 1.0,
        # It counts padding, and the longer side: this comes to some 4,096 target tokens.
        "max-tokens": 5900,
        "max-update": job.steps,
        "log-format": "json",
        "log-interval": job.steps,
        "num-workers": 0,
        "seed": 1,
    }
    switches = ["encoder-normalize-before", "decoder-normalize-before", "share-all-embeddings"]
    switches += ["disable-validation", "no-save", "cpu"]
    options = [text for key, value in values.items() for text in (f"--{key}", str(value))]
    options += [f"--{switch}" for switch in switches]
    train = module_command(PREPARE, "fairseq_cli.train", "binary", *options)
    return [[prepare], [threaded(job.threads, train)]]


def _read_speed(job: TrainJob) -> Speed:
    """Take its averages at the end, which leave out the first step."""
    for line in last_log(job).splitlines():
        if '"train_wps"' in line:
            figures = json.loads(line)
            return Speed(
                target_tokens_per_s=float(figures["train_wps"]),
                target_tokens_per_update=float(figures["train_wpb"]),
            )
    raise no_speed(FAIRSEQ, job)


FAIRSEQ = Trainer(
    name=PREPARE.name,
    version=PREPARE.version,
    does="the same shape, pre-norm, batches of similar length; its own average of target tokens a second from the "
    "second step on",
    stages=_stages,
    speed=_read_speed,
    install=PREPARE.install,
)
