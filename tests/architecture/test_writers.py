"""What is written below a folder of strangers goes through no link, and no tree of theirs is walked by recursion."""

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from tests.architecture.origins import origins

SOURCE = Path(__file__).resolve().parents[2] / "src" / "tandem"
MODULES = sorted(path for path in SOURCE.rglob("*.py") if path.relative_to(SOURCE).parts[0] != "lab")
"""A lab's folder is root's own."""
BUILD = "into a build, from which tandem.artefact has removed what is not a plain file"
OWN = "a place of this user's own, outside of runs"
ALLOWED = {
    "artefact.py": "a scratch file of a name that nobody knows, and a lock that is open",
    "checkpoint/tensors.py": BUILD,
    "checkpoint/write.py": BUILD,
    "cli/converse.py": OWN,
    "cli/hosts.py": "a token of a name that nobody knows",
    "cli/translate.py": "the null device",
    "data/corpus/public/download.py": OWN,
    "data/corpus/public/fetch.py": BUILD,
    "data/corpus/public/transfer.py": OWN,
    "data/shards/part.py": "reads, with flags that have a name",
    "data/subword/learn.py": BUILD,
    "export/ctranslate2.py": BUILD,
    "export/huggingface.py": BUILD,
    "export/layout.py": BUILD,
    "export/tokenizer_json.py": BUILD,
    "files.py": "the one way to do it",
    "launch/identity.py": OWN,
    "launch/local.py": OWN,
    "launch/receive.py": BUILD,
    "launch/worker.py": "the null device",
    "lock.py": "a lock, opened without following links, and only if it is one",
    "observe/imports/place.py": "a folder that it has made itself",
    "observe/sinks/beside.py": "a file that must not be there, in a folder that is no link",
    "parallel/pulse.py": OWN,
    "runlog/logfile.py": "the log of this process, opened without following links",
    "train/disks.py": "a token of a name that nobody knows, which must not be there",
    "web/keys.py": "reads, with flags that have a name",
}
"""Modules that write or walk otherwise than by tandem.files and tandem.artefact, and why they may."""
WALKS = {"os.walk", "os.truncate", "shutil.rmtree", "shutil.copytree", "shutil.copy", "shutil.copyfile"}
NAMED_SO = {"rglob", "write_text", "write_bytes", "touch", "makedirs"}
MODE = re.compile("[rbt]*[wax+][rwaxbt+]*")
READ_ONLY = re.compile(r"os\.(O_RDONLY|O_PATH)(?!.*O_CREAT)")


def named(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


def writers(tree: ast.AST) -> Iterator[str]:
    """How a module writes, or walks over a tree, by itself."""
    names = origins(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (how := writer(node, names)):
            yield how


def writer(call: ast.Call, names: Mapping[str, str]) -> str:
    """How a call writes or walks; empty where it does not."""
    root, dot, rest = ast.unparse(call.func).partition(".")
    function = names.get(root, root) + dot + rest
    last = function.rpartition(".")[2]
    if function.startswith("tandem."):
        return ""  # what it does is looked at where it is
    if function == "os.open":
        return "" if READ_ONLY.search(ast.unparse(call)) else function
    if last == "open":
        given = [*call.args, *(each.value for each in call.keywords)]
        modes = [
            each.value for each in given if isinstance(each, ast.Constant) and isinstance(each.value, str)
        ]
        return last if any(MODE.fullmatch(mode) for mode in modes) else ""
    return function if function in WALKS else last if dot and last in NAMED_SO else ""


def found_in(path: Path) -> set[str]:
    return set(writers(ast.parse(path.read_text(encoding="utf-8"))))


def test_writing_and_walking_is_left_to_few() -> None:
    found = {named(path): sorted(how) for path in MODULES if (how := found_in(path))}
    assert found.keys() - ALLOWED.keys() == set(), "use tandem.files or tandem.artefact, or say here why not"
    assert ALLOWED.keys() - found.keys() == set(), "does so no longer: take it off the list"


@pytest.mark.parametrize(
    "code",
    [
        "path.write_text('')",
        "path.open('a', encoding='utf-8')",
        "open(path, mode='wb+')",
        "os.open(path, os.O_WRONLY | os.O_CREAT)",
        "os.open(path, flags)",
        "from shutil import rmtree as remove\nremove(path)",
        "for place in os.walk(path): pass",
        "list(path.rglob('*'))",
        "from os import truncate\ntruncate(path, 0)",
    ],
)
def test_a_new_writer_would_be_found(code: str) -> None:
    assert list(writers(ast.parse(code)))


@pytest.mark.parametrize(
    "code", ["path.open('rb')", "open_append(path)", "os.open(path, os.O_RDONLY | os.O_PATH)"]
)
def test_what_reads_is_left_alone(code: str) -> None:
    assert not list(writers(ast.parse(code)))
