"""New code opens no door: what listens, and how Python is started, is in a few modules that are known."""

import ast
from collections.abc import Callable, Iterator
from itertools import zip_longest
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "tandem"

LISTENERS = {
    "web/listening.py": "the dashboard and the server, on loopback unless asked otherwise",
    "web/server.py": "serves what listening.py has opened",
    "web/connection.py": "how such a connection is read",
    "launch/report.py": "a socket file in a folder of this user's alone",
    "launch/first.py": "a socket file in a folder of this user's alone",
    "launch/environment.py": "tries whether the port of a foreign launcher is free, and lets go of it",
    "launch/far.py": "finds a free port, and lets go of it",
    "launch/doctor/far.py": "finds a free port, and lets go of it",
    "launch/doctor/listener.py": "measures links between hosts, for those who show a token",
    "lab/wire.py": "packets of a lab's own network, no port",
    "launch/mesh.py": "one port a host beyond loopback, for hosts that show a key of the same start",
    "parallel/meeting.py": "where the ranks of a run meet: on loopback, or at the address of one interface",
}
"""Modules that may listen, and for whom. Nothing else may: who needs a port uses one of these."""

PYTHON_NAMED = {
    "process.py": "starts all of Tandem's own processes",
    "launch/ssh.py": "the Python of another host, started by way of process.py",
    "cli/launch.py": "the Python of a cluster's nodes, started by way of process.py",
}
"""Modules that may name the Python that runs them, other than with -P right behind it."""

_LISTENING_CALLS = {
    "HTTPServer",
    "TCPServer",
    "TCPStore",
    "ThreadingHTTPServer",
    "ThreadingTCPServer",
    "UDPServer",
    "UnixStreamServer",
    "create_server",
    "create_unix_server",
    "init_process_group",
    "make_server",
    "start_server",
    "start_unix_server",
}
_LISTENING_METHODS = {"bind", "listen"}
_LISTENING_IMPORTS = {"http.server", "socketserver", "uvicorn", "wsgiref", "xmlrpc"}
_CHILDREN = {"ProcessPoolExecutor", "get_context", "forkserver", "set_start_method"}

Finder = Callable[[ast.Module], Iterator[str]]


def find_listeners(tree: ast.Module) -> Iterator[str]:
    """Calls and imports that open a port or a socket to others."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = _name(node.func)
            is_method = isinstance(node.func, ast.Attribute)
            if name in _LISTENING_CALLS or (is_method and name in _LISTENING_METHODS):
                yield f"line {node.lineno}: {name}"
        for module in _imported(node):
            if any(module == each or module.startswith(f"{each}.") for each in _LISTENING_IMPORTS):
                yield f"imports {module}"


def find_unsafe_python(tree: ast.Module) -> Iterator[str]:
    """Commands that run Python without -P: it would import from the working folder."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.List | ast.Tuple):
            continue
        words = node.elts
        flags = [each.value if isinstance(each, ast.Constant) else None for each in words]
        if "-m" in flags[1:] and flags[flags.index("-m") - 1] != "-P":
            yield f"line {node.lineno}: -m without -P before it"
        for word, following in zip_longest(words, flags[1:]):
            if _is_own_python(word) and following != "-P":
                yield f"line {node.lineno}: sys.executable without -P behind it"


def find_named_python(tree: ast.Module) -> Iterator[str]:
    """The name of the running Python elsewhere than in a command that is written out."""
    in_commands = {
        word for node in ast.walk(tree) if isinstance(node, ast.List | ast.Tuple) for word in node.elts
    }
    for node in ast.walk(tree):
        if _is_own_python(node) and node not in in_commands:
            yield f"line {getattr(node, 'lineno', 0)}: sys.executable"


def find_unsafe_children(tree: ast.Module) -> Iterator[str]:
    """Children of multiprocessing in a module that does not keep them out of the working folder."""
    names = {_name(node) for node in ast.walk(tree) if isinstance(node, ast.Name | ast.Attribute)}
    if (used := names & _CHILDREN) and "SafeChildren" not in names:
        yield f"{', '.join(sorted(used))} without SafeChildren"
    for node in ast.walk(tree):
        for module in _imported(node):
            if module.startswith("torch.multiprocessing"):
                yield f"imports {module}"


def _name(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module:
        return [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return []


def _is_own_python(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and ast.unparse(node) == "sys.executable"


def found(find: Finder) -> dict[str, list[str]]:
    """What is found, by module."""
    everywhere = {
        path.relative_to(SOURCE).as_posix(): list(find(ast.parse(path.read_text(encoding="utf-8"))))
        for path in sorted(SOURCE.rglob("*.py"))
    }
    return {module: places for module, places in everywhere.items() if places}


def test_nothing_listens_but_what_is_known_to() -> None:
    listening = found(find_listeners)
    assert {module: places for module, places in listening.items() if module not in LISTENERS} == {}
    assert LISTENERS.keys() - listening.keys() == set(), "no longer listens: take it off the list"


def test_no_python_is_started_that_imports_from_the_working_folder() -> None:
    assert found(find_unsafe_python) == {}


def test_the_running_python_is_named_by_those_alone_that_start_it_safely() -> None:
    assert found(find_named_python).keys() == PYTHON_NAMED.keys()


def test_no_child_of_multiprocessing_imports_from_the_working_folder() -> None:
    assert found(find_unsafe_children) == {}


@pytest.mark.parametrize(
    ("find", "code"),
    [
        (find_listeners, "s.bind(('', 0))"),
        (find_listeners, "s.listen()"),
        (find_listeners, "socket.create_server(('', 1))"),
        (find_listeners, "from socket import create_server\ncreate_server(('', 1))"),
        (find_listeners, "await asyncio.start_server(f, 'h', 1)"),
        (find_listeners, "torch.distributed.TCPStore('h', 1)"),
        (find_listeners, "import http.server"),
        (find_listeners, "from http import server"),
        (find_listeners, "from uvicorn import Server"),
        (find_unsafe_python, "run([sys.executable, '-m', 'x'])"),
        (find_unsafe_python, "run([sys.executable, '-c', 'x'])"),
        (find_unsafe_python, "run([sys.executable])"),
        (find_unsafe_python, "run(['python', '-m', 'x'])"),
        (find_unsafe_python, "run((python, '-u', '-m', 'x'))"),
        (find_named_python, "run(sys.executable + ' -m x', shell=True)"),
        (find_named_python, "python = sys.executable"),
        (find_unsafe_children, "multiprocessing.get_context('spawn')"),
        (find_unsafe_children, "with ProcessPoolExecutor() as pool: pass"),
        (find_unsafe_children, "import torch.multiprocessing as mp"),
        (find_unsafe_children, "from torch import multiprocessing"),
    ],
)
def test_a_new_door_would_be_found(find: Finder, code: str) -> None:
    assert list(find(ast.parse(code)))


@pytest.mark.parametrize(
    "code",
    [
        "listen('127.0.0.1', 0)",
        "[sys.executable, '-P', '-m', 'x', '-m']",
        "['sh', '-c', 'x']",
        "import http\nimport socket",
    ],
)
def test_what_is_safe_is_left_alone(code: str) -> None:
    tree = ast.parse(code)
    finders = (find_listeners, find_unsafe_python, find_named_python, find_unsafe_children)
    assert not [place for find in finders for place in find(tree)]
