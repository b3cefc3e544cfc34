"""The receiving side by itself: what it refuses, whatever is sent to it."""

import io
import json
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from subprocess import PIPE, Popen
from typing import IO, Any

import pytest
from tests.prepared import content, make_prepared

from tandem.artefact import MANIFEST
from tandem.errors import TandemError
from tandem.launch.blocks import BlockWriter, BrokenOffError
from tandem.launch.channel import Message
from tandem.launch.receive import FORMAT, serve
from tandem.lock import holding

ARTEFACTS = ("subword", "held-out/valid/text", "held-out/valid/shards", "train")
LOOSE = ("recipe.yaml", "card.json")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return make_prepared(tmp_path / "source")


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "there"


def offer(source: Path, target: Path) -> dict[str, Any]:
    return {
        "do": "push",
        "version": FORMAT,
        "folder": str(target),
        "artefacts": {name: (source / name / MANIFEST).read_text() for name in ARTEFACTS},
        "loose": {name: entry(source / name) for name in LOOSE},
        "card": [0, 0],
    }


def entry(path: Path) -> dict[str, Any]:
    data = path.read_bytes()
    return {"bytes": len(data), "sha256": sha256(data).hexdigest()}


def stream(source: Path, first: dict[str, Any], *, damaged: str = "") -> io.BytesIO:
    """All that a pusher sends to a host which has nothing."""
    pipe = io.BytesIO()
    pipe.write(json.dumps(first).encode() + b"\n")
    writer = BlockWriter(pipe)
    files = [
        f"{name}/{file}"
        for name in ARTEFACTS
        for file in sorted(path.name for path in (source / name).iterdir())
    ]
    for name in (*(file for file in files if not file.endswith(MANIFEST)), *LOOSE):
        pipe.write(json.dumps({"name": name, **entry(source / name)}).encode() + b"\n")
        data = (source / name).read_bytes()
        writer.write(bytes(len(data)) if name == damaged else data)
    pipe.seek(0)
    return pipe


def served(pipe: io.BytesIO) -> list[Message]:
    answers: list[Message] = []
    serve(pipe, answers.append)
    return answers


@contextmanager
def receiving(
    message: dict[str, Any], change: str
) -> Iterator[tuple[IO[bytes], Iterator[Message], IO[bytes]]]:
    """A receiver with another value in it, as a process that was made an offer: its input, answers and errors."""
    program = f"from tandem.launch import receive; {change}; receive.main()"
    with Popen([sys.executable, "-c", program], stdin=PIPE, stdout=PIPE, stderr=PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(json.dumps(message).encode() + b"\n")
        process.stdin.flush()
        yield process.stdin, (json.loads(line) for line in process.stdout if line.strip()), process.stderr


def test_what_is_sent_lies_there_afterwards(source: Path, target: Path) -> None:
    answers = served(stream(source, offer(source, target)))
    assert [answer["is"] for answer in answers] == ["wants", "done"]
    assert content(target) == content(source)


def test_the_data_has_no_card_before_it_is_whole(source: Path, target: Path) -> None:
    (make_prepared(target, seed=1) / "recipe.yaml").unlink()
    whole = stream(source, offer(source, target)).getvalue()
    # All but the last byte: of the card itself.
    with pytest.raises(BrokenOffError):
        served(io.BytesIO(whole[:-1]))
    assert (target / "train" / MANIFEST).read_bytes() == (source / "train" / MANIFEST).read_bytes()
    assert not (target / "card.json").exists()


@pytest.mark.parametrize("name", ["..", "../out", "/tmp/out", "a/../../out", "", ".", "a//b", "a\nb"])
@pytest.mark.parametrize("kind", ["artefacts", "loose"])
def test_names_that_lead_out_are_refused(source: Path, target: Path, name: str, kind: str) -> None:
    message = offer(source, target)
    message[kind][name] = next(iter(message[kind].values()))
    with pytest.raises(TandemError, match="is not allowed as a name"):
        served(stream(source, message))
    assert not target.exists()


def test_names_that_lead_out_of_an_artefact_are_refused(source: Path, target: Path) -> None:
    message = offer(source, target)
    held = json.loads(message["artefacts"]["train"])["tandem"]
    held["files"]["../../out"] = next(iter(held["files"].values()))
    body = json.dumps(held)
    message["artefacts"]["train"] = f'{{"sha256": "{sha256(body.encode()).hexdigest()}", "tandem": {body}}}\n'
    with pytest.raises(TandemError, match=r"lists '../../out', a name that is not allowed"):
        served(stream(source, message))
    assert not target.exists()


def test_a_manifest_that_was_changed_is_refused(source: Path, target: Path) -> None:
    message = offer(source, target)
    message["artefacts"]["train"] = message["artefacts"]["train"].replace('"version": 1', '"version": 2')
    with pytest.raises(TandemError, match="damaged or was edited"):
        served(stream(source, message))


@pytest.mark.parametrize("name", ["train", "held-out", "card.json"])
def test_links_in_the_folder_are_not_followed(source: Path, target: Path, tmp_path: Path, name: str) -> None:
    make_prepared(target, seed=1)
    elsewhere = tmp_path / "elsewhere"
    (target / name).rename(elsewhere)
    (target / name).symlink_to(elsewhere)
    before = content(elsewhere) if elsewhere.is_dir() else elsewhere.read_bytes()
    with pytest.raises(TandemError, match="is a link, or behind one"):
        served(stream(source, offer(source, target)))
    assert (content(elsewhere) if elsewhere.is_dir() else elsewhere.read_bytes()) == before


def test_the_folder_itself_may_be_a_link_to_another_disk(source: Path, target: Path, tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    target.symlink_to(tmp_path / "disk")
    served(stream(source, offer(source, target)))
    assert content(tmp_path / "disk") == content(source)
    assert target.is_symlink()


def test_a_file_that_is_a_link_to_the_same_bytes_is_replaced(
    source: Path, target: Path, tmp_path: Path
) -> None:
    shutil.copytree(source, target)
    part = target / "train/part-00000.bin"
    part.rename(tmp_path / "part")
    part.symlink_to(tmp_path / "part")
    message = offer(source, target)
    answers: list[Message] = []
    with pytest.raises(BrokenOffError):
        serve(io.BytesIO(json.dumps(message).encode() + b"\n"), answers.append)
    assert answers[-1]["files"] == ["train/part-00000.bin", "card.json"]


@pytest.mark.parametrize("name", ["notes.txt", "train/mine.bin", "recipe.yaml", ".git/config"])
def test_a_folder_of_somebody_else_is_left_alone(source: Path, target: Path, name: str) -> None:
    (target / name).parent.mkdir(parents=True)
    (target / name).write_text("mine")
    with pytest.raises(TandemError, match="was not made by Tandem"):
        served(stream(source, offer(source, target)))
    assert content(target) == {name: b"mine"}


def test_a_foreign_folder_in_the_place_of_an_artefact_is_left_alone(source: Path, target: Path) -> None:
    make_prepared(target, seed=1)
    shutil.rmtree(target / "train")
    (target / "train").mkdir()
    (target / "train/mine.bin").write_text("mine")
    with pytest.raises(TandemError, match=r"there/train was not made by Tandem"):
        served(stream(source, offer(source, target)))
    assert (target / "train/mine.bin").read_text() == "mine"


def test_without_room_it_does_not_begin(source: Path, target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(source)._replace(free=1_200_000_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage)
    message = offer(source, target)
    message["loose"]["recipe.yaml"]["bytes"] = 3_500_000_000
    with pytest.raises(
        TandemError, match=r"needs 3.5 GB and its disk has 1.2 GB free: make room for 2.3 GB more"
    ):
        served(stream(source, message))
    assert not target.exists()


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (b'{"name": "train/part-00000.bin"', b'{"name": "train/part-00001.bin"', "Another file came"),
        (b'{"name": "subword/subword.model"', b'{"name": "../../out"', "Another file came"),
    ],
)
def test_another_file_than_the_next_is_refused(
    source: Path, target: Path, old: bytes, new: bytes, reason: str
) -> None:
    sent = stream(source, offer(source, target)).getvalue()
    assert old in sent
    with pytest.raises(TandemError, match=reason):
        served(io.BytesIO(sent.replace(old, new)))


def test_bytes_that_changed_on_the_way_do_not_get_in(source: Path, target: Path) -> None:
    pipe = stream(source, offer(source, target), damaged="train/part-00000.bin")
    with pytest.raises(TandemError, match=r"part-00000.bin was damaged on its way"):
        served(pipe)
    assert not (target / "train").exists()
    assert list((target / "train.partial").iterdir()) == []


def test_another_version_of_the_talk_is_refused(source: Path, target: Path) -> None:
    with pytest.raises(TandemError, match="another version of Tandem"):
        served(stream(source, {**offer(source, target), "version": FORMAT + 1}))


def test_as_a_process_it_says_what_is_wrong_and_ends(source: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with Popen([sys.executable, "-m", "tandem.launch.receive"], stdin=PIPE, stdout=PIPE) as process:
        out, _ = process.communicate(json.dumps(offer(source, tmp_path / "file/there")).encode() + b"\n")
    assert json.loads(out)["is"] == "failed"
    assert process.returncode == 1


def test_as_a_process_it_ends_when_the_other_side_is_silent(source: Path, target: Path) -> None:
    with receiving(offer(source, target), "receive._SILENCE_S = 0.1") as (_, answers, errors):
        assert [answer["is"] for answer in answers] == ["wants"]
        assert errors.read() == b"the connection broke off\n"
    assert not (target.parent / "there.lock").exists()


def test_a_folder_that_another_holds_is_waited_for_with_signs_of_life_however_long(
    source: Path, target: Path
) -> None:
    # A clock on which more than a minute passes between any two looks.
    change = "import itertools; receive.time.monotonic = itertools.count(0, 100).__next__"
    with receiving(offer(source, target), change) as (pipe, answers, _):
        with holding(target):
            assert next(answers)["is"] == "waiting"
            assert [next(answers) for _ in range(3)] == [{}, {}, {}]
        assert next(answer for answer in answers if answer)["is"] == "wants"
        pipe.close()


def test_what_another_has_just_begun_is_not_taken_for_somebody_else_s(source: Path, target: Path) -> None:
    target.mkdir()
    (target / "subword.lock").touch()
    with (
        holding(target),
        receiving(offer(source, target), "pass") as (pipe, answers, _),
    ):
        assert next(answers)["is"] == "waiting"
        pipe.close()


def test_nobody_stays_to_wait_for_a_folder_when_the_other_side_is_gone(source: Path, target: Path) -> None:
    with holding(target), receiving(offer(source, target), "pass") as (pipe, answers, errors):
        assert next(answers)["is"] == "waiting"
        pipe.close()
        assert list(answers) == []
        assert errors.read() == b"the connection broke off\n"


def test_how_far_the_check_of_a_long_file_is_comes_piece_by_piece(
    source: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tandem.launch.receive._CHECK_BYTES", 2_000)
    shutil.copytree(source, target)
    answers = served(io.BytesIO(json.dumps(offer(source, target)).encode() + b"\n"))
    pieces = [answer["bytes"] for answer in answers if answer["is"] == "checked"]
    assert max(pieces) == 2_000
    assert sum(pieces) == answers[0]["bytes"]
    assert answers[-1]["is"] == "same"


def test_signs_of_life_come_while_files_arrive_and_while_they_are_put_into_place(
    source: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tandem.launch.receive._BEAT_S", 0.0)
    answers = served(stream(source, offer(source, target)))
    blocks = written = len(content(source)) - len(ARTEFACTS)
    assert [answer["is"] for answer in answers if answer] == ["wants", "done"]
    assert answers.count({}) == blocks + written - len(LOOSE)
