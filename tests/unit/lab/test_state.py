from pathlib import Path

import pytest

from tandem.errors import TandemError
from tandem.lab.link import Link
from tandem.lab.state import Host, Started, State, maybe_read_state, read_state, write_state

HOSTS = {
    "h1": Host(name="h1", namespace="tandem-1-h1", address="10.1.2.1", link=Link(rate_bits=10**6)),
    "h2": Host(
        name="h2",
        namespace="tandem-1-h2",
        address="10.1.2.2",
        link=Link(delay_s=0.5, is_up=False),
        sshd=Started(pid=7, ticks=8),
        wire=Started(pid=9, ticks=10),
    ),
}
STATE = State(
    boot="a", switch="tandem-1-switch", gateway="10.1.2.254", prefix=24, made_folder=True, hosts=HOSTS
)


def test_a_state_comes_back_as_it_was_written(tmp_path: Path) -> None:
    write_state(tmp_path, STATE)
    assert read_state(tmp_path) == STATE
    assert read_state(tmp_path).namespaces == ["tandem-1-switch", "tandem-1-h1", "tandem-1-h2"]


def test_a_host_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(TandemError, match="no host 'h3': it has h1, h2"):
        STATE.host("h3")


def test_a_folder_without_a_lab_has_no_state(tmp_path: Path) -> None:
    assert maybe_read_state(tmp_path / "nowhere") is None
    with pytest.raises(TandemError, match="There is no lab in"):
        read_state(tmp_path)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"version": 1}', '{"version": 1, "hosts": {"h1": {}}}'])
def test_a_damaged_state_is_an_error_with_a_cure(tmp_path: Path, text: str) -> None:
    (tmp_path / "lab.json").write_text(text)
    with pytest.raises(TandemError, match="lab.json is damaged: remove the namespaces"):
        maybe_read_state(tmp_path)


def test_the_format_of_another_version_is_refused(tmp_path: Path) -> None:
    (tmp_path / "lab.json").write_text('{"version": 2}')
    with pytest.raises(TandemError, match="has lab format 2, not 1"):
        maybe_read_state(tmp_path)
