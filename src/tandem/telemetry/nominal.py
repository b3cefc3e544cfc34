"""The speed that a network interface claims, where a card stands behind the claim."""

from pathlib import Path

__all__ = ["NETWORK", "nominal_bits_per_s"]

NETWORK = Path("/sys/class/net")
"""Where the system describes its interfaces."""
_MEGA = 10**6
_UNKNOWN = (0, 65535)
"""What drivers say that know no speed; the latter is -1 in 16 bits."""
_VIRTUAL_DRIVERS = frozenset(
    {"ena", "gve", "hv_netvsc", "iavf", "igbvf", "ixgbevf", "mana", "nicvf", "vif", "virtio_net", "vmxnet3"}
)
"""Their interfaces share a card that only the hypervisor sees, at a rate that it sets."""
_EMULATORS = frozenset({"0x1af4", "0x15ad"})
"""Makers of cards that are made of software: QEMU and VMware."""
_DEEPEST = 4


def nominal_bits_per_s(interface: str, *, network: Path = NETWORK) -> int:
    """Bits a second that a physical interface has agreed on with its switch; 0 where nobody knows.

    What a virtual interface (virtio, veth, tun, a bridge of containers) says is no fact about any link. Bonds, VLANs
    and bridges are believed where all that lies below them is physical.
    """
    folder = network / interface
    if not interface or not _is_physical(folder, network, depth=0):
        return 0
    try:
        speed = int((folder / "speed").read_text())
    except (OSError, ValueError):
        return 0
    return 0 if speed < 0 or speed in _UNKNOWN else speed * _MEGA


def _is_physical(folder: Path, network: Path, *, depth: int) -> bool:
    device = folder / "device"
    if device.exists():
        return (device / "driver").resolve().name not in _VIRTUAL_DRIVERS and not _is_emulated(device)
    lower = [path.name.removeprefix("lower_") for path in folder.glob("lower_*")]
    return (
        depth < _DEEPEST
        and bool(lower)
        and all(_is_physical(network / name, network, depth=depth + 1) for name in lower)
    )


def _is_emulated(device: Path) -> bool:
    try:
        return (device / "subsystem_vendor").read_text().strip() in _EMULATORS
    except OSError:
        return False
