import sys
from dataclasses import dataclass
from queue import Empty, SimpleQueue

import pytest

from tandem.launch import member as member_module
from tandem.launch.hosts import Host
from tandem.launch.member import Letter, Member
from tandem.launch.ssh import Ssh

FLOOD = """
for number in range(50):
    print('{"is": "flushed", "number": %d}' % number, flush=True)
input()
input()
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flood(Ssh):
    """A host that says much more than it is asked for."""

    def module(self, host: str, module: str, *arguments: str) -> list[str]:  # noqa: ARG002
        return [sys.executable, "-c", FLOOD]


@pytest.mark.timeout(60)
def test_a_host_that_says_more_than_is_read_waits_and_is_heard_in_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(member_module, "MOST_WAITING", 2)
    monkeypatch.setattr(member_module, "BEAT_S", 0.01)
    post: SimpleQueue[Letter] = SimpleQueue()
    flood = Member(host=Host(name="a"), ssh=Flood(), post=post)
    flood.open({"do": "open"})
    letters = [post.get(timeout=30) for _ in range(2)]
    with pytest.raises(Empty):
        post.get(timeout=0.5)
    # It waits, and is no less alive for that.
    before_s = flood.heard_s
    while flood.heard_s == before_s:
        pass
    while len(letters) < 50:
        room = letters[len(letters) - 2].room
        assert room is not None
        room.release()
        letters.append(post.get(timeout=30))
    assert [letter.message["number"] for letter in letters] == list(range(50))
    assert all(letter.is_foreign for letter in letters)
    flood.lose()
