from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tandem.artefact import building
from tandem.data.shards.index import write_index
from tandem.data.shards.part import part_name, write_shard
from tandem.data.shards.ragged import Ragged
from tandem.data.shards.shardset import SHARDS_KIND, SHARDS_VERSION
from tandem.data.shards.special import SpecialIds

Rows = Sequence[Sequence[int]]


@pytest.fixture(scope="session")
def write_set(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Writes a finished shard set, a part for each (source rows, target rows)."""

    def write(parts: Sequence[tuple[Rows, Rows]], vocabulary: int = 1000) -> Path:
        folder = tmp_path_factory.mktemp("sets") / "shards"
        with building(folder, kind=SHARDS_KIND, version=SHARDS_VERSION, fingerprint="test") as build:
            facts = [
                write_shard(
                    build.path / part_name(number),
                    source=Ragged.from_lists(source),
                    target=Ragged.from_lists(target),
                    vocabulary=vocabulary,
                )
                for number, (source, target) in enumerate(parts)
            ]
            build.facts = write_index(
                build.path,
                facts,
                corpora=["only"],
                special=SpecialIds(),
                vocabulary=vocabulary,
            )
        return folder

    return write
