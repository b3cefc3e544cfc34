"""A shard set of each format version, written once and kept: it must read as it did then."""

from pathlib import Path

import numpy as np
import pytest

from tandem.artefact import read_manifest, verify
from tandem.data.shards.part import part_name, write_shard
from tandem.data.shards.ragged import Ragged
from tandem.data.shards.shardset import ShardSet, open_shards
from tandem.data.shards.special import SpecialIds

FOLDER = Path(__file__).parent / "shards-v1"
PART_PAIRS = [1030, 0, 7]
PART_CORPORA = [0, 0, 1]
VOCABULARY = 5000


def build_side(part: int, *, salt: int) -> Ragged:
    numbers = np.arange(PART_PAIRS[part]) + 100_000 * part
    lengths = numbers * salt % 6
    return Ragged(ids=4 + np.arange(int(lengths.sum())) * salt % (VOCABULARY - 4), lengths=lengths)


@pytest.fixture(scope="module")
def shards() -> ShardSet:
    return open_shards(FOLDER)


def test_version_1_is_whole() -> None:
    verify(FOLDER, read_manifest(FOLDER, kind="shards", version=1))


def test_version_1_reads_as_it_was_written(shards: ShardSet) -> None:
    for side, salt in enumerate((7919, 104_729)):
        expected = [build_side(part, salt=salt) for part in range(3)]
        found = shards.gather(np.arange(len(shards)))[side]
        assert found.ids.tolist() == np.concatenate([part.ids for part in expected]).tolist()
        assert found.lengths.tolist() == np.concatenate([part.lengths for part in expected]).tolist()


def test_version_1_tells_what_it_holds(shards: ShardSet) -> None:
    assert len(shards) == 1037
    assert shards.corpora == ("first", "second")
    assert shards.special == SpecialIds(unk=0, bos=1, eos=2, pad=3)
    assert shards.vocabulary == VOCABULARY
    assert (shards.longest_source, shards.longest_target) == (6, 6)
    assert shards.blocks.part.tolist() == [0, 0, 2]
    assert shards.blocks.corpus.tolist() == [0, 0, 1]
    assert shards.blocks.pairs.tolist() == [1024, 6, 7]


@pytest.mark.parametrize("part", range(3))
def test_version_1_is_still_written_with_the_same_bytes(tmp_path: Path, part: int) -> None:
    path = tmp_path / part_name(part)
    sides = [build_side(part, salt=salt) for salt in (7919, 104_729)]
    write_shard(path, source=sides[0], target=sides[1], vocabulary=VOCABULARY, corpus=PART_CORPORA[part])
    assert path.read_bytes() == (FOLDER / path.name).read_bytes()
