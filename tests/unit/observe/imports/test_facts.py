from tests.unit.observe.imports.printing import HEAD, PLAIN_HEAD

from tandem.artefact import JsonValue
from tandem.observe.imports.facts import Teller, ring_bytes


def facts(text: str) -> dict[str, JsonValue]:
    teller = Teller()
    for line in text.splitlines():
        teller.take(line)
    return teller.facts()


def test_the_head_of_a_log_says_what_the_run_is() -> None:
    found = facts(HEAD)
    assert found.pop("loss_meaning")
    assert found.pop("best_checkpoints")
    assert found == {
        "eval_steps": 201,
        "max_steps": 1000,
        "print_loss_steps": 100,
        "save_checkpoint_steps": 998,
        "pairs_per_gpu": 32,
        "precision": "mixed",
        "optimizer": "LazyAdamOptimizer",
        "schedule": {
            "policy": "transformer_policy",
            "d_model": 512,
            "learning_rate": 2.0,
            "warmup_steps": 8000,
        },
        "label_smoothing": 0.1,
        "training_files": ["train.en", "train.de"],
        "vocabulary": 4096,
        "reported_parameters": 6_000_000,
        "gpu_name": "Tesla V100-PCIE-16GB",
        "interface": "eth0",
        "hosts": 2,
        "host_names": ["alpha", "beta"],
        "gpus": 2,
        "gradient_precision": "fp32",
        "gradient_bytes_per_step_per_link": 24_000_000,
    }


def test_without_horovod_the_gpus_of_the_one_host_are_those_of_the_configuration() -> None:
    found = facts(PLAIN_HEAD.replace("'num_gpus': 1", "'num_gpus': 4"))
    assert (found["gpus"], found["hosts"]) == (4, 1)


def test_ranks_are_counted_where_nccl_is_silent_and_hosts_are_then_unknown() -> None:
    found = facts("\n".join(line for line in HEAD.splitlines() if "NCCL" not in line))
    assert found["gpus"] == 2
    assert "hosts" not in found


def test_ranks_of_which_some_are_missing_are_not_counted() -> None:
    text = HEAD.replace("Horovod rank: 0", "Horovod rank: 2")
    assert "gpus" not in facts("\n".join(line for line in text.splitlines() if "NCCL" not in line))


def test_precision_is_told_in_either_form() -> None:
    assert facts(HEAD.replace("'mixed'", "tf.float32"))["precision"] == "fp32"
    assert facts(HEAD.replace("'mixed'", "<dtype: 'float32'>"))["precision"] == "fp32"


def test_a_log_without_its_head_says_nothing() -> None:
    assert facts("*** Finished training\n") == {}


def test_the_tools_own_means_are_kept() -> None:
    found = facts("*** Avg time per step: 1.686s\n*** Avg objects per second: 36123.250\n")
    assert found == {"reported_step_s": 1.686, "reported_objects_per_s": 36123.25}


def test_a_ring_sends_nearly_twice_the_gradients() -> None:
    assert ring_bytes(243_523_584, 4) == 365_285_376
