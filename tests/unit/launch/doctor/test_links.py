from itertools import combinations

from tandem.launch.doctor.links import choose_pairs


def test_a_few_hosts_are_measured_each_against_each() -> None:
    assert set(choose_pairs("abcd", brief=False)) == set(combinations("abcd", 2))


def test_many_hosts_are_measured_in_a_ring_and_against_the_first() -> None:
    pairs = choose_pairs("abcdef", brief=False)
    assert len(pairs) == len(set(map(frozenset, pairs))) == 9
    assert {("a", "d"), ("c", "d"), ("a", "f")} < set(pairs)
    assert ("b", "d") not in pairs


def test_a_brief_look_measures_neighbours() -> None:
    assert choose_pairs("ab", brief=True) == [("a", "b")]
    assert set(choose_pairs("abcd", brief=True)) == {("a", "b"), ("b", "c"), ("c", "d"), ("a", "d")}
