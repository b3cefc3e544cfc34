import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.data.shards.ragged import Ragged, build_spans, pick_ended


@given(st.lists(st.lists(st.integers(0, 99), max_size=5), max_size=8))
def test_rows_come_back_from_the_flat_array(rows: list[list[int]]) -> None:
    ragged = Ragged.from_lists(rows)
    parts = np.split(ragged.ids, np.cumsum(ragged.lengths)[:-1])
    assert len(ragged) == len(rows)
    assert [part.tolist() for part in parts][: len(rows)] == rows


def test_lengths_that_do_not_add_up_are_refused() -> None:
    with pytest.raises(ValueError, match="sum to 3, not 2"):
        Ragged(ids=np.array([1, 2]), lengths=np.array([1, 2]))


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 6)), max_size=8))
def test_spans_are_the_ranges_one_after_another(spans: list[tuple[int, int]]) -> None:
    starts = np.array([start for start, _ in spans], np.int64)
    lengths = np.array([length for _, length in spans], np.int64)
    expected = [place for start, length in spans for place in range(start, start + length)]
    assert build_spans(starts, lengths).tolist() == expected


@given(st.data(), st.lists(st.integers(0, 99), max_size=12))
def test_picked_sentences_end_with_the_end_mark(data: st.DataObject, ids: list[int]) -> None:
    bounds = st.tuples(st.integers(0, len(ids)), st.integers(0, len(ids))).map(sorted)
    spans = data.draw(st.lists(bounds, max_size=6))
    starts = np.array([start for start, _ in spans], np.int64)
    lengths = np.array([stop - start for start, stop in spans], np.int64)
    picked = pick_ended(np.array(ids, np.uint16), starts, lengths, end=500)
    assert picked.lengths.tolist() == [stop - start + 1 for start, stop in spans]
    assert picked.ids.tolist() == [piece for start, stop in spans for piece in [*ids[start:stop], 500]]
