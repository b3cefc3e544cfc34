"""Which interfaces' claims are believed."""

from pathlib import Path

import pytest

from tandem.telemetry.nominal import nominal_bits_per_s


@pytest.fixture
def network(tmp_path: Path) -> Path:
    """A host's interfaces as the system describes them, all of which claim 10 Gb/s."""
    for name, driver, vendor in (
        ("eth0", "mlx5_core", "0x15b3"),
        ("eth1", "virtio_net", "0x1af4"),
        ("eth2", "e1000", "0x1af4"),
        ("veth0", "", ""),
        ("docker0", "", ""),
        ("tun0", "", ""),
        ("bond0", "", ""),
        ("br0", "", ""),
    ):
        folder = tmp_path / "net" / name
        folder.mkdir(parents=True)
        (folder / "speed").write_text("10000\n")
        if driver:
            device = tmp_path / "devices" / name
            device.mkdir(parents=True)
            (tmp_path / "drivers" / driver).mkdir(parents=True)
            (device / "driver").symlink_to(tmp_path / "drivers" / driver)
            (device / "subsystem_vendor").write_text(f"{vendor}\n")
            (folder / "device").symlink_to(device)
    for upper, lower in (("docker0", "veth0"), ("bond0", "eth0"), ("br0", "eth0"), ("br0", "veth0")):
        (tmp_path / "net" / upper / f"lower_{lower}").symlink_to(tmp_path / "net" / lower)
    return tmp_path / "net"


@pytest.mark.parametrize("name", ["eth0", "bond0"])
def test_a_card_and_a_bond_of_cards_are_believed(network: Path, name: str) -> None:
    assert nominal_bits_per_s(name, network=network) == 10**10


@pytest.mark.parametrize("name", ["eth1", "eth2", "veth0", "docker0", "tun0", "br0", "gone", ""])
def test_what_has_no_card_of_its_own_is_not_believed(network: Path, name: str) -> None:
    assert nominal_bits_per_s(name, network=network) == 0


@pytest.mark.parametrize("speed", ["-1", "0", "65535", "", "fast"])
def test_a_card_that_knows_no_speed_has_none(network: Path, speed: str) -> None:
    (network / "eth0" / "speed").write_text(speed)
    assert nominal_bits_per_s("eth0", network=network) == 0


def test_bonds_of_one_another_come_to_an_end(network: Path) -> None:
    (network / "tun0" / "lower_tun0").symlink_to(network / "tun0")
    assert nominal_bits_per_s("tun0", network=network) == 0
