"""Opening files that a stranger may have put there."""

import os
import socket
from pathlib import Path

import pytest
from tests.deep import DEPTH, deep_below

from tandem.files import (
    UnfitFileError,
    data_end,
    hole_bytes,
    keep_plain,
    make_folder,
    next_data,
    open_append,
    open_new,
    open_regular,
    parse_json,
    read_bounded,
    read_json,
    remove_tree,
    require_regular,
    tree_bytes,
    walk,
)

pytestmark = pytest.mark.timeout(20)  # a pipe that is waited for would never end


def strange(folder: Path) -> dict[str, Path]:
    """One of everything that is no plain file."""
    os.mkfifo(folder / "pipe")
    (folder / "to").write_text("elsewhere")
    (folder / "link").symlink_to("to")
    (folder / "dangling").symlink_to("nothing")
    (folder / "device").symlink_to("/dev/zero")
    (folder / "folder").mkdir()
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(os.path.relpath(folder / "socket"))
    return {name: folder / name for name in ("pipe", "link", "dangling", "device", "folder", "socket")}


@pytest.mark.parametrize("name", ["pipe", "link", "dangling", "device", "folder", "socket"])
def test_what_is_no_plain_file_is_refused_at_once(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = strange(tmp_path)[name]
    for below in (None, tmp_path):
        with pytest.raises(UnfitFileError, match=str(path)) as caught:
            open_regular(path, below=below)
        assert str(caught.value) == f"{caught.value.strerror}."
    with pytest.raises((UnfitFileError, IsADirectoryError)), open_append(path):
        pass


def test_a_device_is_refused_also_where_links_are_allowed(tmp_path: Path) -> None:
    (tmp_path / "device").symlink_to("/dev/zero")
    with pytest.raises(UnfitFileError, match="not a plain file"):
        require_regular(tmp_path / "device", links=True)


def test_a_name_that_the_user_gave_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"text")
    (tmp_path / "link").symlink_to("file")
    assert read_bounded(tmp_path / "link", 10, links=True) == b"text"


def test_a_linked_folder_is_refused_below_the_one_that_is_named(tmp_path: Path) -> None:
    (tmp_path / "run/log").mkdir(parents=True)
    (tmp_path / "run/log/file").write_bytes(b"text")
    (tmp_path / "run/other").symlink_to("log")
    (tmp_path / "linked").symlink_to("run")
    assert read_bounded(tmp_path / "linked/log/file", 10, below=tmp_path / "linked") == b"text"
    with pytest.raises(UnfitFileError, match="other is a link"):
        open_regular(tmp_path / "run/other/file", below=tmp_path / "run")


def test_a_file_that_is_not_there_is_still_an_error_of_its_own(tmp_path: Path) -> None:
    for below in (None, tmp_path):
        with pytest.raises(FileNotFoundError):
            open_regular(tmp_path / "none", below=below)


def test_no_more_is_read_than_a_file_should_hold(tmp_path: Path) -> None:
    path = tmp_path / "huge"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(UnfitFileError, match="more than 1,000 bytes"):
        read_bounded(path, 1000)
    path.write_bytes(b"x" * 1000)
    assert len(read_bounded(path, 1000)) == 1000


def test_a_hole_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        file.write(b"a" * 4096)
        file.seek(1 << 40)
        file.write(b"b")
        file.truncate(1 << 41)
    with open_regular(path) as opened:
        opened.read(10)
        opened.seek(0)
        assert next_data(opened, 0) == 0
        assert next_data(opened, 1 << 20) == 1 << 40
        assert next_data(opened, 1 << 41) == 1 << 41
        assert opened.read(4097) == b"a" * 4096 + b"\0"


def test_a_file_without_holes_is_data_up_to_its_end(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"text")
    with open_regular(tmp_path / "file") as opened:
        assert [next_data(opened, place) for place in range(5)] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 5000 + "1" + "}" * 5000, "[" * 150 + "]" * 150])
def test_deep_json_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match="too deeply"):
        parse_json(text)


def test_plain_json_is_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b'{"a": [1, {"b": null}]}')
    assert read_json(tmp_path / "file") == {"a": [1, {"b": None}]}


def test_a_folder_to_write_in_is_no_link(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "run").mkdir()
    (tmp_path / "run/report").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UnfitFileError, match="report is a link"):
        make_folder(tmp_path / "run/report")
    (tmp_path / "linked").symlink_to("run")
    make_folder(tmp_path / "linked/made")
    make_folder(tmp_path / "linked/made")
    assert (tmp_path / "run/made").is_dir()


def test_what_is_appended_stands_behind_what_was_there(tmp_path: Path) -> None:
    for text in (b"a", b"b"):
        with open_append(tmp_path / "file") as file:
            file.write(text)
    assert (tmp_path / "file").read_bytes() == b"ab"


def test_every_folder_below_a_run_is_made_and_none_through_a_link(tmp_path: Path) -> None:
    make_folder(tmp_path / "run/a/b", parents=True, below=tmp_path / "run")
    assert (tmp_path / "run/a/b").is_dir()
    (tmp_path / "run/link").symlink_to(tmp_path)
    with pytest.raises(UnfitFileError):
        make_folder(tmp_path / "run/link/b", below=tmp_path / "run")
    assert not (tmp_path / "b").exists()


def test_a_new_file_takes_the_place_of_nothing(tmp_path: Path) -> None:
    with open_new(tmp_path / "new") as file:
        file.write(b"held")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name in ("new", "link"):
        with pytest.raises(FileExistsError), open_new(tmp_path / name):
            pass
    assert (tmp_path / "new").read_bytes() == b"held"
    assert not (tmp_path / "nowhere").exists()


def test_a_file_is_appended_to_below_no_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(UnfitFileError), open_append(tmp_path / "link/file", below=tmp_path):
        pass
    assert not any((tmp_path / "real").iterdir())


def test_a_tree_is_walked_however_deep_and_through_no_link(tmp_path: Path) -> None:
    with deep_below(tmp_path) as deep:
        (deep / "file").write_bytes(b"four")
        (tmp_path / "a/link").symlink_to(tmp_path)
        assert sum(entry.is_dir(follow_symlinks=False) for entry in walk(tmp_path)) == DEPTH
        keep_plain(tmp_path)
        assert tree_bytes(tmp_path) == 4
        with pytest.raises(UnfitFileError, match="lie too deep"):
            remove_tree(tmp_path / "a")


def test_where_the_data_of_a_file_end_and_how_much_of_it_is_a_hole(tmp_path: Path) -> None:
    with (tmp_path / "file").open("wb+") as file:
        assert (data_end(file.fileno()), hole_bytes(file.fileno())) == (0, 0)
        file.write(b"x" * 8192)
        file.truncate(1 << 30)
        file.flush()
        assert (data_end(file.fileno()), hole_bytes(file.fileno())) == (8192, (1 << 30) - 8192)
        assert file.tell() == 8192
