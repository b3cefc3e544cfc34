from itertools import permutations

from tandem.launch.doctor.blame import blame_directions, blame_links

ALL = list(permutations("abcd", 2))


def test_a_host_that_is_bad_with_each_other_host_is_named() -> None:
    bad = [pair for pair in ALL if "b" in pair]
    assert blame_links(bad, ALL) == {"b": bad}


def test_one_bad_direction_with_each_other_host_is_enough() -> None:
    bad = [pair for pair in ALL if pair[1] == "b"]
    assert list(blame_links(bad, ALL)) == ["b"]


def test_two_bad_hosts_are_both_named() -> None:
    bad = [pair for pair in ALL if {"a", "c"} & set(pair)]
    assert set(blame_links(bad, ALL)) == {"a", "c"}


def test_a_pair_is_named_where_its_hosts_are_well_with_others() -> None:
    assert blame_links([("a", "b")], ALL) == {"a → b": [("a", "b")]}


def test_two_hosts_alone_cannot_be_told_apart() -> None:
    both = list(permutations("ab", 2))
    assert set(blame_links(both, both)) == {"a → b", "b → a"}


def test_where_everything_is_bad_no_host_is_named() -> None:
    assert set(blame_links(ALL, ALL)) == {f"{a} → {b}" for a, b in ALL}


def test_a_host_that_nobody_reaches_is_named_as_a_receiver() -> None:
    bad = [pair for pair in ALL if pair[1] == "d"]
    assert blame_directions(bad, ALL) == {"→ d": bad}


def test_a_host_that_reaches_nobody_is_named_as_a_sender() -> None:
    bad = [pair for pair in ALL if pair[0] == "d"]
    assert blame_directions(bad, ALL) == {"d →": bad}


def test_a_single_closed_direction_is_a_pair() -> None:
    assert list(blame_directions([("a", "d")], ALL)) == ["a → d"]
    assert list(blame_directions([("a", "b")], [("a", "b"), ("b", "a")])) == ["a → b"]
