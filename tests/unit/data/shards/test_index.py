from pathlib import Path

import numpy as np
import pytest

from tandem.data.shards.index import INDEX_NAME, read_index, write_index
from tandem.data.shards.part import ShardFacts, part_name
from tandem.data.shards.special import SpecialIds
from tandem.errors import TandemError


def facts(number: int, *, pairs: int, corpus: int = 0) -> ShardFacts:
    blocks = -(-pairs // 1024)
    return ShardFacts(
        name=part_name(number),
        bytes=1,
        sha256="0" * 64,
        corpus=corpus,
        pairs=pairs,
        longest_source=5 + number,
        longest_target=9 - number,
        source_tokens=np.full(blocks, 10),
        target_tokens=np.full(blocks, 20),
    )


def write(folder: Path, parts: list[ShardFacts]) -> dict[str, object]:
    corpora = ["first", "second"]
    return dict(write_index(folder, parts, corpora=corpora, special=SpecialIds(pad=9), vocabulary=100))


def test_blocks_come_back_with_their_part_corpus_and_sums(tmp_path: Path) -> None:
    manifest = write(tmp_path, [facts(0, pairs=1500), facts(1, pairs=0), facts(2, pairs=3, corpus=1)])
    blocks = read_index(tmp_path)
    assert blocks.part.tolist() == [0, 0, 2]
    assert blocks.corpus.tolist() == [0, 0, 1]
    assert blocks.pairs.tolist() == [1024, 476, 3]
    assert blocks.first_pair.tolist() == [0, 1024, 1500, 1503]
    assert manifest == {
        "parts": 3,
        "pairs": 1503,
        "source_tokens": 30,
        "target_tokens": 60,
        "longest_source": 7,
        "longest_target": 9,
        "vocabulary": 100,
        "special": {"unk": 0, "bos": 1, "eos": 2, "pad": 9},
        "corpora": ["first", "second"],
    }


def test_a_set_without_parts_has_no_blocks(tmp_path: Path) -> None:
    assert write(tmp_path, [])["pairs"] == 0
    assert len(read_index(tmp_path)) == 0


@pytest.mark.parametrize(
    "parts", [[facts(1, pairs=3)], [facts(0, pairs=3, corpus=2)]], ids=["name", "corpus"]
)
def test_parts_out_of_order_or_of_no_corpus_are_refused(tmp_path: Path, parts: list[ShardFacts]) -> None:
    with pytest.raises(ValueError, match="part 0 is"):
        write(tmp_path, parts)


@pytest.mark.parametrize("content", [None, b"", b"\x93NUMPY\x01\x00", b"{}"])
def test_a_damaged_index_is_named_with_its_cure(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / INDEX_NAME).write_bytes(content)
    with pytest.raises(TandemError, match=r"index\.npy is missing or damaged: run `tandem data prepare`"):
        read_index(tmp_path)


def test_an_index_of_another_table_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / INDEX_NAME, np.zeros(3))
    with pytest.raises(TandemError, match="damaged"):
        read_index(tmp_path)


def test_pickled_objects_are_never_loaded(tmp_path: Path) -> None:
    np.save(tmp_path / INDEX_NAME, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(TandemError, match="damaged"):
        read_index(tmp_path)
