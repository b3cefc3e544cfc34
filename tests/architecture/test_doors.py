"""New code opens no door: what listens, and how Python is started, is in a few modules that are known."""

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import zip_longest
from pathlib import Path

import pytest
from tests.architecture.origins import imported, origins, used

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
    "launch/doctor/listener.py": "measures links between hosts, for those who prove that they know a token",
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

ENDLESS_NAMES = {
    "observe/sinks/tool.py": "one of the tools of a table",
    "export/huggingface_engine.py": "libraries of a list, to say which is missing",
}
"""Modules that import by a computed name, and what names those are."""

PROCESSES = {
    "lab/enter.py": "the first process of a host, forked before anything is imported",
    "lab/inside.py": "the user's own command in a host, with the user's own environment",
    "cli/lab.py": "the user's own command in a host, with the user's own environment",
    "launch/doctor/machine.py": "reads the version of torch from the file of the torch that is installed",
}
"""Modules that start something otherwise than by subprocess, and what."""

_LISTENING_NAMES = {
    "BaseManager",
    "HTTPServer",
    "SyncManager",
    "TCPServer",
    "TCPStore",
    "ThreadingHTTPServer",
    "ThreadingTCPServer",
    "UDPServer",
    "UnixStreamServer",
    "bind",
    "create_datagram_endpoint",
    "create_server",
    "create_unix_server",
    "init_process_group",
    "init_rpc",
    "listen",
    "make_server",
    "run_simple",
    "start_server",
    "start_unix_server",
}
_LISTENING_WHOLE_NAMES = {"multiprocessing.Manager", "multiprocessing.connection.Listener"}
_LISTENING_IMPORTS = {
    *("aiohttp.web", "flask", "grpc", "gunicorn", "http.server", "hypercorn", "multiprocessing.managers"),
    *("socketserver", "torch.distributed.elastic", "torch.distributed.launch", "torch.distributed.launcher"),
    *(
        "torch.distributed.rpc",
        "torch.distributed.run",
        "tornado",
        "uvicorn",
        "werkzeug",
        "wsgiref",
        "xmlrpc",
    ),
    "zmq",
}
_CHILDREN = {"ProcessPoolExecutor", "get_context", "forkserver", "set_start_method"}
_WHOLE_CHILDREN = {"multiprocessing.Process", "multiprocessing.Pool"}
_STARTS = re.compile(
    r"os\.(exec|spawn|posix_spawn|system|popen|fork)\w*|(pty|runpy)\.\w+|asyncio\.create_subprocess_\w+"
    r"|subprocess\.get\w*output"
)
_PYTHON = re.compile(r"(.*/)?(python|pypy)[\d.]*")
_PYTHON_LINE = re.compile(r"\bpython[\d.]*(\s+-\w+)*\s+-\w*[mc]\b")

Finder = Callable[[ast.Module], Iterator[str]]


def find_listeners(tree: ast.Module) -> Iterator[str]:
    """Names and imports of what opens a port or a socket to others."""
    for line, name in used(tree):
        owner, _, last = name.rpartition(".")
        # Functions of our own may have such a name: what they use is looked at where they are.
        is_foreign = (owner or last not in {"bind", "listen"}) and not name.startswith("tandem.")
        if (is_foreign and last in _LISTENING_NAMES) or name in _LISTENING_WHOLE_NAMES:
            yield f"line {line}: {name}"
    for module in imported(tree):
        is_listener = module in _LISTENING_WHOLE_NAMES or module.rpartition(".")[2] in _LISTENING_NAMES
        if is_listener and not module.startswith("tandem."):
            yield f"imports {module}"
        if any(module == each or module.startswith(f"{each}.") for each in _LISTENING_IMPORTS):
            yield f"imports {module}"


def find_endless_imports(tree: ast.Module) -> Iterator[str]:
    """Imports of what is known only when they are made."""
    yield from ("imports by a computed name" for module in imported(tree) if not module)


def find_processes(tree: ast.Module) -> Iterator[str]:
    """Processes and programs that are started without an argument list for `subprocess`."""
    yield from (f"line {line}: {name}" for line, name in used(tree) if _STARTS.fullmatch(name))
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == "shell":
            yield f"line {node.lineno}: shell"


def find_unsafe_python(tree: ast.Module) -> Iterator[str]:
    """Commands that run Python without -P: it would import from the working folder."""
    names = origins(tree)
    for node in ast.walk(tree):
        if not isinstance(node, ast.List | ast.Tuple):
            continue
        words = node.elts
        flags = [each.value if isinstance(each, ast.Constant) else None for each in words]
        if "-m" in flags[1:] and flags[flags.index("-m") - 1] != "-P":
            yield f"line {node.lineno}: -m without -P before it"
        for word, following in zip_longest(words, flags[1:]):
            if (_is_own_python(word, names) or _is_python(word)) and following != "-P":
                yield f"line {node.lineno}: Python without -P behind it"
    for node in ast.walk(tree):
        text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
        # Tandem itself leaves the working folder first thing, and tells so in its help.
        if _PYTHON_LINE.match(text) and " -P" not in text and not text.startswith("python -m tandem"):
            yield f"line {getattr(node, 'lineno', 0)}: a line that runs Python without -P"


def find_named_python(tree: ast.Module) -> Iterator[str]:
    """The name of the running Python elsewhere than in a command that is written out."""
    names = origins(tree)
    in_commands = {
        word for node in ast.walk(tree) if isinstance(node, ast.List | ast.Tuple) for word in node.elts
    }
    for node in ast.walk(tree):
        if _is_own_python(node, names) and node not in in_commands:
            yield f"line {getattr(node, 'lineno', 0)}: sys.executable"


def find_unsafe_children(tree: ast.Module) -> Iterator[str]:
    """Children of multiprocessing in a module that does not keep them out of the working folder."""
    names = {name for _, name in used(tree)}
    children = {name for name in names if name.rpartition(".")[2] in _CHILDREN} | (names & _WHOLE_CHILDREN)
    if children and "tandem.process.SafeChildren" not in names:
        yield f"{', '.join(sorted(children))} without SafeChildren"
    for module in imported(tree):
        if module.startswith(("torch.multiprocessing", "joblib")):
            yield f"imports {module}"


def _is_own_python(node: ast.AST, names: Mapping[str, str]) -> bool:
    if not isinstance(node, ast.Attribute | ast.Name) or not isinstance(node.ctx, ast.Load):
        return False
    name = ast.unparse(node)
    root, _, rest = name.partition(".")
    whole = f"{names.get(root, root)}.{rest}".rstrip(".")
    return whole in {"sys.executable", "sys._base_executable"}


def _is_python(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Constant) and isinstance(node.value, str) and bool(_PYTHON.fullmatch(node.value))
    )


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


def test_names_are_computed_for_few_imports() -> None:
    assert found(find_endless_imports).keys() == ENDLESS_NAMES.keys()


def test_processes_are_started_by_argument_lists() -> None:
    assert found(find_processes).keys() == PROCESSES.keys()


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
        (find_listeners, "from socket import create_server as c\nc(('', 1))"),
        (find_listeners, "import socket as s\nopen_port = s.create_server\nopen_port(('', 1))"),
        (find_listeners, "functools.partial(socket.create_server, ('', 1))"),
        (find_listeners, "getattr(s, 'bind')(('', 0))"),
        (find_listeners, "from asyncio import start_server as serve"),
        (find_listeners, "loop.create_datagram_endpoint(f)"),
        (find_listeners, "import uvicorn as u\nu.run(app)"),
        (find_listeners, "import_module('http.server')"),
        (find_listeners, "from importlib import import_module as load\nload('socketserver')"),
        (find_listeners, "__import__('uvicorn')"),
        (find_listeners, "from multiprocessing.connection import Listener"),
        (find_listeners, "import multiprocessing as mp\nmp.Manager()"),
        (find_listeners, "from torch.distributed import TCPStore as Values\nValues('h', 1)"),
        (find_listeners, "from torch.distributed.launcher import elastic_launch"),
        (find_endless_imports, "importlib.import_module(name)"),
        (find_processes, "os.execvp(command[0], command)"),
        (find_processes, "from os import system as call\ncall('x')"),
        (find_processes, "os.posix_spawn(p, a, e)"),
        (find_processes, "await asyncio.create_subprocess_exec('x')"),
        (find_processes, "from subprocess import Popen as P\nP('x', shell=True)"),
        (find_processes, "runpy.run_module('x')"),
        (find_unsafe_python, "run([sys.executable, '-m', 'x'])"),
        (find_unsafe_python, "from subprocess import Popen as P\nP(['python3', 'x.py'])"),
        (find_unsafe_python, "from sys import executable as e\nrun([e, 'x'])"),
        (find_unsafe_python, "run(['/usr/bin/python3.12', '-c', 'x'])"),
        (find_unsafe_python, "run('python -u -m x'.split())"),
        (find_unsafe_python, "run([sys.executable, '-c', 'x'])"),
        (find_unsafe_python, "run([sys.executable])"),
        (find_unsafe_python, "run(['python', '-m', 'x'])"),
        (find_unsafe_python, "run((python, '-u', '-m', 'x'))"),
        (find_named_python, "run(sys.executable + ' -m x', shell=True)"),
        (find_named_python, "python = sys.executable"),
        (find_named_python, "from sys import executable\npython = executable"),
        (find_unsafe_children, "multiprocessing.get_context('spawn')"),
        (find_unsafe_children, "with ProcessPoolExecutor() as pool: pass"),
        (find_unsafe_children, "import multiprocessing as mp\nmp.Process(target=f).start()"),
        (find_unsafe_children, "from multiprocessing import get_context as context\ncontext('spawn')"),
        (find_unsafe_children, "from concurrent.futures import ProcessPoolExecutor as Pool\nPool()"),
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
    finders = (find_listeners, find_processes, find_unsafe_python, find_named_python, find_unsafe_children)
    assert not [place for find in finders for place in find(tree)]
