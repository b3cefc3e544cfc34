"""`python -m tandem.lab.inside FOLDER HOST CWD LOG COMMAND…`: becomes that command in that host of a lab."""

import os
import sys
from pathlib import Path

from tandem.lab.enter import detach, join_network, take_identity
from tandem.lab.layout import Layout
from tandem.lab.state import read_state
from tandem.process import user_environment

__all__ = ["main"]


def main() -> None:
    """Enter the host and become the command."""
    folder, name, cwd, log = sys.argv[1:5]
    command = sys.argv[5:]
    layout = Layout(Path(folder))
    state = read_state(layout.folder)
    host = state.host(name)
    join_network(host.namespace)
    covers = {
        Path("/etc/hosts"): layout.hosts_file,
        Path("/etc/passwd"): layout.passwd(name),
        layout.ssh_config: layout.ssh_config_inside,
    }
    take_identity(name, covers)
    os.environ.update(HOME=str(layout.home(name)), TANDEM_LAB_HOST=name, HOSTNAME=name, PWD=cwd)
    os.environ.setdefault("OMP_NUM_THREADS", str(state.threads))
    os.chdir(cwd)
    if log:
        detach(Path(log))
    try:
        os.execvpe(command[0], command, user_environment())  # noqa: S606
    except OSError as error:
        sys.exit(f"error: Cannot run {command[0]} in {name}: {error.strerror}; check the command.")


if __name__ == "__main__":
    main()
