"""Hosts as people write them, on the command line and in files."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.errors import TandemError
from tandem.launch.hosts import Host, read_hosts


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("a", [Host(name="a")]),
        ("a,b", [Host(name="a"), Host(name="b")]),
        (" a:2 , b ,", [Host(name="a", workers=2), Host(name="b")]),
        ("me@a.example.org:8", [Host(name="me@a.example.org", workers=8)]),
        ("10.0.0.1:1,10.0.0.2", [Host(name="10.0.0.1", workers=1), Host(name="10.0.0.2")]),
        ("[fe80::1%eth0]:4", [Host(name="fe80::1%eth0", workers=4)]),
        ("me@[::1]", [Host(name="me@::1")]),
        ("gpu_01-a", [Host(name="gpu_01-a")]),
    ],
)
def test_hosts_are_read_from_the_command_line(text: str, hosts: list[Host]) -> None:
    assert read_hosts(text) == tuple(hosts)


def test_a_file_names_a_host_a_line_as_open_mpi_does_too(tmp_path: Path) -> None:
    file = tmp_path / "hosts"
    file.write_text("# ours\na:2\n\n  b slots=4  # the new one\nc slots = 1\nme@d\n")
    assert read_hosts(str(file)) == (
        Host(name="a", workers=2),
        Host(name="b", workers=4),
        Host(name="c", workers=1),
        Host(name="me@d"),
    )


def test_a_bad_line_is_named_with_its_number(tmp_path: Path) -> None:
    file = tmp_path / "hosts"
    file.write_text("a\n\nb two\n")
    with pytest.raises(TandemError, match=r"hosts, line 3: 'b two' is no host"):
        read_hosts(str(file))


@pytest.mark.parametrize("text", ["", ",", " , "])
def test_no_host_at_all_is_refused(text: str) -> None:
    with pytest.raises(TandemError, match="names no host"):
        read_hosts(text)


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text("# none yet\n")
    with pytest.raises(TandemError, match="names no host"):
        read_hosts(str(tmp_path / "hosts"))


@pytest.mark.parametrize(
    "entry", ["-oProxyCommand=x", "a b", "a:", "a:x", "a:12345", "a;b", "@a", "a@b@c", "::1", "$(x)"]
)
def test_what_is_no_host_is_refused(entry: str) -> None:
    with pytest.raises(TandemError, match="is no host"):
        read_hosts(f"{entry},z")


def test_no_worker_is_refused() -> None:
    with pytest.raises(TandemError, match=r"--hosts: 'b:0' asks for no worker"):
        read_hosts("a,b:0")


def test_a_host_twice_is_refused() -> None:
    with pytest.raises(TandemError, match=r"a is named twice .* as a:2 for two workers"):
        read_hosts("a,b,a:2")


@given(st.text(min_size=1, max_size=12))
def test_no_text_becomes_an_option_of_ssh(text: str) -> None:
    try:
        hosts = read_hosts(f"{text},z")
    except TandemError:
        return
    assert not any(host.name.startswith("-") or " " in host.name for host in hosts)
