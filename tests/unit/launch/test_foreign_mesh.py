import json
import os
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tandem.errors import TandemError
from tandem.launch import local_socket
from tandem.launch.foreign_mesh import exchange, meeting, meeting_environment, warn_of_network
from tandem.launch.identity import Identity
from tandem.launch.mesh import Peer
from tandem.parallel.key_values import MESH, STORE

TWO_HOSTS = {"RANK": "0", "WORLD_SIZE": "3", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "192.0.2.1"}
ONE_HOST = {**TWO_HOSTS, "WORLD_SIZE": "2", "MASTER_PORT": "29500"}


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_socket, "TEMPORARY", tmp_path)


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as pool:
        yield pool


def peer(name: str, *, first_rank: int, ranks: int) -> Peer:
    certificate = Identity(name).certificate
    return Peer(
        name=name, address="10.0.0.1", port=1, certificate=certificate, first_rank=first_rank, ranks=ranks
    )


def seen(folder: Path, own: Peer, stack: ExitStack, *, patience_s: float = 20.0) -> list[Peer]:
    return stack.enter_context(exchange(folder, "start", own, world_size=3, patience_s=patience_s))


def test_all_hosts_get_the_keys_of_all_in_the_order_of_their_ranks_and_leave_nothing(
    tmp_path: Path, pool: ThreadPoolExecutor
) -> None:
    first, second = peer("a", first_rank=0, ranks=2), peer("b", first_rank=2, ranks=1)
    with ExitStack() as stack:
        others: Future[list[Peer]] = pool.submit(seen, tmp_path / "keys", second, stack)
        assert seen(tmp_path / "keys", first, stack) == [first, second] == others.result()
        assert (tmp_path / "keys").stat().st_mode & 0o777 == 0o700
    assert list((tmp_path / "keys").iterdir()) == []


def test_what_an_earlier_start_has_left_does_not_count(tmp_path: Path, pool: ThreadPoolExecutor) -> None:
    keys = tmp_path / "keys"
    keys.mkdir(mode=0o700)
    first, second = peer("a", first_rank=0, ranks=2), peer("b", first_rank=2, ranks=1)
    old = [replace(each, certificate=Identity("old").certificate) for each in (first, second)]
    for card in old:
        # One that believed itself complete when it was killed.
        file = keys / f"start-{card.first_rank}.json"
        file.write_text(json.dumps({"peer": asdict(card), "seen": ["x", "y"]}))
    with ExitStack() as stack:
        others = pool.submit(seen, keys, second, stack)
        assert seen(keys, first, stack) == [first, second] == others.result()


def test_a_host_that_does_not_come_is_missed_with_those_that_did(tmp_path: Path) -> None:
    with ExitStack() as stack, pytest.raises(TandemError, match=r"Not all hosts .* \(a\): all must see"):
        seen(tmp_path / "keys", peer("a", first_rank=0, ranks=2), stack, patience_s=0.0)


def test_ranks_that_are_dealt_out_in_turn_are_refused(tmp_path: Path, pool: ThreadPoolExecutor) -> None:
    with ExitStack() as stack:
        other = pool.submit(seen, tmp_path / "keys", peer("b", first_rank=1, ranks=1), stack, patience_s=0.0)
        with pytest.raises(TandemError, match="numbers that follow each other"):
            seen(tmp_path / "keys", peer("a", first_rank=0, ranks=2), stack, patience_s=0.0)
        assert other.exception() is not None


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o701])
def test_a_folder_that_others_can_enter_is_refused(tmp_path: Path, mode: int) -> None:
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys").chmod(mode)
    with ExitStack() as stack, pytest.raises(TandemError, match="make it yours with mode 0700"):
        seen(tmp_path / "keys", peer("a", first_rank=0, ranks=3), stack)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_another_user_is_refused(tmp_path: Path) -> None:
    (tmp_path / "keys").mkdir(mode=0o700)
    os.chown(tmp_path / "keys", 65_534, 65_534)
    with ExitStack() as stack, pytest.raises(TandemError, match="make it yours"):
        seen(tmp_path / "keys", peer("a", first_rank=0, ranks=3), stack)


def test_a_link_is_no_folder_for_keys(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (tmp_path / "keys").symlink_to("elsewhere")
    with ExitStack() as stack, pytest.raises(TandemError, match="Cannot use .*keys for keys"):
        seen(tmp_path / "keys", peer("a", first_rank=0, ranks=3), stack)


def test_ranks_of_one_host_meet_in_a_file_whether_or_not_there_is_a_folder(tmp_path: Path) -> None:
    for key_folder in (None, tmp_path):
        (store,) = (Path(place) for place in meeting_environment(ONE_HOST, key_folder).values())
        assert meeting_environment(ONE_HOST, key_folder) == {STORE: str(store)}
        store.parent.mkdir(exist_ok=True)
        store.write_text("left by a run that was killed")
        with meeting(ONE_HOST, key_folder):
            assert not store.exists()
            with pytest.raises(TandemError, match="another MASTER_PORT"), meeting(ONE_HOST, key_folder):
                pass
            store.write_text("")
        assert not store.exists()


def test_ranks_of_several_hosts_meet_in_the_mesh_where_they_can_exchange_keys(tmp_path: Path) -> None:
    assert meeting_environment(TWO_HOSTS, tmp_path).keys() == {MESH}
    assert meeting_environment(TWO_HOSTS, None) == {}
    assert meeting_environment({"RANK": "0", "WORLD_SIZE": "1"}, tmp_path) == {}


def test_why_there_is_no_mesh_is_told_to_the_ranks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The address of a socket is a short name.
    short = TemporaryDirectory(dir="/tmp")
    monkeypatch.setattr(local_socket, "TEMPORARY", Path(short.name))
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys").chmod(0o755)
    places = {**TWO_HOSTS, "GLOO_SOCKET_IFNAME": "lo"}
    with (
        short,
        pytest.raises(TandemError, match="Others can enter .*keys"),
        meeting(places, tmp_path / "keys"),
    ):
        pass


def test_what_is_open_is_said_unless_the_user_knows(tmp_path: Path) -> None:
    said = warn_of_network(TWO_HOSTS, None, is_trusted=False)
    assert "Between hosts nothing is encrypted" in said
    assert "Give --key-folder" in said
    torchrun = {**ONE_HOST, "TORCHELASTIC_RUN_ID": "none"}
    assert "torchrun itself listens on every interface, at port 29500" in warn_of_network(
        torchrun, None, is_trusted=False
    )
    for environment, key_folder, is_trusted in [
        (TWO_HOSTS, tmp_path, False),
        (TWO_HOSTS, None, True),
        (torchrun, None, True),
        (ONE_HOST, None, False),
        ({"WORLD_SIZE": "1"}, None, False),
    ]:
        assert warn_of_network(environment, key_folder, is_trusted=is_trusted) == ""
