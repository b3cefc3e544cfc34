"""Encoded gradients between the hosts of a lab: through the encrypted mesh, and bytes counted where they pass."""

from pathlib import Path

import pytest
from benchmarks.faulting import FAULTS, Fault, suffer, training, weights
from benchmarks.killing import write_recipe
from tests.hosts.test_train import sent_bytes

from tandem.lab import Lab
from tandem.runlog.event import ExchangeChosen, ResidualsRestored, RoundStarted, StepFinished
from tandem.runlog.reader import read_records

pytestmark = pytest.mark.xdist_group("training in a lab")
STEPS = 120
AT_STEP = 45
PATIENCE = ("--host-timeout", "6")
PACKED = ("--exchange", "packed", "exchange.exact_steps=10")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("head")
    write_recipe(folder, steps=STEPS, saved=20)
    return folder


@pytest.fixture(scope="module")
def alone(lab: Lab, folder: Path) -> str:
    """The weights of a packed run to which nothing happened."""
    with training(lab, folder, "alone", PACKED, hosts=2) as run:
        assert run.end() == 0, run.output.read_text()
    return weights(lab, "alone")


@pytest.mark.parametrize("hosts", [2, 3])
def test_bytes_on_the_link_are_those_that_the_codes_make(hosts: int, lab: Lab, folder: Path) -> None:
    words = [
        "--exchange",
        "packed",
        "exchange.exact_steps=0",
        "model.width=512",
        "model.feed_forward=2048",
        "train.max_steps=25",
        "evaluate.every_steps=null",
        "checkpoint.every_steps=1000",
    ]
    with training(lab, folder, f"bytes-{hosts}", words, hosts=hosts) as run:
        run.wait_for(lambda: run.count(RoundStarted) == 1, "the ranks to be started")
        before = [sent_bytes(lab, host) for host in lab.hosts[:hosts]]
        assert run.end() == 0, run.output.read_text()
        after = [sent_bytes(lab, host) for host in lab.hosts[:hosts]]
        (chosen,) = [each.event for each in run.records if isinstance(each.event, ExchangeChosen)]
    assert (chosen.mode, chosen.reason, chosen.hosts, chosen.shares) == ("packed", "ordered", hosts, 1)
    by_mode = dict(zip(chosen.modes, chosen.link_bytes, strict=True))
    assert by_mode["exact"] > 6 * by_mode["packed"]
    sent = [late - early for early, late in zip(before, after, strict=True)]
    assert sent == pytest.approx([25 * by_mode["packed"]] * hosts, rel=0.05)


@pytest.mark.parametrize(
    "fault",
    [
        fault
        for fault in FAULTS
        if fault.name in {"worker killed", "host killed, comes back", "link down for 3 s"}
    ],
    ids=lambda each: each.name,
)
def test_a_packed_run_that_lost_its_ranks_ends_in_the_same_bits(
    fault: Fault, lab: Lab, folder: Path, alone: str
) -> None:
    assert alone != "hosts differ"
    name = fault.name.replace(" ", "-").replace(",", "")
    words = [*PACKED, *(PATIENCE if fault.is_loss else ())]
    outcome = suffer(fault, lab, folder, run=name, at_step=AT_STEP, alone=alone, hosts=2, words=words)
    assert (outcome.exit_code, outcome.last_step) == (0, STEPS)
    assert outcome.is_identical
    records = [each.event for each in read_records(folder / "runs" / name)]
    restored = [each for each in records if isinstance(each, ResidualsRestored)]
    assert [(each.found, each.is_same_layout) for each in restored] == [(2, True)] * (outcome.starts - 1)
    assert {each.step for each in records if isinstance(each, StepFinished)} == set(range(1, STEPS + 1))
