"""Python processes, started in a folder full of modules that must not run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tandem.process import python_command

# What the interpreter itself has loaded before it comes to look for a module: too late for anybody else's.
MODULES = ("psutil", "yaml", "signal", "torch", "numpy", "json", "argparse", "orjson", "typer", "selectors")

SOURCE = Path(__file__).parents[2] / "src"
STARTED = sorted(
    ".".join(file.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__main__")
    for file in SOURCE.rglob("*.py")
    if '__name__ == "__main__"' in file.read_text(encoding="utf-8")
)

SPAWNS = """
import multiprocessing
import os
from tandem.process import SafeChildren
if __name__ == "__main__":
    context = multiprocessing.get_context({method!r})
    process = context.Process(target=print)
    with SafeChildren():
        process.start()
    process.join()
    assert process.exitcode == 0
    assert "PYTHONSAFEPATH" not in os.environ
"""


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    for name in MODULES:
        (tmp_path / f"{name}.py").write_text(
            f"open({str(tmp_path / 'ran')!r}, 'a').write({name!r} + '\\n')\nraise SystemExit('a stranger')\n"
        )
    return tmp_path


def ran(folder: Path) -> str:
    file = folder / "ran"
    return file.read_text() if file.exists() else ""


def environment(**more: str) -> dict[str, str]:
    ours = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    return ours | more


@pytest.mark.parametrize("start", [["-m", "tandem"], ["-mtandem"], ["-um", "tandem"], ["-P", "-m", "tandem"]])
def test_the_command_as_a_module_imports_nothing_from_the_working_folder(
    hostile: Path, start: list[str]
) -> None:
    command = [sys.executable, *start, "--version"]
    done = subprocess.run(
        command, cwd=hostile, env=environment(), capture_output=True, text=True, check=False
    )
    assert ran(hostile) == ""
    assert done.stdout.startswith("tandem "), done.stderr


@pytest.mark.parametrize("module", STARTED)
def test_no_module_that_is_run_imports_from_the_working_folder(hostile: Path, module: str) -> None:
    subprocess.run(
        [sys.executable, "-m", module, "--help"],
        cwd=hostile,
        env=environment(),
        capture_output=True,
        stdin=subprocess.DEVNULL,
        check=False,
        timeout=60,
    )
    assert ran(hostile) == ""


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_children_of_multiprocessing_import_nothing_from_the_working_folder(
    hostile: Path, tmp_path_factory: pytest.TempPathFactory, method: str
) -> None:
    program = tmp_path_factory.mktemp("program") / "program.py"
    program.write_text(SPAWNS.format(method=method))
    done = subprocess.run(
        [sys.executable, program], cwd=hostile, env=environment(), capture_output=True, text=True, check=False
    )
    assert ran(hostile) == ""
    assert done.returncode == 0, done.stderr


def test_the_path_that_was_asked_for_stays(tmp_path: Path) -> None:
    # The folder stands twice in the path: once for -m, and once because it was named.
    (tmp_path / "sitecustomize.py").write_text(
        "import atexit, sys\natexit.register(lambda: print(sys.path))\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "tandem", "--version"],
        cwd=tmp_path,
        env=environment(PYTHONPATH=str(tmp_path)),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.count(repr(str(tmp_path))) == 1


def test_a_library_that_imports_tandem_keeps_its_own_path(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("import tandem, os, sys\nimport yours\n")
    (tmp_path / "yours.py").write_text("import os\nprint(os.environ.get('PYTHONSAFEPATH'))\n")
    command = [sys.executable, "-m", "mine"]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=True
    )
    assert done.stdout == "None\n"


def test_a_command_names_the_python_and_the_safe_path() -> None:
    assert python_command("m", "a", python="/opt/python") == ["/opt/python", "-P", "-m", "m", "a"]
