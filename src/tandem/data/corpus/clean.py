"""Cleaning: raw chunks in, parts of clean pairs out, with every dropped and mended pair counted."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b

from tandem.config import CleanSection
from tandem.data.corpus.filters import Candidate, HeldOutSentences, build_filters, build_menders
from tandem.data.corpus.read import RawChunk
from tandem.data.corpus.stream import MAX_LINE_BYTES
from tandem.data.corpus.tally import Tally
from tandem.data.corpus.words import words_of

__all__ = ["KEY_BYTES", "CleanChunk", "Cleaner"]

KEY_BYTES = 8
"""Of the hash that finds exact duplicates: among 400 million pairs the odds of one false match are 1 in 200."""

NOT_UTF8 = "not UTF-8"
TOO_LONG = f"line over {MAX_LINE_BYTES >> 10} kB"
NO_TAB = "no tab between the sides"


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanChunk:
    """The pairs of a chunk that stay, as lines `source TAB target`, and a hash of each."""

    text: bytes
    keys: bytes
    tally: Tally


class Cleaner:
    """Applies one recipe's rules to chunks. Built once in each worker."""

    def __init__(
        self,
        rules: CleanSection,
        held_out: Mapping[str, HeldOutSentences],
        *,
        languages: tuple[str, str],
        segmented: bool = False,
    ) -> None:
        self._menders = build_menders(rules, segmented=segmented)
        self._filters = build_filters(rules, held_out, languages=languages, segmented=segmented)
        self._segmented = segmented

    def clean(self, chunk: RawChunk, corpus: str) -> CleanChunk:
        """Clean one chunk of the corpus of that name."""
        tally = Tally(lines=chunk.lines)
        kept: list[bytes] = []
        keys: list[bytes] = []
        for number, (raw_source, raw_target) in enumerate(_raw_pairs(chunk), start=chunk.first_line):
            pair = self._decode(raw_source, raw_target, tally)
            reason = _unreadable(raw_source, raw_target) if pair is None else self._objection(pair)
            if pair is None or reason is not None:
                source, target = pair[:2] if pair is not None else (_lossy(raw_source), _lossy(raw_target))
                tally.drop(str(reason), source, target, f"{corpus}:{number}")
                continue
            line = f"{pair.source}\t{pair.target}\n".encode()
            kept.append(line)
            keys.append(blake2b(line, digest_size=KEY_BYTES).digest())
        tally.kept = len(kept)
        return CleanChunk(text=b"".join(kept), keys=b"".join(keys), tally=tally)

    def mend(self, text: str, tally: Tally) -> tuple[str, list[str]]:
        """One sentence mended, with single spaces between what they part, and the words that lengths are counted in."""
        for name, mender in self._menders:
            mended = mender(text)
            if mended is not text and mended != text:
                tally.mended[name] += 1
                text = mended
        text = " ".join(text.split())
        # The words of already-segmented text are its pieces joined again.
        return text, text.replace("@@ ", "").split() if self._segmented else words_of(text)

    def _decode(self, source: bytes, target: bytes | None, tally: Tally) -> Candidate | None:
        """The pair as text, mended; None where it cannot be read."""
        if target is None or len(source) >= MAX_LINE_BYTES or len(target) >= MAX_LINE_BYTES:
            return None
        try:
            left, left_words = self.mend(source.decode(), tally)
            right, right_words = self.mend(target.decode(), tally)
        except UnicodeDecodeError:
            return None
        return Candidate(left, right, left_words, right_words)

    def _objection(self, pair: Candidate) -> str | None:
        for name, judge in self._filters:
            if judge(pair):
                return name
        return None


def _raw_pairs(chunk: RawChunk) -> Iterator[tuple[bytes, bytes | None]]:
    lines = chunk.source.split(b"\n")
    lines.pop()
    if chunk.target is not None:
        return zip(lines, chunk.target.split(b"\n"), strict=False)
    return (_columns(line) for line in lines)


def _columns(line: bytes) -> tuple[bytes, bytes | None]:
    if len(line) >= MAX_LINE_BYTES:
        return line, b""
    columns = line.split(b"\t", 2)
    return (columns[0], columns[1]) if len(columns) > 1 else (line, None)


def _unreadable(source: bytes, target: bytes | None) -> str:
    if target is None:
        return NO_TAB
    return TOO_LONG if len(source) >= MAX_LINE_BYTES or len(target) >= MAX_LINE_BYTES else NOT_UTF8


def _lossy(line: bytes | None) -> str:
    return (line or b"")[:1000].decode(errors="replace")
