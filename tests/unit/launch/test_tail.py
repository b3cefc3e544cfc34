import os
from pathlib import Path

import pytest

from tandem.launch.tail import Collector, Piece, Tail


def test_whole_lines_are_read_once_and_from_a_given_place_on(tmp_path: Path) -> None:
    file = tmp_path / "rank-00000.jsonl"
    file.write_text("old\nnew\ntor")
    tail = Tail(tmp_path, {file.name: 4})
    assert list(tail.pieces()) == [Piece(file=file.name, offset=8, text="new\n")]
    assert not list(tail.pieces())
    with file.open("a") as more:
        more.write("n\n")
    assert [piece.text for piece in tail.pieces()] == ["torn\n"]


def test_a_long_file_comes_in_parts_and_other_kinds_of_files_not_at_all(tmp_path: Path) -> None:
    lines = "".join(f"{number:09d}\n" for number in range(100_000))
    (tmp_path / "host-a.jsonl").write_text(lines)
    (tmp_path / "model.bin").write_text("x\n")
    tail, got = Tail(tmp_path, {}), []
    while pieces := list(tail.pieces()):
        got += [piece.text for piece in pieces]
    assert len(got) > 2
    assert "".join(got) == lines


def test_a_copy_goes_on_where_it_stopped(tmp_path: Path) -> None:
    before = Collector(tmp_path)
    before.take("disk", Piece(file="rank-00001.jsonl", offset=2, text="a\n"))
    before.save(at_once=True)
    later = Collector(tmp_path)
    assert later.offsets("disk") == {"rank-00001.jsonl": 2}
    assert later.offsets("other") == {}
    later.take("disk", Piece(file="rank-00001.jsonl", offset=4, text="b\n"))
    assert (tmp_path / "rank-00001.jsonl").read_text() == "a\nb\n"


def test_a_disk_that_was_lost_is_read_from_its_beginning(tmp_path: Path) -> None:
    (tmp_path / "rank-00000.jsonl").write_text("new\n")
    assert [piece.text for piece in Tail(tmp_path, {"rank-00000.jsonl": 5000}).pieces()] == ["new\n"]


def test_a_host_writes_into_the_log_alone(tmp_path: Path) -> None:
    folder = tmp_path / "log"
    for name in ("../outside.jsonl", "/tmp/outside.jsonl", "model.bin"):
        Collector(folder).take("h2", Piece(file=name, offset=2, text="a\n"))
    assert not list(tmp_path.rglob("*outside*"))
    assert not (folder / "model.bin").exists()


@pytest.mark.parametrize(
    "name",
    [
        "..",
        ".from-disk.json",
        ".jsonl",
        "a\0.jsonl",
        "a/b.jsonl",
        "x" * 300 + ".txt",
        "\ud800.txt",
        "",
        "a\n.txt",
    ],
)
def test_a_name_that_is_none_of_a_log_s_is_not_written(tmp_path: Path, name: str) -> None:
    Collector(tmp_path / "log").take("h2", Piece(file=name, offset=2, text="a\n"))
    assert not list(tmp_path.rglob("*"))


def test_nothing_is_written_through_a_link_and_no_pipe_is_waited_for(tmp_path: Path) -> None:
    folder, outside = tmp_path / "log", tmp_path / "outside"
    folder.mkdir()
    (folder / "rank-00000.jsonl").symlink_to(outside)
    os.mkfifo(folder / "rank-00001.jsonl")
    collector = Collector(folder)
    for number in range(2):
        collector.take("h2", Piece(file=f"rank-{number:05d}.jsonl", offset=2, text="a\n"))
    assert not outside.exists()


def test_a_host_cannot_fill_the_folder_with_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tandem.launch.tail._MOST_FILES", 3)
    collector = Collector(tmp_path)
    for number in range(9):
        collector.take("h2", Piece(file=f"{number}.txt", offset=2, text="a\n"))
    collector.take("h2", Piece(file="0.txt", offset=4, text="b\n"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0.txt", "1.txt", "2.txt"]
    assert (tmp_path / "0.txt").read_text() == "a\nb\n"


def test_text_that_is_no_unicode_is_kept_as_far_as_it_is(tmp_path: Path) -> None:
    Collector(tmp_path).take("h2", Piece(file="0.txt", offset=2, text="a\ud800\n"))
    assert (tmp_path / "0.txt").read_text() == "a?\n"


@pytest.mark.parametrize("held", ["[" * 100_000, "[]", "7", '{"a.txt": "x", "b.txt": -5}', "\xff"])
def test_what_was_written_down_of_a_disk_may_be_damaged(tmp_path: Path, held: str) -> None:
    (tmp_path / ".from-disk.json").write_text(held, encoding="latin-1")
    assert Collector(tmp_path).offsets("disk") == {}
