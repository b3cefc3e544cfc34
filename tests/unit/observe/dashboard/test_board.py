"""What there is to tell: of each kind the newest, once for all, bounded for the slowest."""

import json
from typing import Any

from tandem.artefact import JsonValue
from tandem.observe.dashboard.board import MOST_LINES, Board, Viewer, encode


def taken(viewer: Viewer) -> list[tuple[str, Any]]:
    """All that is new."""
    events = list(iter(viewer.take, b""))
    pairs = [event.decode().rstrip("\n").split("\n") for event in events]
    return [(name.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for name, data in pairs]


def test_the_state_comes_first_and_then_what_waits_longest() -> None:
    board = Board()
    board.put("figure losses", {"name": "losses"})
    board.put("findings", [])
    board.put("state", {"step": 1})
    viewer = board.join(["losses"], lambda: None)
    assert [name for name, _ in taken(viewer)] == ["state", "figure", "findings"]
    board.put("figure losses", {"name": "losses", "more": 1})
    board.put("state", {"step": 2})
    assert [name for name, _ in taken(viewer)] == ["figure", "state"]
    assert taken(viewer) == []


def test_a_slow_viewer_holds_nothing_and_gets_the_newest_only() -> None:
    board = Board()
    viewer = board.join(["losses"], lambda: None)
    for number in range(1_000):
        board.put("state", {"step": number})
        board.put("figure losses", {"name": "losses", "number": number})
        board.put("figure bleu", {"name": "bleu", "number": number})
    assert taken(viewer) == [("state", {"step": 999}), ("figure", {"name": "losses", "number": 999})]


def test_what_is_the_same_as_before_is_not_told_again() -> None:
    board = Board()
    viewer = board.join([], lambda: None)
    board.put("state", {"now_ns": 1, "step": 1}, apart_from=("now_ns",))
    assert len(taken(viewer)) == 1
    board.put("state", {"now_ns": 2, "step": 1}, apart_from=("now_ns",))
    assert taken(viewer) == []
    board.put("state", {"now_ns": 3, "step": 2}, apart_from=("now_ns",))
    assert taken(viewer) == [("state", {"now_ns": 3, "step": 2})]


def test_what_is_dropped_is_not_told() -> None:
    board = Board()
    board.put("figure losses", {"name": "losses"})
    board.drop("figure losses")
    assert taken(board.join(["losses"], lambda: None)) == []


def test_figures_are_wanted_while_somebody_looks_at_them() -> None:
    board = Board()
    one, other = board.join(["losses", "bleu"], lambda: None), board.join(["bleu"], lambda: None)
    assert board.wanted() == {"losses", "bleu"}
    board.leave(one)
    assert (set(board.wanted()), board.is_seen) == ({"bleu"}, True)
    board.leave(other)
    assert (set(board.wanted()), board.is_seen) == (set(), False)


def test_every_viewer_is_woken_by_news_alone() -> None:
    board, woken = Board(), list[str]()
    board.join([], lambda: woken.append("one"))
    other = board.join([], lambda: woken.append("other"))
    board.put("findings", [1])
    assert sorted(woken) == ["one", "other"]
    board.leave(other)
    board.put("findings", [1])
    board.add_line({"text": "a"})
    assert sorted(woken) == ["one", "one", "other"]


def lines(count: int, *, start: int = 0) -> list[JsonValue]:
    return [{"text": str(number)} for number in range(start, start + count)]


def test_lines_are_told_from_where_a_viewer_has_them() -> None:
    board = Board()
    board.begin_lines(lines(3))
    viewer = board.join([], lambda: None)
    assert taken(viewer) == [("log", {"from": 0, "lines": lines(3)})]
    for line in lines(2, start=3):
        board.add_line(line)
    assert taken(viewer) == [("log", {"from": 3, "lines": lines(2, start=3)})]
    board.begin_lines(lines(1))
    assert taken(viewer) == [("log", {"from": 0, "lines": lines(1)})]


def test_old_lines_are_let_go_and_counted() -> None:
    board = Board()
    viewer = board.join([], lambda: None)
    board.begin_lines(lines(MOST_LINES))
    for line in lines(MOST_LINES, start=MOST_LINES):
        board.add_line(line)
    ((_, told),) = taken(viewer)
    assert (told["from"], len(told["lines"])) == (MOST_LINES, MOST_LINES)


def test_anything_has_a_json_form_in_one_line() -> None:
    assert encode({"a": float("nan"), "b": "x\ny"}) == b'{"a":null,"b":"x\\ny"}'
    assert json.loads(encode({"a": "\udc80", "b": float("inf")})) == {"a": "\\udc80", "b": None}
