"""Console logs in the form of OpenSeq2Seq, of runs that never were."""

from pathlib import Path
from typing import TypeVar

from tandem.runlog.event import Event
from tandem.runlog.reader import read_records

HEAD = """\
*** Using horovod
*** Starting training from scratch
*** Training config:
{'batch_size_per_gpu': 32,
 'data_layer_params': {'max_length': 56,
                       'source_file': '/there/train.en',
                       'target_file': '/there/train.de'},
 'dtype': 'mixed',
 'eval_steps': 201,
 'loss': <class 'somewhere.PaddedCrossEntropyLossWithSmoothing'>,
 'loss_params': {'label_smoothing': 0.1},
 'lr_policy': <function transformer_policy at 0x7f1c>,
 'lr_policy_params': {'d_model': 512,
                      'learning_rate': 2.0,
                      'warmup_steps': 8000},
 'max_steps': 1000,
 'num_gpus': 1,
 'optimizer': <class 'somewhere.LazyAdamOptimizer'>,
 'print_loss_steps': 100,
 'save_checkpoint_steps': 998,
 'use_horovod': True}
*** Evaluation config:
{'batch_size_per_gpu': 16,
 'max_steps': 77}
*** Building graph in Horovod rank: 1
*** Building graph in Horovod rank: 0
*** Trainable variables:
***   ForwardPass/encoder/embedding_and_softmax/weights:0
***     shape: (4096, 512), <dtype: 'float16_ref'>
*** Total trainable parameters: 6000000
2020-06-26 15:36:42.835076: I tensorflow/somewhere.cc:957] a word
name: Tesla V100-PCIE-16GB major: 7 minor: 0
alpha:298:374 [0] NCCL INFO NET : Using interface eth0:10.0.0.1<0>
alpha:298:374 [0] NCCL INFO rank 0 nranks 2
beta:278:355 [0] NCCL INFO rank 1 nranks 2
"""

PLAIN_HEAD = HEAD.replace("'use_horovod': True", "'use_horovod': False").split("*** Building")[0]


def evaluation(loss: float, score: float) -> str:
    """A block about an evaluation, with a sample that tries to tell of a step."""
    return (
        "*** Running evaluation on a validation set:\n"
        "***     *****EVAL Source[0]:     <s> Global step 5: loss: 1.2345 , time per step = 0:00:9.999\n"
        f"***     Validation loss: {loss:.4f} \n"
        f"***     Eval BLUE score: {score}\n"
    )


def step(number: int, loss: float, mean_s: float) -> str:
    """Lines about a step."""
    return f"*** Global step {number}: ***     Train loss: {loss:.4f} \ntime per step = 0:00:{mean_s:.3f}\n"


def whole() -> str:
    """A run of 500 steps with three evaluations; each of them takes 20 s, and the start 50 s."""
    return "".join(
        [
            HEAD,
            evaluation(9.4593, 0.9565),
            step(0, 9.4701, 0.5),
            step(100, 7.125, 1.625),
            step(200, 6.25, 1.5),
            evaluation(5.5, 0.125),
            step(300, 5.75, 1.7),
            step(400, 5.625, 1.5),
            evaluation(5.25, 0.1875),
            step(500, 5.375, 1.7),
        ]
    )


Kind = TypeVar("Kind", bound=Event)


def of(run: Path, kind: type[Kind]) -> list[Kind]:
    """The events of one kind in an imported run, in order."""
    return [record.event for record in read_records(run) if isinstance(record.event, kind)]
