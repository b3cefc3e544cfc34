import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.data.shards import shardset
from tandem.data.shards.index import Blocks, read_index
from tandem.data.shards.part import part_name
from tandem.data.shards.ragged import Ragged
from tandem.data.shards.shardset import ShardSet, open_shards
from tandem.errors import TandemError

WriteSet = Callable[..., Path]
SENTENCE = st.lists(st.integers(0, 999), max_size=5)
PARTS = st.lists(st.lists(st.tuples(SENTENCE, SENTENCE), max_size=6), min_size=1, max_size=4)


def rows(side: Ragged) -> list[list[int]]:
    return [part.tolist() for part in np.split(side.ids, np.cumsum(side.lengths)[:-1])][: len(side)]


def long_pairs(count: int) -> list[list[int]]:
    return [[number % 997, number % 991, number % 13] for number in range(count)]


@given(parts=PARTS, data=st.data())
def test_any_pairs_in_any_order_come_back(
    write_set: WriteSet, parts: list[list[tuple[list[int], list[int]]]], data: st.DataObject
) -> None:
    pairs = [pair for part in parts for pair in part]
    folder = write_set([([first for first, _ in part], [second for _, second in part]) for part in parts])
    shards = open_shards(folder)
    assert len(shards) == len(pairs)
    numbers = data.draw(st.lists(st.integers(0, len(pairs) - 1)) if pairs else st.just([]))
    source, target = shards.gather(np.array(numbers, np.int64))
    assert rows(source) == [pairs[number][0] for number in numbers]
    assert rows(target) == [pairs[number][1] for number in numbers]
    source, target = shards.gather_ended(np.array(numbers, np.int64))
    assert rows(source) == [[*pairs[number][0], shards.special.eos] for number in numbers]
    assert rows(target) == [[*pairs[number][1], shards.special.eos] for number in numbers]


def test_wide_ids_come_back(write_set: WriteSet) -> None:
    shards = open_shards(write_set([([[69_999]], [[66_000, 1]])], vocabulary=70_000))
    source, target = shards.gather(np.array([0]))
    assert (rows(source), rows(target)) == ([[69_999]], [[66_000, 1]])


def test_lengths_follow_the_blocks_asked_for(write_set: WriteSet) -> None:
    first = [[1] * (number % 3) for number in range(1500)]
    second = [[2] * (number % 5) for number in range(1500)]
    shards = open_shards(write_set([(first, second), ([[1]], [[1, 1]])]))
    source, target = shards.lengths(np.array([2, 1]))
    assert source.tolist() == [1, *(len(row) for row in first[1024:])]
    assert target.tolist() == [2, *(len(row) for row in second[1024:])]


def test_opening_touches_no_part(write_set: WriteSet) -> None:
    folder = write_set([([[1]], [[2]])] * 5)
    for number in range(5):
        (folder / part_name(number)).unlink()
    shards = open_shards(folder)
    assert len(shards) == 5
    assert list(shards.corpora) == ["only"]
    with pytest.raises(TandemError, match=r"part-00003\.bin is missing"):
        shards.gather(np.array([3]))


def test_a_part_of_another_set_is_refused(write_set: WriteSet) -> None:
    folder, other = write_set([([[1]], [[2]])]), write_set([([[1], [1]], [[2], [2]])])
    (other / part_name(0)).replace(folder / part_name(0))
    with pytest.raises(TandemError, match="does not belong to its index"):
        open_shards(folder).gather(np.array([0]))


def test_an_index_of_another_set_is_refused(write_set: WriteSet) -> None:
    folder, other = write_set([([[1]], [[2]])]), write_set([([[1], [1]], [[2], [2]])])
    (other / "index.npy").replace(folder / "index.npy")
    with pytest.raises(TandemError, match="does not match its manifest"):
        open_shards(folder)


@pytest.mark.parametrize("number", [-1, 1])
def test_a_pair_outside_the_set_is_an_index_error(write_set: WriteSet, number: int) -> None:
    shards = open_shards(write_set([([[1]], [[2]])]))
    with pytest.raises(IndexError):
        shards.gather(np.array([number]))


def test_a_set_is_not_pickled(write_set: WriteSet) -> None:
    with pytest.raises(TypeError, match="open the folder again"):
        pickle.dumps(open_shards(write_set([([[1]], [[2]])])))


def test_a_set_outlives_a_fork(write_set: WriteSet) -> None:
    shards = open_shards(write_set([(long_pairs(50), long_pairs(50))]))
    expected = shards.gather(np.arange(50))[0].ids.tolist()
    child = os.fork()
    if child == 0:
        os._exit(0 if shards.gather(np.arange(50))[0].ids.tolist() == expected else 1)
    assert os.waitpid(child, 0)[1] == 0


def first_ids(shards: ShardSet, pair: int) -> list[int]:
    ids: list[int] = shards.gather(np.array([pair]))[0].ids.tolist()
    return ids


def test_a_set_that_was_moved_away_goes_on_with_its_own_parts(write_set: WriteSet, tmp_path: Path) -> None:
    folder, other = write_set([([[1]], [[2]])] * 2), write_set([([[7]], [[8]])] * 2)
    shards = open_shards(folder)
    folder.rename(tmp_path / "away")
    other.rename(folder)
    assert [first_ids(shards, pair) for pair in (0, 1)] == [[1], [1]]
    assert first_ids(open_shards(folder), 0) == [7]


def test_a_set_that_was_made_again_never_gives_the_new_pieces(write_set: WriteSet) -> None:
    folder, other = write_set([([[1]], [[2]])] * 2), write_set([([[7]], [[8]])] * 2)
    shards = open_shards(folder)
    assert first_ids(shards, 0) == [1]
    shutil.rmtree(folder)
    other.rename(folder)
    assert first_ids(shards, 0) == [1]
    with pytest.raises(TandemError, match="were made again while they were read"):
        first_ids(shards, 1)


def test_a_set_that_is_replaced_while_it_is_opened_is_refused(
    write_set: WriteSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, other = write_set([([[1]], [[2]])]), write_set([([[7]], [[8]])])

    def replace_and_read(path: Path) -> Blocks:
        folder.rename(tmp_path / "away")
        other.rename(folder)
        return read_index(path)

    monkeypatch.setattr(shardset, "read_index", replace_and_read)
    with pytest.raises(TandemError, match="were made again while they were read"):
        open_shards(folder)


def test_a_set_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(TandemError, match="There is no folder .*absent with shards: run"):
        open_shards(tmp_path / "absent")


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_a_set_that_is_dropped_leaves_no_file_open(write_set: WriteSet) -> None:
    folder = write_set([([[1]], [[2]])] * 3)
    before = open_files()
    shards = open_shards(folder)
    shards.gather(np.arange(3))
    assert open_files() == before + 4
    del shards
    assert open_files() == before


def run(script: str, *arguments: object) -> str:
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_more_parts_than_open_files_are_allowed(write_set: WriteSet) -> None:
    script = """
import resource, sys, numpy
from pathlib import Path
from tandem.data.shards.shardset import open_shards
resource.setrlimit(resource.RLIMIT_NOFILE, (48, 48))
shards = open_shards(Path(sys.argv[1]))
print(shards.gather(numpy.arange(len(shards)))[0].ids.sum())
"""
    assert int(run(script, write_set([([[1]], [[2]])] * 60))) == 60


@pytest.fixture(scope="module")
def big_set(write_set: WriteSet) -> ShardSet:
    sentences = [[number % 1000] * 200 for number in range(20_000)]
    return open_shards(write_set([(sentences, sentences)]))


def test_a_second_process_shares_the_pages_of_the_first(big_set: ShardSet) -> None:
    script = """
import sys, numpy
from pathlib import Path
from tandem.data.shards.shardset import open_shards
def private():
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_"))
shards = open_shards(Path(sys.argv[1]))
def touch():
    for start in range(0, len(shards), 100):
        shards.gather(numpy.arange(start, start + 100))
shards.gather(numpy.arange(100))
before = private()
touch()
print(private() - before)
"""
    size = (big_set.folder / part_name(0)).stat().st_size
    mapped = big_set.gather(np.arange(len(big_set)))
    grown = int(run(script, big_set.folder)) * 1024
    assert len(mapped[0]) == len(big_set)
    assert size > 15_000_000
    assert grown < size / 8
