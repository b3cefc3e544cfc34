"""Ways in for strangers are few, and all of them known."""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from tests.architecture.origins import origins, used

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
RUNNING = {
    *(
        "pickle.load",
        "pickle.loads",
        "pickle.Unpickler",
        "torch.load",
        "joblib.load",
        "dill.load",
        "dill.loads",
    ),
    *("marshal.load", "marshal.loads", "shelve.open", "eval", "exec", "builtins.eval", "builtins.exec"),
}
"""What makes code of data."""
WHOLE_NAMES = {"os.open", "lzma.open", "gzip.open", "bz2.open", "self._file.open"}


def named(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


def openers(tree: ast.AST) -> Iterator[str]:
    """How the calls of a module open files for reading, whatever it calls what they use."""
    names = origins(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (how := opener(node, names)):
            yield how


def opener(call: ast.Call, names: Mapping[str, str]) -> str:
    """How a call opens a file for reading; empty where it does not."""
    root, dot, rest = ast.unparse(call.func).partition(".")
    function = names.get(root, root) + dot + rest
    last = function.rpartition(".")[2]
    if last not in OPENERS or function.startswith("tandem."):
        return ""
    mode = next(
        (each.value for each in call.args if isinstance(each, ast.Constant) and isinstance(each.value, str)),
        "r",
    )
    if last == "open" and set(mode) & set("wxa") and "+" not in mode:
        return ""
    return function if function in WHOLE_NAMES else last


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", MODULES, ids=named)
def test_files_of_strangers_are_opened_by_one_module(path: Path) -> None:
    found = {(named(path), how) for how in openers(tree_of(path))}
    assert not found - ALLOWED.keys(), "open it with tandem.files, or say here why not"


def test_no_exception_outlives_its_reason() -> None:
    found = {(named(path), how) for path in MODULES for how in openers(tree_of(path))}
    assert found == ALLOWED.keys()


def yaml_loaders(tree: ast.AST) -> set[str]:
    """What a module uses of those that parse YAML."""
    return {name for _, name in used(tree) if name.startswith("yaml.") and "load" in name.lower()}


def unpicklers(tree: ast.AST) -> set[str]:
    """What a module uses of those that run what they read."""
    return {name for _, name in used(tree)} & RUNNING


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=named)
def test_no_yaml_is_parsed_without_limits(path: Path) -> None:
    # The base loader makes nothing of values: their number and kinds are looked at before they become any.
    allowed = {"yaml.BaseLoader"} if named(path) == "config/document.py" else set()
    assert {name for name in yaml_loaders(tree_of(path)) if name not in allowed} == set()


@pytest.mark.parametrize("path", MODULES, ids=named)
def test_json_of_files_is_parsed_with_limits(path: Path) -> None:
    loads = {name for _, name in used(tree_of(path))} & {"json.load", "json.loads"}
    # A request's body is bounded before it is parsed, and its depth is an error of its own there.
    assert not loads or named(path) == "serve/body.py"


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=named)
def test_nothing_is_unpickled(path: Path) -> None:
    assert unpicklers(tree_of(path)) == set()


@pytest.mark.parametrize(
    "code",
    [
        "open(path)",
        "open(path, 'r+')",
        "Path(path).open()",
        "path.read_text()",
        "from os import open as o\no(path, 0)",
        "import gzip as g\ng.open(path)",
        "from io import open as o\no(path)",
    ],
)
def test_a_file_that_is_opened_would_be_found(code: str) -> None:
    assert list(openers(ast.parse(code)))


@pytest.mark.parametrize(
    "code",
    [
        "import yaml as y\ny.load(text)",
        "from yaml import safe_load as read\nread(text)",
        "import yaml\nread = yaml.full_load",
        "import yaml\ngetattr(yaml, 'load')(text)",
        "from yaml import CSafeLoader",
    ],
)
def test_a_parser_of_yaml_would_be_found(code: str) -> None:
    assert yaml_loaders(ast.parse(code))


@pytest.mark.parametrize(
    "code",
    [
        "import pickle as p\np.loads(data)",
        "from torch import load\nload(path)",
        "from pickle import Unpickler as U",
        "import builtins\nbuiltins.eval(text)",
        "exec(text)",
        "import marshal\nmarshal.loads(data)",
        "import shelve\nshelve.open(path)",
    ],
)
def test_what_runs_what_it_reads_would_be_found(code: str) -> None:
    assert unpicklers(ast.parse(code))
