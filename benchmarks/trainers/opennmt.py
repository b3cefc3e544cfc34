"""OpenNMT-py's side of the measurement of training."""

import json
import re
from pathlib import Path

from benchmarks.measure import Stages
from benchmarks.program import install_toolkit
from benchmarks.trainers.trainer import Speed, Trainer, TrainJob, last_log, module_command, no_speed, threaded

__all__ = ["OPENNMT"]

_LINE = re.compile(r"Step +(\d+)/.* bsz: +\d+/ *(\d+)/.*; +\d+/ *(\d+) tok/s")


def _install(home: Path) -> None:
    needs = ["numpy<2", "setuptools<81", "configargparse", "pyyaml", "sacrebleu", "tensorboard", "rapidfuzz"]
    needs += [
        "flask",
        "waitress",
        "six",
        "pyonmttok",
        "pyahocorasick",
        "ctranslate2",
        "spacy",
        "fasttext-wheel",
    ]
    install_toolkit(home, "OpenNMT-py==3.5.1", needs=needs)


def _stages(job: TrainJob) -> Stages:
    settings = {
        "data": {"corpus": {"path_src": "../text/pieces.en", "path_tgt": "../text/pieces.de"}},
        "src_vocab": "../text/vocabulary.txt",
        "share_vocab": True,
        "share_embeddings": True,
        "share_decoder_embeddings": True,
        "save_model": "model",
        "encoder_type": "transformer",
        "decoder_type": "transformer",
        "hidden_size": 512,
        "word_vec_size": 512,
        "heads": 4,
        "enc_layers": 6,
        "dec_layers": 6,
        "transformer_ff": 1024,
        "position_encoding": True,
        "dropout": [0.1],
        "attention_dropout": [0.0],
        "label_smoothing": 0.1,
        "optim": "adam",
        "adam_beta2": 0.98,
        "decay_method": "noam",
        "learning_rate": 2.0,
        "warmup_steps": 4000,
        "max_grad_norm": 1.0,
        "param_init_method": "xavier_uniform",
        # It counts padding, and the longer side: this comes to some 4,096 target tokens.
        "batch_type": "tokens",
        "batch_size": 5500,
        "batch_size_multiple": 1,
        "normalization": "tokens",
        "num_workers": 0,
        "train_steps": job.steps,
        "save_checkpoint_steps": 10 * job.steps,
        "report_every": job.warmup,
        "seed": 1,
    }
    (job.out / "opennmt.yaml").write_text(json.dumps(settings))
    return [[threaded(job.threads, module_command(OPENNMT, "onmt.bin.train", "--config", "opennmt.yaml"))]]


def _read_speed(job: TrainJob) -> Speed:
    for found in _LINE.finditer(last_log(job)):
        step, update_tokens, rate = map(int, found.groups())
        if step == job.steps:
            return Speed(target_tokens_per_s=rate, target_tokens_per_update=update_tokens)
    raise no_speed(OPENNMT, job)


OPENNMT = Trainer(
    name="opennmt-py",
    version="3.5.1",
    does="the same shape, pre-norm, batches of similar length; its own figure of target tokens a second",
    stages=_stages,
    speed=_read_speed,
    install=_install,
)
