import json
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tandem import __version__
from tandem.errors import TandemError
from tandem.launch import crew as crew_module
from tandem.launch import member
from tandem.launch.cause import Cause
from tandem.launch.crew import HostCrew
from tandem.launch.hosts import Host
from tandem.launch.run_settings import RunSettings
from tandem.launch.ssh import Ssh
from tandem.runlog.event import Event, HostRefused, RoundStarted

# A host of the test's own: it answers as the file of its name says, one line for each time that it is connected to.
FAR = """
import json, sys
from pathlib import Path
folder, name = Path(sys.argv[1]), sys.argv[2]
seen = folder / f"{name}.seen"
number = len(seen.read_text()) if seen.exists() else 0
seen.write_text("." * (number + 1))
lines = (folder / name).read_text().splitlines()
acts = json.loads(lines[min(number, len(lines) - 1)])
def say(**message):
    print(json.dumps(message), flush=True)
for line in sys.stdin:
    message = json.loads(line)
    match message["do"]:
        case "open" if "refuses" in acts:
            say(**{"is": "refused", "message": acts["refuses"]})
        case "open" if "greets" in acts:
            say(**acts["greets"])
        case "run" if "raves" in acts:
            say(**{"round": message["round"], **acts["raves"]})
        case "open" if "dies" in acts:
            sys.exit(acts["dies"])
        case "open":
            facts = {"tandem": acts["tandem"], "torch": "2", "device": "cpu", "workers": message["workers"] or 1}
            where = {"identity": acts.get("identity", name), "connection": f"1.1.1.1 1 10.0.0.{name[1]} 22"}
            say(**{"is": "opened", "disk": name, "time_s": 0.0, **facts, **where})
        case "route":
            is_private = acts.get("nic") == "wg0"
            say(**{"is": "routed", "address": f"10.0.0.{name[1]}", "nic": "eth0", "is_private": is_private})
        case "listen":
            proof = "-----BEGIN CERTIFICATE-----\\n" + name + "\\n-----END CERTIFICATE-----\\n"
            say(**{"is": "listening", "port": 4000 + int(name[1]), "certificate": proof})
        case "reserve":
            say(**{"is": "reserved", "port": 5000})
        case "flush":
            say(**{"is": "flushed"})
        case "run" if (acts.get("rounds") or ["ends"])[0] == "goes":
            sys.exit(0)
        case "run":
            act = acts["rounds"].pop(0) if acts.get("rounds") else "ends"
            (folder / f"{name}.meeting").write_text(json.dumps(message["meeting"]))
            failed = {str(message["first_rank"]): -9} if act == "fails" else {}
            about = {"round": message["round"], "newest": 20, "leaves": False, "was_ended": False, "missed": ""}
            say(**{"is": "log", "file": "rank-00000.jsonl", "offset": 2, "text": "x\\n"})
            say(**{"is": "ended", "failed": failed, "failures": [], **about})
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scripted(Ssh):
    """In place of ssh, the script of a host."""

    folder: Path

    def module(self, host: str, module: str, *arguments: str) -> list[str]:  # noqa: ARG002
        return [sys.executable, str(self.folder / "far.py"), str(self.folder), host]


class Kept:
    def __init__(self) -> None:
        self.events: list[Event] = []

    def log(self, event: Event) -> None:
        self.events.append(event)

    def close(self) -> None:
        pass


@dataclass(slots=True, kw_only=True)
class Stage:
    """Hosts h1, h2, …, and what they do each time they are connected to."""

    folder: Path
    kept: Kept
    crews: list[HostCrew]
    equipped: list[str]

    def crew(
        self, *hosts: list[dict[str, Any]], min_hosts: int = 1, is_network_trusted: bool = False
    ) -> HostCrew:
        (self.folder / "far.py").write_text(FAR)
        for number, acts in enumerate(hosts, start=1):
            lines = [json.dumps({"tandem": __version__, **act}) for act in acts]
            (self.folder / f"h{number}").write_text("\n".join(lines))
        task = RunSettings(
            folder="w",
            run="r",
            recipe="",
            token="t",
            device="cpu",
            options=(),
            environment={},
            min_hosts=min_hosts,
            is_network_trusted=is_network_trusted,
        )
        crew = HostCrew(
            [Host(name=f"h{number}") for number in range(1, len(hosts) + 1)],
            task,
            ssh=Scripted(folder=self.folder),
            log=self.kept,
            copy=self.folder / "log",
            equip=self.equipped.append,
        )
        self.crews.append(crew)
        return crew

    @property
    def rounds(self) -> list[tuple[str, ...]]:
        return [event.hosts for event in self.kept.events if isinstance(event, RoundStarted)]


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    monkeypatch.setattr(member, "RETRY_S", 0.05)
    stage = Stage(folder=tmp_path, kept=Kept(), crews=[], equipped=[])
    yield stage
    for crew in stage.crews:
        crew.close()


def never() -> signal.Signals | None:
    return None


def test_hosts_start_together_in_the_order_in_which_they_were_named(stage: Stage) -> None:
    crew = stage.crew([{}], [{}], [{}])
    crew.connect()
    assert crew.workers == 3
    assert crew.attempt(never) is None
    assert stage.rounds == [("h1", "h2", "h3")]
    assert crew.newest_step == 20
    meetings = [json.loads((stage.folder / f"h{number}.meeting").read_text()) for number in (1, 2, 3)]
    assert [meeting.pop("own") for meeting in meetings] == [0, 1, 2]
    assert meetings[0] == meetings[1] == meetings[2]
    ends = [
        (peer["address"], peer["port"], peer["certificate"].split("\n")[1]) for peer in meetings[0]["peers"]
    ]
    assert ends == [(f"10.0.0.{number}", 4000 + number, f"h{number}") for number in (1, 2, 3)]
    assert [peer["first_rank"] for peer in meetings[0]["peers"]] == [0, 1, 2]
    # Each of the three disks has a log of this name.
    assert (stage.folder / "log/rank-00000.jsonl").read_text() == "x\n" * 3


@pytest.mark.parametrize(
    ("nic", "is_network_trusted", "network"),
    [("eth0", False, "mesh"), ("eth0", True, "trusted"), ("wg0", False, "wireguard")],
)
def test_only_a_network_that_is_encrypted_or_vouched_for_goes_without_the_mesh(
    stage: Stage, nic: str, is_network_trusted: bool, network: str
) -> None:
    crew = stage.crew([{"nic": nic}], [{"nic": nic}], is_network_trusted=is_network_trusted)
    crew.connect()
    assert crew.attempt(never) is None
    assert [event.network for event in stage.kept.events if isinstance(event, RoundStarted)] == [network]
    meeting = json.loads((stage.folder / "h2.meeting").read_text())
    assert (meeting.get("address"), "peers" in meeting) == (
        (None, True) if network == "mesh" else ("10.0.0.1", False)
    )


def test_one_host_needs_no_network_at_all(stage: Stage) -> None:
    crew = stage.crew([{}])
    crew.connect()
    assert crew.attempt(never) is None
    assert json.loads((stage.folder / "h1.meeting").read_text()) is None


@pytest.mark.parametrize(
    ("acts", "sentence"),
    [
        ({"tandem": "0.0.1"}, "h2 has Tandem 0.0.1, this machine"),
        ({"identity": "h1"}, "h1 and h2 are the same host"),
        ({"refuses": "No room."}, "h2: No room."),
        ({"dies": 255}, "Cannot reach h2 over ssh"),
    ],
)
def test_a_host_that_cannot_be_used_is_named_before_anything_starts(
    stage: Stage, acts: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(TandemError, match=sentence):
        stage.crew([{}], [acts]).connect()
    assert not stage.rounds


def test_after_a_failed_rank_the_same_hosts_start_again(stage: Stage) -> None:
    crew = stage.crew([{}], [{"rounds": ["fails"]}])
    crew.connect()
    cause = crew.attempt(never)
    assert isinstance(cause, Cause)
    assert (cause.who, cause.is_final) == ("Rank 1 on h2", False)
    assert crew.attempt(never) is None
    assert stage.rounds == [("h1", "h2")] * 2
    assert not stage.equipped


def test_a_host_that_comes_back_at_once_is_equipped_and_takes_part(stage: Stage) -> None:
    crew = stage.crew([{}], [{"rounds": ["goes"]}, {}], min_hosts=2)
    crew.connect()
    cause = crew.attempt(never)
    assert isinstance(cause, Cause)
    assert (cause.who, cause.reason) == ("h2", "its connection broke")
    assert crew.attempt(never) is None
    assert stage.rounds == [("h1", "h2")] * 2
    assert stage.equipped == ["h2"]


def test_without_a_host_that_stays_away_the_others_go_on(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crew_module, "RETURN_S", 0.2)
    crew = stage.crew([{}], [{}], [{"rounds": ["goes"]}, {"dies": 255}])
    crew.connect()
    assert isinstance(crew.attempt(never), Cause)
    assert crew.attempt(never) is None
    assert stage.rounds == [("h1", "h2", "h3"), ("h1", "h2")]


def test_one_that_is_not_like_the_others_any_more_is_left_out_and_the_reason_is_said_once(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crew_module, "WAIT_S", 3.0)
    crew = stage.crew([{}], [{"rounds": ["goes"]}, {"tandem": "0.0.1"}], min_hosts=2)
    crew.connect()
    assert isinstance(crew.attempt(never), Cause)
    with pytest.raises(
        TandemError, match=r"Only 1 of 2 hosts .*h2 \(h2 has Tandem 0.0.1.*h2: its connection broke"
    ):
        crew.attempt(never)
    reasons = [event.reason for event in stage.kept.events if isinstance(event, HostRefused)]
    assert len(reasons) == 1


def test_who_waits_for_hosts_can_be_stopped(stage: Stage) -> None:
    crew = stage.crew([{}], [{"rounds": ["goes"]}, {"dies": 255}], min_hosts=2)
    crew.connect()
    assert isinstance(crew.attempt(never), Cause)
    assert crew.attempt(lambda: signal.SIGTERM) is None
    assert len(stage.rounds) == 1


ENDED = {"failed": {}, "failures": [], "missed": "", "was_ended": False, "newest": None, "leaves": False}


@pytest.mark.parametrize(
    "greeting",
    [
        {"is": "opened"},
        {"is": "opened", "disk": [], "tandem": {}, "identity": 5, "workers": "many"},
        {"is": "equipped"},
        {"is": "log", "file": "x.jsonl", "offset": 1, "text": "y"},
        {"is": ["opened"]},
    ],
    ids=str,
)
def test_a_host_that_talks_nonsense_is_named_before_anything_starts(
    stage: Stage, greeting: dict[str, Any]
) -> None:
    with pytest.raises(TandemError, match="h2: It said something that makes no sense .*: install the same"):
        stage.crew([{}], [{"greets": greeting}]).connect()


@pytest.mark.parametrize(
    "message",
    [
        {"is": "beat", "pulses": {"1": {"step": "x"}}},
        {"is": "beat", "pulses": [1]},
        {"is": "beat", "round": {}},
        {"is": "log", "file": 5, "offset": 1, "text": "y"},
        {"is": "log", "file": "x.jsonl", "offset": -1, "text": "y"},
        {"is": "ended"},
        {**ENDED, "is": "ended", "failed": {"-1": -9}},
        {**ENDED, "is": "ended", "failed": {"1": -1000}},
        {**ENDED, "is": "ended", "failures": [7]},
        {"is": "opened", "time_s": 0.0},
        {"is": "nothing that is known"},
    ],
    ids=str,
)
def test_a_host_that_talks_nonsense_in_a_run_is_lost_and_nothing_else(
    stage: Stage, message: dict[str, Any]
) -> None:
    crew = stage.crew([{}], [{"raves": message}, {}], min_hosts=2)
    crew.connect()
    cause = crew.attempt(never)
    assert isinstance(cause, Cause)
    assert cause.who == "h2"
    assert "makes no sense" in cause.reason
    assert crew.attempt(never) is None


def test_no_host_speaks_for_the_ranks_of_another(stage: Stage) -> None:
    forged = {"rank": 0, "kind": "sentence", "message": "forged", "time_s": 1.0}
    lie = {**ENDED, "is": "ended", "failed": {"0": 1, "1": -9}, "failures": [forged]}
    crew = stage.crew([{}], [{"raves": lie}])
    crew.connect()
    cause = crew.attempt(never)
    assert isinstance(cause, Cause)
    assert (cause.who, cause.rank) == ("Rank 1 on h2", 1)
