"""Which ranks share a host."""

from tandem.parallel.topology import Topology


def test_ranks_are_grouped_by_host_in_order_and_the_smallest_host_says_how_many_shares_there_are() -> None:
    topology = Topology.build(["a", "a", "b", "b", "b"], [0, 1, 0, 1, 2], rank=4)
    assert topology.hosts == ((0, 1), (2, 3, 4))
    assert topology.names == ("a", "b")
    assert (topology.host, topology.local, topology.shares) == (1, 2, 2)
    assert not topology.owns_share
    assert topology.neighbours == (2, 3)
    assert topology.owner(1, 1) == 3


def test_ranks_that_were_numbered_across_hosts_are_grouped_all_the_same() -> None:
    topology = Topology.build(["a", "b", "a", "b"], [0, 0, 1, 1], rank=2)
    assert topology.hosts == ((0, 2), (1, 3))
    assert (topology.host, topology.local) == (0, 1)
    assert topology.owns_share


def test_two_hosts_with_one_name_are_two() -> None:
    topology = Topology.build(["box", "box", "box"], [0, 1, 0], rank=2)
    assert topology.hosts == ((0, 1), (2,))
    assert topology.names == ("box", "box#2")
