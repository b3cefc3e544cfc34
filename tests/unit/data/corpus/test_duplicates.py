from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tandem.data.corpus import duplicates
from tandem.data.corpus.duplicates import find_duplicates


def found(folder: Path, files: list[list[int]]) -> dict[int, list[int]]:
    paths = [folder / f"{number}.keys" for number in range(len(files))]
    for path, keys in zip(paths, files, strict=True):
        path.write_bytes(np.array(keys, dtype="<u8").tobytes())
    return {file: rows.tolist() for file, rows in find_duplicates(paths)}


def expected(files: list[list[int]]) -> dict[int, list[int]]:
    seen: set[int] = set()
    rows: dict[int, list[int]] = {}
    for file, keys in enumerate(files):
        for row, key in enumerate(keys):
            if key in seen:
                rows.setdefault(file, []).append(row)
            seen.add(key)
    return rows


def test_the_first_of_equal_pairs_stays(tmp_path: Path) -> None:
    assert found(tmp_path, [[5, 6, 5], [], [7, 6, 2**64 - 1, 2**64 - 1]]) == {0: [2], 2: [1, 3]}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    files=st.lists(st.lists(st.integers(0, 30), max_size=40), min_size=1, max_size=5),
    at_once=st.integers(1, 50),
)
def test_the_answer_does_not_depend_on_how_much_fits_in_memory(
    tmp_path: Path, files: list[list[int]], at_once: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(duplicates, "KEYS_AT_ONCE", at_once)
        assert found(tmp_path, files) == expected(files)
