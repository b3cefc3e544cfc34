"""Ways in for strangers are few, and all of them known."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "tandem"
READING = (
    "observe",
    "runlog",
    "checkpoint",
    "artefact.py",
    "lock.py",
    "config",
    "translate",
    "export",
    "serve",
    "web",
    "cli",
)
"""What reads runs, models, exports and recipes."""
MODULES = sorted(path for path in SOURCE.rglob("*.py") if path.relative_to(SOURCE).parts[0] in READING)
ALLOWED = {
    ("artefact.py", "os.open"): "flushes what it has written itself",
    ("cli/hosts.py", "read_text"): "a file of hosts that the user names",
    ("cli/launch.py", "read_text"): "a recipe that the user names, parsed with limits behind it",
    ("cli/score.py", "read_bytes"): "texts that the user names, which may come through a pipe",
    ("cli/translate.py", "open"): "prefixes that the user names, which may come through a pipe",
    ("cli/translate.py", "os.open"): "the null device",
    ("lock.py", "os.open"): "a lock, opened without following links and without waiting",
    ("lock.py", "read_text"): "the system's table of locks",
    ("observe/verdicts/sections.py", "read_text"): "a file of the package",
    ("observe/imports/console.py", "lzma.open"): "unpacks a file that is open",
    ("observe/imports/console.py", "gzip.open"): "unpacks a file that is open",
    ("observe/imports/console.py", "bz2.open"): "unpacks a file that is open",
    ("runlog/logfile.py", "os.open"): "the log of this process, opened without following links",
    ("runlog/writer.py", "self._file.open"): "opens no path",
    ("web/files.py", "read_bytes"): "a file of the package",
    ("web/keys.py", "os.open"): "a file of keys that the user names, opened without following links",
    ("web/keys.py", "open"): "the same file, which is open",
    ("translate/testset.py", "read_text"): "a test set of sacreBLEU's",
}
"""Where a file is opened for reading otherwise than by tandem.files, and why it may be."""
OPENERS = {"open", "read_text", "read_bytes"}
WHOLE_NAMES = {"os.open", "lzma.open", "gzip.open", "bz2.open", "self._file.open"}


def named(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


def calls(path: Path) -> Iterator[ast.Call]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def opener(call: ast.Call) -> str:
    """How a call opens a file for reading; empty where it does not."""
    function = ast.unparse(call.func)
    last = function.rpartition(".")[2]
    if last not in OPENERS:
        return ""
    mode = next(
        (each.value for each in call.args if isinstance(each, ast.Constant) and isinstance(each.value, str)),
        "r",
    )
    if last == "open" and set(mode) & set("wxa") and "+" not in mode:
        return ""
    return function if function in WHOLE_NAMES else last


@pytest.mark.parametrize("path", MODULES, ids=named)
def test_files_of_strangers_are_opened_by_one_module(path: Path) -> None:
    found = {(named(path), how) for call in calls(path) if (how := opener(call))}
    assert not found - ALLOWED.keys(), "open it with tandem.files, or say here why not"


def test_no_exception_outlives_its_reason() -> None:
    found = {(named(path), how) for path in MODULES for call in calls(path) if (how := opener(call))}
    assert found == ALLOWED.keys()


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=named)
def test_no_yaml_is_parsed_without_limits(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    loaders = {
        ast.unparse(node)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "yaml"
        if "load" in node.attr.lower()
    }
    # The base loader makes nothing of values: their number and kinds are looked at before they become any.
    assert loaders <= ({"yaml.BaseLoader"} if named(path) == "config/document.py" else set())


@pytest.mark.parametrize("path", MODULES, ids=named)
def test_json_of_files_is_parsed_with_limits(path: Path) -> None:
    loads = [
        ast.unparse(call) for call in calls(path) if ast.unparse(call.func) in {"json.load", "json.loads"}
    ]
    # A request's body is bounded before it is parsed, and its depth is an error of its own there.
    assert not loads or named(path) == "serve/body.py"


def test_nothing_is_unpickled() -> None:
    for path in SOURCE.rglob("*.py"):
        functions = {ast.unparse(call.func) for call in calls(path)}
        assert not functions & {"pickle.load", "pickle.loads", "torch.load", "eval", "exec"}, path
