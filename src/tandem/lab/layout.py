"""Where things lie in a lab's folder."""

from dataclasses import dataclass
from pathlib import Path

__all__ = ["Layout"]


@dataclass(frozen=True, slots=True)
class Layout:
    """The names in a lab's folder."""

    folder: Path

    @property
    def ssh_config(self) -> Path:
        """For ssh on this machine; in a host the file below takes its place."""
        return self.folder / "ssh_config"

    @property
    def ssh_config_inside(self) -> Path:
        """For ssh from host to host."""
        return self.files / "ssh_config"

    @property
    def files(self) -> Path:
        """Keys, settings and logs."""
        return self.folder / "files"

    @property
    def host_key(self) -> Path:
        """The key by which all hosts show who they are."""
        return self.files / "host_key"

    @property
    def user_key(self) -> Path:
        """The key that opens all hosts."""
        return self.files / "user_key"

    @property
    def known_hosts(self) -> Path:
        """The hosts' key as ssh's clients know it."""
        return self.files / "known_hosts"

    @property
    def hosts_file(self) -> Path:
        """The hosts' /etc/hosts."""
        return self.files / "hosts"

    @property
    def homes(self) -> Path:
        """The disks of the hosts."""
        return self.folder / "hosts"

    def home(self, host: str) -> Path:
        """A host's own disk: its home folder."""
        return self.homes / host

    def passwd(self, host: str) -> Path:
        """A host's /etc/passwd."""
        return self.files / f"passwd-{host}"

    def sshd_config(self, host: str) -> Path:
        """The settings of a host's sshd."""
        return self.files / f"sshd_config-{host}"

    def log(self, process: str, host: str) -> Path:
        """What a process of a host says."""
        return self.files / f"{process}-{host}.log"

    @property
    def all(self) -> tuple[Path, ...]:
        """Everything that the lab makes here, but its state."""
        return (self.homes, self.files, self.ssh_config)
