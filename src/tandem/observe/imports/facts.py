"""What OpenSeq2Seq said of itself before it trained: its configuration, its ranks and hosts, its model."""

import re
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath

from tandem.artefact import JsonValue
from tandem.observe.imports.literal import Literal, read_literal

__all__ = ["GRADIENT_BYTES", "LossMeaning", "Teller", "ring_bytes"]

GRADIENT_BYTES = 4
"""Of each parameter: gradients are summed in 32 bits also in mixed precision, where they are cast before."""

_CONFIG_LINES = 2_000
_HOST = re.compile(r"(?<![\w.-])([\w.-]{1,255}):\d{1,9}:\d{1,9} \[\d{1,4}\] NCCL INFO ")
_NAMED: tuple[tuple[str, re.Pattern[str], Callable[[str], JsonValue]], ...] = (
    ("reported_parameters", re.compile(r"Total trainable parameters: (\d{1,15})\s*$"), int),
    ("nranks", re.compile(r"NCCL INFO .{0,200}?\bnranks (\d{1,6})\b"), int),
    ("gpu_name", re.compile(r"\bname: (\S[^,]{0,99}?)(?: major: \d|, pci bus id)"), str),
    ("interface", re.compile(r"NCCL INFO NET\S{0,20} : Using interface ([\w.-]{1,50}?):\d"), str),
    ("reported_step_s", re.compile(r"Avg time per step: (\d{1,9}\.\d{3})s\s*$"), float),
    ("reported_objects_per_s", re.compile(r"Avg objects per second: (\d{1,12}\.\d{3})\s*$"), float),
)
_RANK = re.compile(r"Building graph in Horovod rank: (\d{1,6})\s*$")
_SHAPE = re.compile(r"\*\*\*     shape: \((\d{1,9}), \d{1,9}\), ")
_COPIED = ("save_checkpoint_steps", "eval_steps", "max_steps", "num_epochs", "print_loss_steps", "iter_size")


BEST_CHECKPOINTS = "best_models/val_loss=…-step-…, after each evaluation with a lower loss than all before it"
"""What the tool keeps beside the checkpoints at every so many steps."""


class LossMeaning:
    """What the losses of the tool are."""

    SMOOTHED = (
        "cross-entropy with smoothed labels, less the lowest value that smoothing allows; evaluations have it too, "
        "without dropout: its exponential is no perplexity"
    )
    PLAIN = "cross-entropy as the tool computes it"


class Teller:
    """Takes the lines of a log and gathers the facts."""

    def __init__(self) -> None:
        self._found: dict[str, JsonValue] = {}
        self._hosts: set[str] = set()
        self._ranks: set[int] = set()
        self._config: list[str] | None = None
        self._configs: dict[str, str] = {}
        self._reading = ""
        self._is_embedding = False

    def take(self, text: str) -> None:
        """Look at one line."""
        self._take_config(text)
        for name, pattern, read in _NAMED:
            if found := pattern.search(text):
                self._found[name] = read(found[1])
        if found := _HOST.search(text):
            self._hosts.add(found[1])
        if found := _RANK.search(text):
            self._ranks.add(int(found[1]))
        if (found := _SHAPE.match(text)) and self._is_embedding:
            self._found.setdefault("vocabulary", int(found[1]))
        self._is_embedding = text.startswith("***   ForwardPass") and "embedding" in text

    def facts(self) -> dict[str, JsonValue]:
        """All that was found, by the names that docs/import.md lists."""
        self._close_config()
        config = read_literal(self._configs.get("Training", ""))
        facts = {**_from_config(config), **self._found}
        ranks = facts.pop("nranks", None) or (len(self._ranks) if self._has_all_ranks() else None)
        if config.get("use_horovod") is False:
            facts["hosts"] = 1
            ranks = config.get("num_gpus", 1)
        elif self._hosts and "nranks" in self._found:
            facts["hosts"] = len(self._hosts)
            facts["host_names"] = list[JsonValue](sorted(self._hosts))
        if isinstance(ranks, int) and ranks > 0:
            facts["gpus"] = ranks
            _add_ring(facts)
        return facts

    def _has_all_ranks(self) -> bool:
        return self._ranks == set(range(len(self._ranks))) and "Training" in self._configs

    def _take_config(self, text: str) -> None:
        if found := re.search(r"\b(Training|Evaluation) config:\s*$", text):
            self._close_config()
            self._reading, self._config = found[1], []
        elif self._config is not None:
            # Other ranks may print a line in between.
            if re.match(r"[{ ]", text) and len(self._config) < _CONFIG_LINES:
                self._config.append(text)
            elif text.startswith("***"):
                self._close_config()

    def _close_config(self) -> None:
        if self._config:
            self._configs[self._reading] = "\n".join(self._config)
        self._config = None


def ring_bytes(gradient_bytes: int, ranks: int) -> int:
    """That a ring sends over each of its links in a step, in one direction."""
    return round(2 * (ranks - 1) / ranks * gradient_bytes)


def _add_ring(facts: dict[str, JsonValue]) -> None:
    ranks, parameters = facts["gpus"], facts.get("reported_parameters")
    if isinstance(ranks, int) and isinstance(parameters, int) and ranks > 1:
        facts["gradient_precision"] = "fp32"
        facts["gradient_bytes_per_step_per_link"] = ring_bytes(GRADIENT_BYTES * parameters, ranks)


def _from_config(config: Mapping[str, Literal]) -> dict[str, JsonValue]:
    facts: dict[str, JsonValue] = {}
    for name in _COPIED:
        value = config.get(name)
        if type(value) is int:
            facts[name] = value
    for name, key in (("pairs_per_gpu", "batch_size_per_gpu"), ("keep_checkpoints", "num_checkpoints")):
        value = config.get(key)
        if type(value) is int:
            facts[name] = value
    if facts.get("save_checkpoint_steps"):
        facts["best_checkpoints"] = BEST_CHECKPOINTS
    if "dtype" in config:
        facts["precision"] = _precision(str(config["dtype"]))
    if "optimizer" in config:
        facts["optimizer"] = _last_name(str(config["optimizer"]))
    facts.update(_from_sections(config))
    return facts


def _from_sections(config: Mapping[str, Literal]) -> dict[str, JsonValue]:
    facts: dict[str, JsonValue] = {}
    numbers = config.get("lr_policy_params")
    if "lr_policy" in config and isinstance(numbers, Mapping):
        held = {name: value for name, value in numbers.items() if isinstance(value, int | float | str)}
        facts["schedule"] = {"policy": _last_name(str(config["lr_policy"])), **held}
    loss = config.get("loss_params")
    if isinstance(loss, Mapping) and isinstance(smoothing := loss.get("label_smoothing"), float):
        facts["label_smoothing"] = smoothing
    if "WithSmoothing" in str(config.get("loss")):
        facts["loss_meaning"] = LossMeaning.SMOOTHED
    elif "loss" in config:
        facts["loss_meaning"] = LossMeaning.PLAIN
    data = config.get("data_layer_params")
    if isinstance(data, Mapping):
        names = [data.get("source_file"), data.get("target_file")]
        facts["training_files"] = [PurePosixPath(name).name for name in names if isinstance(name, str)]
    return facts


def _precision(dtype: str) -> str:
    for part, name in (("mixed", "mixed"), ("float32", "fp32"), ("float16", "fp16")):
        if part in dtype:
            return name
    return dtype


def _last_name(printed: str) -> str:
    """`<class 'a.b.Adam'>` and `<function poly at 0x7f>` by their last name."""
    found = re.search(r"'(?:[\w.]*\.)?(\w+)'|<function (\w+)", printed)
    return (found[1] or found[2]) if found else printed
