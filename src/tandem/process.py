"""Python processes that import nothing from the working folder: how they are started, and this one made one of them.

`python -m` and the children of multiprocessing look for modules in the working folder first: a `yaml.py` lying there
would run in place of the library.
"""

# Loaded before anything else of Tandem's: only what every interpreter has loaded itself may be imported here.

import os
import sys

__all__ = ["SafeChildren", "leave_working_folder", "python_command", "user_environment"]

_SAFE_PATH = "PYTHONSAFEPATH"
_GIVEN = os.environ.get(_SAFE_PATH)
_PACKAGE = __name__.partition(".")[0]


def python_command(module: str, *arguments: str, python: str = "") -> list[str]:
    """The argument list that runs a module, which is looked for everywhere but in the working folder."""
    return [python or sys.executable, "-P", "-m", module, *arguments]


class SafeChildren:
    """A block in which all Python that is started imports nothing from the working folder, multiprocessing's too.

    A program that uses Tandem as a library keeps its own way of starting others.
    """

    def __enter__(self) -> None:
        self._before = os.environ.get(_SAFE_PATH)
        os.environ[_SAFE_PATH] = "1"

    def __exit__(self, *_: object) -> None:
        if self._before is None:
            del os.environ[_SAFE_PATH]
        else:
            os.environ[_SAFE_PATH] = self._before


def leave_working_folder() -> None:
    """Keep the working folder out of what this process and all that it starts import, where it is Tandem's own.

    That is where a module of Tandem's was started by `python -m`, before it has imported anything.
    """
    if not _is_started_by_module():
        return
    if not sys.flags.safe_path and sys.path[:1] == [_working_folder()]:
        # Only the entry that -m made: one of PYTHONPATH was asked for.
        del sys.path[0]
    # -P alone does not reach the children of multiprocessing, nor theirs.
    os.environ[_SAFE_PATH] = "1"


def user_environment() -> dict[str, str]:
    """The environment without what was added here: for a command of the user's, which may need its own folder."""
    given = {} if _GIVEN is None else {_SAFE_PATH: _GIVEN}
    return {name: value for name, value in os.environ.items() if name != _SAFE_PATH} | given


def _is_started_by_module() -> bool:
    # While Python looks for the module, the first argument is "-m", and the name stands before the others.
    if sys.argv[:1] != ["-m"]:
        return False
    name = sys.orig_argv[len(sys.orig_argv) - len(sys.argv)].partition(".")[0]
    return name == _PACKAGE or (name.startswith("-") and name.endswith(f"m{_PACKAGE}"))


def _working_folder() -> str:
    try:
        return os.getcwd()  # noqa: PTH109 - a loaded pathlib could be a stranger's already
    except OSError:
        return ""
