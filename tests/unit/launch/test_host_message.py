from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.launch.host_message import NonsenseError, check_message

CERTIFICATE = "-----BEGIN CERTIFICATE-----\nMIIB+/=\n-----END CERTIFICATE-----\n"
STANDING = {"step": 1, "begun": 2, "done": 2, "collective": "sum", "changed_s": 5.5}
FAILURE = {"rank": 1, "kind": "peer", "message": "m", "time_s": 1.0}
GOOD: list[dict[str, Any]] = [
    {
        "is": "opened",
        "disk": "",
        "identity": "b n",
        "tandem": "0.1.0",
        "torch": "2",
        "device": "cpu",
        "workers": 2,
        "connection": "10.0.0.1 5 10.0.0.2 22",
        "time_s": 1.7e9,
    },
    {"is": "routed", "address": "fe80::1%eth0", "nic": "eth0", "is_private": False},
    {"is": "reserved", "port": 5000},
    {"is": "beat", "round": 0, "pulses": {}},
    {"is": "beat", "round": 3, "pulses": None},
    {"is": "beat", "round": 3, "pulses": {"0": STANDING}},
    {"is": "log", "file": "rank-00000.jsonl", "offset": 2, "text": "x\n"},
    {"is": "flushed"},
    {
        "is": "ended",
        "round": 1,
        "failed": {"1": -9},
        "failures": [FAILURE],
        "missed": "",
        "was_ended": False,
        "newest": None,
        "leaves": False,
    },
    {"is": "refused", "message": "No room."},
    {"is": "listening", "port": 5000, "certificate": CERTIFICATE},
]
OTHERS: list[Any] = [
    None,
    True,
    -1,
    10**30,
    1.5,
    float("nan"),
    "",
    "x",
    [],
    {},
    [[]],
    {"a": 1},
    "\ud800",
    "y" * 200_000,
]


@pytest.mark.parametrize("message", GOOD, ids=lambda message: message["is"])
def test_what_hosts_say_is_understood_with_more_than_is_known(message: Mapping[str, Any]) -> None:
    check_message(message)
    check_message({**message, "more": [1]})


@pytest.mark.parametrize("kind", ["equipped", "gone", "", "other", [], {}, None, 7])
def test_other_kinds_make_no_sense(kind: object) -> None:
    with pytest.raises(NonsenseError, match="no known kind"):
        check_message({"is": kind})


@pytest.mark.parametrize("message", GOOD, ids=lambda message: message["is"])
def test_nothing_may_lack(message: Mapping[str, Any]) -> None:
    for name in message.keys() - {"is"}:
        with pytest.raises(NonsenseError):
            check_message({key: value for key, value in message.items() if key != name})


@pytest.mark.parametrize(
    ("number", "name", "value"),
    [
        (0, "workers", 0),
        (0, "workers", True),
        (0, "workers", 10**9),
        (0, "time_s", float("inf")),
        (0, "connection", 5),
        (0, "disk", "d" * 1000),
        (1, "address", "example.org"),
        (1, "address", "10.0.0.1; x"),
        (1, "nic", "a b"),
        (1, "is_private", "yes"),
        (10, "port", 0),
        (10, "certificate", "-----BEGIN CERTIFICATE-----"),
        (2, "port", 0),
        (2, "port", 65_536),
        (2, "port", "5000"),
        (3, "round", -1),
        (5, "pulses", {"-1": STANDING}),
        (5, "pulses", {"0": {**STANDING, "step": "1"}}),
        (5, "pulses", {"0": {**STANDING, "collective": None}}),
        (6, "offset", -1),
        (6, "text", 5),
        (8, "failed", {"1": 10**9}),
        (8, "failed", {"1": -65}),
        (8, "failed", [1]),
        (8, "failures", [{**FAILURE, "kind": "other"}]),
        (8, "failures", [{**FAILURE, "rank": -1}]),
        (8, "failures", FAILURE),
        (8, "newest", "20"),
        (8, "leaves", 1),
        (9, "message", None),
    ],
)
def test_wrong_parts_make_no_sense(number: int, name: str, value: object) -> None:
    with pytest.raises(NonsenseError):
        check_message({**GOOD[number], name: value})


@given(st.sampled_from(GOOD), st.data())
def test_nothing_that_is_said_is_another_error(message: dict[str, Any], data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(message)))
    json = st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
    value = data.draw(st.sampled_from(OTHERS) | json)
    try:
        check_message({**message, name: value})
    except NonsenseError as error:
        assert len(str(error)) < 300  # noqa: PT017 - it may also make sense
