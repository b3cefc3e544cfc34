from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from tandem.artefact import building
from tandem.data.shards.index import write_index
from tandem.data.shards.part import part_name, write_shard
from tandem.data.shards.ragged import Ragged
from tandem.data.shards.shardset import SHARDS_KIND, SHARDS_VERSION, ShardSet, open_shards
from tandem.data.shards.special import SpecialIds


@pytest.fixture(scope="session")
def build_shards(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., ShardSet]:
    """Makes a shard set with sentences of these lengths; each corpus is one part."""

    def build(*corpora: tuple[NDArray[np.int64], NDArray[np.int64]]) -> ShardSet:
        folder = tmp_path_factory.mktemp("sets") / "shards"
        names = [f"corpus {number}" for number in range(len(corpora))]
        with building(folder, kind=SHARDS_KIND, version=SHARDS_VERSION, fingerprint="test") as build:
            facts = [
                write_shard(
                    build.path / part_name(number),
                    source=_number(source),
                    target=_number(target),
                    vocabulary=2**20,
                    corpus=number,
                )
                for number, (source, target) in enumerate(corpora)
            ]
            build.facts = write_index(
                build.path, facts, corpora=names, special=SpecialIds(), vocabulary=2**20
            )
        return open_shards(folder)

    return build


def _number(lengths: NDArray[np.int64]) -> Ragged:
    return Ragged(ids=4 + np.arange(int(lengths.sum())) % (2**20 - 4), lengths=lengths)


@pytest.fixture(scope="session")
def draw_lengths() -> Callable[..., tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Lengths like those of real text: skewed, and alike on both sides."""

    def draw(pairs: int, seed: int = 0, longest: int = 80) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        generator = np.random.default_rng(seed)
        target = np.clip(generator.gamma(3.0, 8.0, pairs), 1, longest).astype(np.int64)
        source = np.clip(target * generator.normal(1.0, 0.15, pairs), 1, longest).astype(np.int64)
        return source, target

    return draw
