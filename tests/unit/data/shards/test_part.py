import hashlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.data.shards.part import open_part, part_name, read_facts, write_shard
from tandem.data.shards.ragged import Ragged
from tandem.errors import TandemError

PAIRS = st.lists(
    st.tuples(st.lists(st.integers(0, 99), max_size=6), st.lists(st.integers(0, 99), max_size=6)), max_size=9
)
SOURCE = [[5, 6, 7], [], [8]]
TARGET = [[9], [10, 11], [12, 13, 14, 15]]


def write(path: Path, *, vocabulary: int = 100, corpus: int = 0) -> Path:
    source, target = Ragged.from_lists(SOURCE), Ragged.from_lists(TARGET)
    write_shard(path, source=source, target=target, vocabulary=vocabulary, corpus=corpus)
    return path


@given(pairs=PAIRS, wide=st.booleans())
def test_pairs_come_back_as_written(
    tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[list[int], list[int]]], wide: bool
) -> None:
    path = tmp_path_factory.mktemp("part") / part_name(0)
    source, target = (Ragged.from_lists([pair[side] for pair in pairs]) for side in (0, 1))
    write_shard(path, source=source, target=target, vocabulary=70_000 if wide else 100)
    part = open_part(path)
    assert part.ids.itemsize == (4 if wide else 2)
    for number, (first, second) in enumerate(pairs):
        start, middle = part.offsets[number], part.offsets[number] + part.source_lengths[number]
        assert part.ids[start:middle].tolist() == first
        assert part.ids[middle : middle + part.target_lengths[number]].tolist() == second


def test_sections_are_aligned_read_only_views_of_the_file(tmp_path: Path) -> None:
    part = open_part(write(tmp_path / part_name(0)))
    base = part.source_lengths.ctypes.data
    assert base % 64 == 0
    for section in (part.target_lengths, part.offsets, part.ids):
        assert (section.ctypes.data - base) % 64 == 0
        assert not section.flags.writeable
        assert not section.flags.owndata


def test_the_same_pairs_give_the_same_bytes_and_facts(tmp_path: Path) -> None:
    first, second = tmp_path / "a" / part_name(0), tmp_path / "b" / part_name(0)
    for path in (first, second):
        path.parent.mkdir()
        write(path, corpus=3)
    assert first.read_bytes() == second.read_bytes()
    assert read_facts(first) == read_facts(second)
    assert read_facts(first).sha256 == hashlib.sha256(first.read_bytes()).hexdigest()
    assert list(first.parent.iterdir()) == [first]


def test_facts_count_an_end_mark_for_each_sentence(tmp_path: Path) -> None:
    lengths = np.ones(1025, np.int64)
    side = Ragged(ids=np.zeros(1025, np.int64), lengths=lengths)
    facts = write_shard(tmp_path / part_name(0), source=side, target=side, vocabulary=10, corpus=2)
    assert (facts.corpus, facts.pairs, facts.longest_source, facts.longest_target) == (2, 1025, 2, 2)
    assert facts.source_tokens.tolist() == [2048, 2]
    again = read_facts(tmp_path / part_name(0))
    assert again == facts
    assert again.target_tokens.tolist() == facts.target_tokens.tolist()


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda data: data[:-1], "bytes, not"),
        (lambda data: data + b"x", "bytes, not"),
        (lambda data: data[:20], "has 20 bytes"),
        (lambda data: data[:0], "has 0 bytes"),
        (lambda data: b"X" + data[1:], "is not a shard part"),
        (lambda data: data[:8] + b"\x02" + data[9:], "has shard format 2"),
    ],
    ids=["cut", "longer", "header cut", "empty", "foreign", "newer"],
)
def test_a_damaged_part_is_named_with_its_cure(tmp_path: Path, damage: object, says: str) -> None:
    assert callable(damage)
    path = write(tmp_path / part_name(0))
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(TandemError, match=says) as caught:
        open_part(path)
    assert str(path) in str(caught.value)
    assert "tandem data prepare" in str(caught.value)


def test_a_missing_part_is_named_with_its_cure(tmp_path: Path) -> None:
    with pytest.raises(TandemError, match=r"part-00007\.bin is missing: run `tandem data prepare` again"):
        open_part(tmp_path / part_name(7))


def test_a_sentence_too_long_for_the_format_is_refused(tmp_path: Path) -> None:
    long = Ragged(ids=np.zeros(65_536, np.int64), lengths=np.array([65_536]))
    short = Ragged.from_lists([[1]])
    with pytest.raises(TandemError, match="65536 pieces"):
        write_shard(tmp_path / part_name(0), source=long, target=short, vocabulary=10)
    assert not list(tmp_path.iterdir())


def test_sides_of_unequal_length_and_foreign_ids_are_refused(tmp_path: Path) -> None:
    one, two = Ragged.from_lists([[1]]), Ragged.from_lists([[1], [10]])
    with pytest.raises(ValueError, match="1 source sentences, 2 target sentences"):
        write_shard(tmp_path / part_name(0), source=one, target=two, vocabulary=100)
    with pytest.raises(ValueError, match="outside the vocabulary of 10"):
        write_shard(tmp_path / part_name(0), source=two, target=two, vocabulary=10)
