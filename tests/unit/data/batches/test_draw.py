from hypothesis import given
from hypothesis import strategies as st

from tandem.data.batches.draw import Purpose, permutation


@given(size=st.integers(0, 300), seed=st.integers(0, 2**63), epoch=st.integers(0, 10**6))
def test_every_thing_appears_once(size: int, seed: int, epoch: int) -> None:
    assert sorted(permutation(size, Purpose.PAIR_ORDER, seed, epoch)) == list(range(size))


def test_draws_depend_on_every_part_of_the_key() -> None:
    keys = [(1, 2), (2, 1), (1, 3), (1,)]
    orders = {tuple(permutation(50, purpose, *key)) for purpose in Purpose for key in keys}
    assert len(orders) == len(Purpose) * len(keys)


def test_draws_never_change() -> None:
    assert permutation(10, Purpose.UPDATE_ORDER, 7, 0, 3).tolist() == [3, 2, 4, 9, 5, 0, 1, 6, 8, 7]
