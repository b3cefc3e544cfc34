"""Keys and settings of the hosts' ssh, made on the spot."""

import pwd
from pathlib import Path

from tandem.lab.command import perform
from tandem.lab.entry import connecting
from tandem.lab.layout import Layout
from tandem.lab.state import Host, State

__all__ = ["write_ssh"]


def write_ssh(layout: Layout, state: State) -> None:
    """Write keys, known hosts, settings of both sides, and the hosts' /etc/hosts and /etc/passwd."""
    for key in (layout.host_key, layout.user_key):
        perform(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "tandem-lab", "-f", str(key)])
    kind, body = layout.host_key.with_suffix(".pub").read_text().split()[:2]
    names = [word for host in state.hosts.values() for word in (host.name, host.address)]
    layout.known_hosts.write_text(f"{','.join(names)} {kind} {body}\n")
    lines = ["127.0.0.1 localhost", "::1 localhost"]
    lines += [f"{host.address} {host.name}" for host in state.hosts.values()]
    layout.hosts_file.write_text("\n".join(lines) + "\n")
    layout.ssh_config.write_text(_client(layout, state, proxy=connecting(state.switch)))
    layout.ssh_config_inside.write_text(_client(layout, state))
    for host in state.hosts.values():
        layout.sshd_config(host.name).write_text(_server(layout, state, host))
        layout.passwd(host.name).write_text(_passwd(layout.home(host.name)))
        own = layout.home(host.name) / ".ssh"
        own.mkdir(mode=0o700)
        (own / "config").write_text(layout.ssh_config_inside.read_text())


def _client(layout: Layout, state: State, *, proxy: str | None = None) -> str:
    lines = []
    for host in state.hosts.values():
        lines += [f"Host {host.name} {host.address}", f"  HostName {host.address}"]
    lines += [f"Host {' '.join(word for host in state.hosts.values() for word in (host.name, host.address))}"]
    lines += [
        "  User root",
        f"  IdentityFile {_quoted(layout.user_key)}",
        "  IdentitiesOnly yes",
        "  IdentityAgent none",
        f"  UserKnownHostsFile {_quoted(layout.known_hosts)}",
        "  GlobalKnownHostsFile none",
        "  StrictHostKeyChecking yes",
        "  UpdateHostKeys no",
        "  BatchMode yes",
        "  LogLevel ERROR",
    ]
    if proxy is not None:
        lines += [f"  ProxyCommand {proxy}", "  ProxyUseFdpass yes"]
    return "\n".join(lines) + "\n"


def _server(layout: Layout, state: State, host: Host) -> str:
    lines = [
        f"ListenAddress {host.address}",
        f"HostKey {_quoted(layout.host_key)}",
        f"AuthorizedKeysFile {_quoted(layout.user_key.with_suffix('.pub'))}",
        "AllowUsers root",
        "PermitRootLogin prohibit-password",
        "PasswordAuthentication no",
        "KbdInteractiveAuthentication no",
        "UsePAM no",
        # The folder of a lab may lie below one that others may write, such as /tmp.
        "StrictModes no",
        "PidFile none",
        "UseDNS no",
        "MaxStartups 100",
        f"SetEnv TANDEM_LAB_HOST={host.name} OMP_NUM_THREADS={state.threads}",
        "Subsystem sftp internal-sftp",
    ]
    return "\n".join(lines) + "\n"


def _passwd(home: Path) -> str:
    """The users of this machine, with root at home in the host's own folder: there an ssh session begins."""
    lines = []
    for user in pwd.getpwall():
        folder = str(home) if user.pw_uid == 0 else user.pw_dir
        lines.append(f"{user.pw_name}:x:{user.pw_uid}:{user.pw_gid}:{user.pw_gecos}:{folder}:{user.pw_shell}")
    return "\n".join(lines) + "\n"


def _quoted(path: Path) -> str:
    return '"' + str(path).replace("%", "%%") + '"'
