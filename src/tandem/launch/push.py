"""Prepared data on its way to hosts that do not share the disk: only what they lack, to all of them at once."""

import hashlib
import io
import json
import os
import select
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

from tandem.artefact import MANIFEST, FileEntry, parse_manifest, read_manifest
from tandem.data.prepared import Prepared, open_prepared
from tandem.errors import TandemError
from tandem.launch.blocks import BLOCK_BYTES, BlockWriter
from tandem.launch.channel import LONGEST_LINE, Message
from tandem.launch.receive import FORMAT
from tandem.launch.ssh import Ssh
from tandem.lock import using
from tandem.progress import SILENT, Progress

__all__ = ["Standing", "compare", "push"]

_RECEIVER = "tandem.launch.receive"
_SILENCE_S = 60.0  # many times what a receiver at work lets pass between two signs of life
_LOST = 255
_Answer = TypeVar("_Answer")
_PARTS: Mapping[str, Mapping[str, type]] = {
    "same": {"file": str},
    "missing": {"file": str},
    "different": {"file": str},
    "waiting": {"why": str},
    "failed": {"why": str},
    "checking": {"bytes": int},
    "checked": {"bytes": int},
    "wants": {"files": list, "replaced": list},
    "done": {},
}
"""What a receiver may say, and what belongs to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How the data of a host stands to ours."""

    state: Literal["same", "missing", "different"]
    """Missing: not there, or not whole; different: other or damaged data is in its place."""
    file: str = ""
    """The first file there that is not as ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """What we have."""

    folder: Path
    manifests: Mapping[str, str]
    """The text of each artefact's manifest, by the artefact's name."""
    files: Mapping[str, FileEntry]
    """Of the artefacts, by names in `folder`."""
    loose: Mapping[str, bytes]
    """Small files that may be replaced under us, as they were."""
    card: Sequence[int]

    def offer(self, what: str, folder: str) -> Message:
        """The message that opens the talk."""
        return {
            "do": what,
            "version": FORMAT,
            "folder": folder,
            "artefacts": self.manifests,
            "loose": {name: asdict(self.entry(name)) for name in self.loose},
            "card": self.card,
        }

    def entry(self, name: str) -> FileEntry:
        """What a file is; TandemError if we have not offered it."""
        if name in self.files:
            return self.files[name]
        if name not in self.loose:
            raise TandemError(f"A host asks for {name}, which is none of this data: look at that host.")
        data = self.loose[name]
        return FileEntry(bytes=len(data), sha256=hashlib.sha256(data).hexdigest())

    def blocks(self, name: str) -> Iterator[bytes]:
        """The bytes of a file; TandemError after the last one if they are not what its manifest says."""
        if name in self.loose:
            yield from _cut(self.loose[name])
            return
        path, digest = self.folder / name, hashlib.sha256()
        with path.open("rb", buffering=0) as file:
            while block := file.read(BLOCK_BYTES):
                digest.update(block)
                yield block
        if digest.hexdigest() != self.files[name].sha256:
            raise TandemError(f"{path} is damaged (its checksum differs): make {self.folder} again.")


def push(source: Path, hosts: Sequence[str], ssh: Ssh, *, folder: str, progress: Progress) -> None:
    """Bring the prepared data in `source` to the folder of that name on each host; other data there is replaced.

    A relative `folder` begins at the home there. What had arrived before a failure stays, and is not sent again.
    """
    with using(source):
        ours = _read_source(source)
        _with_each(hosts, ssh, lambda talk: _push(talk, ours, folder, progress), progress)


def compare(source: Path, hosts: Sequence[str], ssh: Ssh, *, folder: str) -> Mapping[str, Standing]:
    """Whether each host has the same prepared data in its folder, by manifests and sizes."""
    ours = _read_source(source)
    return _with_each(hosts, ssh, lambda talk: _compare(talk, ours, folder), SILENT)


class _SilentError(Exception):
    """The other side neither says nor takes anything, though it should."""


class _Pipe(io.FileIO):
    """One end of a pipe at whose other end something happens now and then."""

    def __init__(self, file: int, mode: str) -> None:
        super().__init__(file, mode, closefd=False)
        os.set_blocking(file, False)

    def readinto(self, buffer: Any) -> int | None:
        self._await(select.POLLIN)
        return super().readinto(buffer)

    def write(self, data: Any) -> int:
        left = memoryview(data)
        while left:
            self._await(select.POLLOUT)
            left = left[os.write(self.fileno(), left) :]
        return len(data)

    def _await(self, event: int) -> None:
        poll = select.poll()  # select itself knows too few files for many hosts
        poll.register(self, event)
        if not poll.poll(_SILENCE_S * 1000):
            raise _SilentError


class _Talk:
    """A connection to the receiver on a host."""

    def __init__(self, host: str, ssh: Ssh, progress: Progress) -> None:
        self.host, self._ssh, self._progress = host, ssh, progress
        self._is_answered = False
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the talk
        self._process = subprocess.Popen(  # noqa: S603 - an argument list, no shell on this side
            ssh.module(host, _RECEIVER),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            start_new_session=True,  # Ctrl-C is for us, who know what to say
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._pipe = _Pipe(self._process.stdin.fileno(), "wb")
        self._answers = io.BufferedReader(_Pipe(self._process.stdout.fileno(), "rb"))
        self._writer = BlockWriter(self._pipe)

    def end(self) -> None:
        """Break off, if it is not over."""
        self._process.kill()

    def close(self) -> None:
        """Let go of what the talk needed."""
        self.end()
        with self._process:
            self._said.close()

    def tell(self, message: Message) -> None:
        """Send a line; one that cannot be sent shows when the answer is heard."""
        with suppress(OSError):
            self._pipe.write(json.dumps(message).encode() + b"\n")

    def hear(self) -> Message:
        """The next answer; TandemError if the other side failed or is lost."""
        while line := self._answers.readline(LONGEST_LINE + 1):
            answer = _maybe_answer(line)
            if len(line) > LONGEST_LINE or not _makes_sense(answer):
                raise TandemError(_nonsense(self.host))
            if answer.get("is") == "failed":
                raise TandemError(f"{self.host}: {answer['why']}")
            if answer.get("is") == "waiting":
                self._progress.say(f"Waiting for {self.host}: {answer['why']}")
            elif "is" in answer:
                self._is_answered = True
                return answer
        raise TandemError(self._explain())

    def send(self, block: bytes) -> None:
        """Send a piece of a file; TandemError says why the other side does not take it."""
        try:
            self._writer.write(block)
        except OSError:
            self.hear()
            raise

    def _explain(self) -> str:
        try:
            code = self._process.wait(_SILENCE_S)
        except subprocess.TimeoutExpired:
            raise _SilentError from None
        self._said.seek(0)
        said = self._said.read().decode(errors="replace")
        if code == _LOST and self._is_answered:
            lines = said.strip().splitlines()
            reason = f" ({lines[-1].strip()})" if lines else ""
            return (
                f"The connection to {self.host} broke off{reason}: give the same command again, "
                "which goes on with what has arrived."
            )
        return self._ssh.explain(self.host, code, said)


def _with_each(
    hosts: Sequence[str], ssh: Ssh, work: Callable[[_Talk], _Answer], progress: Progress
) -> Mapping[str, _Answer]:
    """Talk to all hosts at once; each gets its chance before the first failure is raised."""
    if len(hosts) == 1:
        # In the caller's own thread: a pool's thread would keep the whole program from ending.
        with closing(_Talk(hosts[0], ssh, progress)) as talk:
            return {talk.host: _talk_to_end(talk, work)}
    with ExitStack() as stack:
        # Joined, and before that cut off, before the pipes are closed: also after Ctrl-C.
        talks = [stack.enter_context(closing(_Talk(host, ssh, progress))) for host in hosts]
        threads = stack.enter_context(ThreadPoolExecutor(max_workers=len(hosts)))
        for talk in talks:
            stack.callback(talk.end)
        results = {talk.host: threads.submit(_talk_to_end, talk, work) for talk in talks}
        failures = [each.exception() for each in results.values()]
    failed = [failure for failure in failures if failure is not None]
    for other in failed[1:]:
        progress.say(f"error: {other}")
    if failed:
        raise failed[0]
    return {host: each.result() for host, each in results.items()}


def _talk_to_end(talk: _Talk, work: Callable[[_Talk], _Answer]) -> _Answer:
    try:
        return work(talk)
    except _SilentError:
        raise TandemError(
            f"{talk.host} has been silent for {_SILENCE_S:.0f} s: look whether its disk answers, "
            "then give the same command again."
        ) from None
    finally:
        talk.end()


def _compare(talk: _Talk, source: _Source, folder: str) -> Standing:
    talk.tell(source.offer("compare", folder))
    match answer := talk.hear():
        case {"is": "same" | "missing" | "different" as state}:
            return Standing(state=state, file=answer["file"])
    raise TandemError(_nonsense(talk.host))


def _push(talk: _Talk, source: _Source, folder: str, progress: Progress) -> None:
    talk.tell(source.offer("push", folder))
    answer = _hear_checked(talk, progress)
    if answer["is"] == "same":
        progress.say(f"{talk.host} has the same data in {folder} already.")
        return
    if answer["is"] != "wants":
        raise TandemError(_nonsense(talk.host))
    for name in answer["replaced"]:
        progress.say(f"{talk.host} has other or damaged data in {folder}/{name}: it is replaced.")
    names: Sequence[str] = answer["files"]
    total = sum(source.entry(name).bytes for name in names)
    with progress.bar(f"Data to {talk.host}", total=total, unit="B") as bar:
        for name in names:
            talk.tell({"name": name, **asdict(source.entry(name))})
            for block in source.blocks(name):
                talk.send(block)
                bar.advance(len(block))
        talk.hear()


def _hear_checked(talk: _Talk, progress: Progress) -> Message:
    """The answer after a bar for what the host checks before."""
    answer = talk.hear()
    if answer["is"] != "checking":
        return answer
    with progress.bar(f"Checking the data of {talk.host}", total=answer["bytes"], unit="B") as bar:
        while (answer := talk.hear())["is"] == "checked":
            bar.advance(answer["bytes"])
    return answer


def _read_source(source: Path) -> _Source:
    """All that training reads: not the clean text, which is only for making the rest."""
    prepared = open_prepared(source)
    manifests: dict[str, str] = {}
    files: dict[str, FileEntry] = {}
    for folder in _artefact_folders(prepared):
        name = folder.relative_to(source).as_posix()
        raw = _read_manifest_file(folder)
        manifests[name] = raw.decode()
        for file, entry in parse_manifest(raw, folder=folder).files.items():
            files[f"{name}/{file}"] = entry
    status = prepared.card_file.stat()
    return _Source(
        folder=source,
        manifests=manifests,
        files=files,
        loose={path.name: path.read_bytes() for path in (prepared.recipe_file, prepared.card_file)},
        card=[status.st_ino, status.st_mtime_ns],
    )


def _artefact_folders(prepared: Prepared) -> list[Path]:
    names = prepared.held_out_names
    texts = [prepared.held_out_text_folder(name) for name in names]
    shards = [prepared.held_out_folder(name) for name in names]
    return [prepared.subword_folder, *texts, *shards, prepared.train_folder]


def _read_manifest_file(folder: Path) -> bytes:
    """The bytes of a manifest whose files are all there."""
    file = folder / MANIFEST
    if not file.is_file():
        raise TandemError(f"{folder} is not finished: make it with tandem data prepare RECIPE.")
    raw = file.read_bytes()
    held = parse_manifest(raw, folder=folder)
    read_manifest(folder, kind=held.kind, version=held.version)
    return raw


def _maybe_answer(line: bytes) -> Message:
    """A message; an empty one for what a login script there prints."""
    try:
        held = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return held if isinstance(held, dict) else {}


def _makes_sense(answer: Message) -> bool:
    """Whether an answer has what one of its kind has, each of its type."""
    kind = answer.get("is", "done")
    parts = _PARTS.get(kind) if isinstance(kind, str) else None
    return parts is not None and all(_is_of(answer.get(name), wanted) for name, wanted in parts.items())


def _is_of(value: object, wanted: type) -> bool:
    if isinstance(value, list):
        return wanted is list and all(isinstance(name, str) for name in value)
    return isinstance(value, wanted) and not (wanted is int and isinstance(value, int) and value < 0)


def _nonsense(host: str) -> str:
    return f"{host} said something that makes no sense here: install the same version of Tandem there."


def _cut(data: bytes) -> Iterator[bytes]:
    for start in range(0, len(data), BLOCK_BYTES):
        yield data[start : start + BLOCK_BYTES]
