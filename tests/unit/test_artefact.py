"""Folders with a manifest: whole or absent, whatever happens in between."""

import json
import os
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from tandem.artefact import (
    Build,
    Manifest,
    building,
    fingerprint,
    is_name,
    maybe_fresh,
    maybe_partial,
    parse_manifest,
    read_manifest,
    replacing,
    settle,
    sha256_file,
    verify,
    write_atomic,
)
from tandem.errors import TandemError


def make(
    folder: Path, *, mark: str = "a", text: str = "hello", version: int = 1, links: bool = False
) -> Manifest:
    with building(folder, kind="shards", version=version, fingerprint=mark, links=links) as build:
        (build.path / "part.bin").write_text(text)
        (build.path / "sub").mkdir(exist_ok=True)
        (build.path / "sub/index.bin").write_bytes(b"\0\1")
        build.facts = {"pairs": 3}
    return read(folder)


def build_with(folder: Path, work: Callable[[Build], object], *, mark: str = "a") -> None:
    with building(folder, kind="shards", version=1, fingerprint=mark) as build:
        work(build)
        build.facts = {}


def fail_half_way(build: Build) -> None:
    (build.path / "first.bin").write_text("done")
    raise KeyError


def read(folder: Path) -> Manifest:
    return read_manifest(folder, kind="shards", version=1)


def content(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def edit_manifest(folder: Path, change: Callable[[dict[str, object]], object]) -> None:
    """Change a manifest and give it a right check, as only a forger would."""
    path = folder / "manifest.json"
    held = json.loads(path.read_bytes())["tandem"]
    change(held)
    body = json.dumps(held).encode()
    path.write_bytes(b'{"sha256": "%s", "tandem": %s}\n' % (sha256(body).hexdigest().encode(), body))


def test_a_built_folder_reads_back_with_sizes_and_checksums(tmp_path: Path) -> None:
    manifest = make(tmp_path / "set")
    assert manifest.facts == {"pairs": 3}
    assert manifest.files["part.bin"].bytes == 5
    assert manifest.files["part.bin"].sha256 == sha256(b"hello").hexdigest()
    assert set(manifest.files) == {"part.bin", "sub/index.bin"}
    verify(tmp_path / "set", manifest)
    assert [p.name for p in tmp_path.iterdir()] == ["set"]


def test_the_same_input_gives_the_same_bytes(tmp_path: Path) -> None:
    make(tmp_path / "one")
    make(tmp_path / "two")
    assert content(tmp_path / "one") == content(tmp_path / "two")


def test_the_manifest_is_valid_json(tmp_path: Path) -> None:
    make(tmp_path / "set")
    assert json.loads((tmp_path / "set/manifest.json").read_text())["tandem"]["kind"] == "shards"


def test_a_rebuild_replaces_the_folder_whole(tmp_path: Path) -> None:
    make(tmp_path / "set", text="old")
    make(tmp_path / "set", mark="b", text="new")
    assert (tmp_path / "set/part.bin").read_text() == "new"
    assert [p.name for p in tmp_path.iterdir()] == ["set"]


def test_a_symlinked_folder_is_replaced_where_it_really_is(tmp_path: Path) -> None:
    (tmp_path / "big").mkdir()
    make(tmp_path / "big/set")
    (tmp_path / "set").symlink_to(tmp_path / "big/set")
    make(tmp_path / "set", mark="b", text="new", links=True)
    assert (tmp_path / "set").is_symlink()
    assert (tmp_path / "big/set/part.bin").read_text() == "new"


def test_a_folder_that_is_a_link_is_left_alone_where_the_user_did_not_name_it(tmp_path: Path) -> None:
    for place in ("here", "nowhere"):
        (tmp_path / "set").symlink_to(tmp_path / place)
        with pytest.raises(TandemError, match="is a link"):
            make(tmp_path / "set")
        (tmp_path / "set").unlink()
    assert list(tmp_path.iterdir()) == []


def test_a_build_that_goes_on_writes_through_no_link_that_was_laid_there(tmp_path: Path) -> None:
    with pytest.raises(KeyError):
        build_with(tmp_path / "set", fail_half_way)
    (tmp_path / "precious").write_text("mine")
    (tmp_path / "set.partial/part.bin").symlink_to(tmp_path / "precious")
    os.mkfifo(tmp_path / "set.partial/pipe")
    make(tmp_path / "set")
    assert (tmp_path / "precious").read_text() == "mine"
    assert not (tmp_path / "set/part.bin").is_symlink()


def test_what_lies_beside_the_target_of_a_link_is_not_settled(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project.old").mkdir()
    (tmp_path / "set").symlink_to(tmp_path / "project")
    settle(tmp_path / "set")
    assert (tmp_path / "project.old").is_dir()


def test_a_file_of_holes_is_not_hashed(tmp_path: Path) -> None:
    with (tmp_path / "part.bin").open("wb") as file:
        file.truncate(1 << 40)
        file.seek(0, 2)
        file.write(b"end")
    with pytest.raises(TandemError, match="holes"):
        sha256_file(tmp_path / "part.bin")


def test_a_failed_build_keeps_the_old_folder_and_the_partial_one(tmp_path: Path) -> None:
    make(tmp_path / "set")
    with pytest.raises(KeyError):
        build_with(tmp_path / "set", fail_half_way, mark="b")
    assert read(tmp_path / "set").fingerprint == "a"
    assert (tmp_path / "set.partial/first.bin").read_text() == "done"


@pytest.mark.parametrize(("mark", "version", "kept"), [("b", 1, True), ("c", 1, False), ("b", 2, False)])
def test_only_a_partial_of_the_same_build_is_kept(
    tmp_path: Path, mark: str, version: int, kept: bool
) -> None:
    with pytest.raises(KeyError):
        build_with(tmp_path / "set", fail_half_way, mark="b")
    with building(tmp_path / "set", kind="shards", version=version, fingerprint=mark) as build:
        assert (build.path / "first.bin").exists() == kept
        build.facts = {}


def test_a_build_without_facts_is_not_finished(tmp_path: Path) -> None:
    with (
        pytest.raises(RuntimeError, match="without facts"),
        building(tmp_path / "set", kind="shards", version=1, fingerprint="a"),
    ):
        pass
    assert not (tmp_path / "set").exists()


def test_scratch_files_of_a_killed_writer_are_left_out(tmp_path: Path) -> None:
    with building(tmp_path / "set", kind="shards", version=1, fingerprint="a") as build:
        (build.path / ".part.bin.123.tmp").write_text("torn")
        build.facts = {}
    assert [p.name for p in (tmp_path / "set").iterdir()] == ["manifest.json"]


def test_two_writers_of_one_file_do_not_meet_though_their_numbers_are_the_same(tmp_path: Path) -> None:
    with replacing(tmp_path / "card.json") as last, replacing(tmp_path / "card.json") as first:
        last.write(b"from one host")
        first.write(b"from another")
    assert content(tmp_path) == {"card.json": b"from one host"}


def test_a_known_checksum_is_taken_without_reading_the_file(tmp_path: Path) -> None:
    with building(tmp_path / "set", kind="shards", version=1, fingerprint="a") as build:
        (build.path / "part.bin").write_text("hello")
        build.known("part.bin", bytes=5, sha256="0" * 64)
        build.facts = {}
    manifest = read(tmp_path / "set")
    assert manifest.files["part.bin"].sha256 == "0" * 64
    with pytest.raises(TandemError, match=r"part\.bin is damaged"):
        verify(tmp_path / "set", manifest)


@pytest.mark.parametrize(("name", "complaint"), [("part.bin", "has 5 bytes, not 6"), ("lost.bin", "missing")])
def test_a_known_file_that_is_not_as_told_stops_the_build(tmp_path: Path, name: str, complaint: str) -> None:
    def work(build: Build) -> None:
        (build.path / "part.bin").write_text("hello")
        build.known(name, bytes=6, sha256="0" * 64)

    with pytest.raises(TandemError, match=complaint):
        build_with(tmp_path / "set", work)
    assert not (tmp_path / "set").exists()


def test_a_second_builder_is_told_who_is_at_work(tmp_path: Path) -> None:
    with building(tmp_path / "set", kind="shards", version=1, fingerprint="a") as build:
        with (
            pytest.raises(TandemError, match=f"being made by process {os.getpid()}"),
            building(tmp_path / "set", kind="shards", version=1, fingerprint="a"),
        ):
            pass
        build.facts = {}
    assert read(tmp_path / "set").kind == "shards"


def test_a_folder_that_is_not_ours_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters/dear.txt").write_text("keep me")
    with pytest.raises(TandemError, match="was not made by Tandem"):
        make(tmp_path / "letters")
    assert content(tmp_path / "letters") == {"dear.txt": b"keep me"}


def test_a_folder_of_another_kind_is_never_replaced(tmp_path: Path) -> None:
    make(tmp_path / "set")
    with (
        pytest.raises(TandemError, match="holds shards, not subword"),
        building(tmp_path / "set", kind="subword", version=1, fingerprint="a"),
    ):
        pass
    assert read(tmp_path / "set").fingerprint == "a"


def test_an_empty_folder_and_a_damaged_one_of_ours_are_replaced(tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    make(tmp_path / "set")
    manifest = tmp_path / "set/manifest.json"
    manifest.write_bytes(manifest.read_bytes()[:-20])
    make(tmp_path / "set", text="new")
    assert (tmp_path / "set/part.bin").read_text() == "new"


def test_a_missing_folder_an_unfinished_one_and_a_file_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(TandemError, match="There is no folder"):
        read(tmp_path / "set")
    (tmp_path / "set").mkdir()
    with pytest.raises(TandemError, match="was not finished"):
        read(tmp_path / "set")
    (tmp_path / "file").write_text("x")
    with pytest.raises(TandemError, match="There is no folder"):
        read(tmp_path / "file")


def test_a_torn_manifest_is_found_wherever_it_is_cut(tmp_path: Path) -> None:
    make(tmp_path / "set")
    whole = (tmp_path / "set/manifest.json").read_bytes()
    for length in range(len(whole)):
        (tmp_path / "set/manifest.json").write_bytes(whole[:length])
        with pytest.raises(TandemError, match="damaged or was edited"):
            read(tmp_path / "set")


def test_an_edited_manifest_is_found(tmp_path: Path) -> None:
    make(tmp_path / "set")
    path = tmp_path / "set/manifest.json"
    path.write_text(path.read_text().replace('"pairs": 3', '"pairs": 4'))
    with pytest.raises(TandemError, match="damaged or was edited"):
        read(tmp_path / "set")


def test_a_manifest_that_lacks_a_field_is_refused(tmp_path: Path) -> None:
    make(tmp_path / "set")
    edit_manifest(tmp_path / "set", lambda held: held.pop("fingerprint"))
    with pytest.raises(TandemError, match="is not a manifest"):
        read(tmp_path / "set")


@pytest.mark.parametrize(
    "name", ["../x", "/etc/passwd", "a/../../x", "..", ".", "", "a//b", "a\\b", "manifest.json"]
)
def test_names_that_lead_out_of_the_folder_are_refused(tmp_path: Path, name: str) -> None:
    make(tmp_path / "set")
    edit_manifest(tmp_path / "set", lambda held: held.update(files={name: {"bytes": 0, "sha256": "0" * 64}}))
    with pytest.raises(TandemError, match="not allowed"):
        read_manifest(tmp_path / "set", kind="shards", version=1, sizes=False)


def test_links_in_place_of_files_or_folders_are_refused(tmp_path: Path) -> None:
    make(tmp_path / "set")
    (tmp_path / "set/sub").rename(tmp_path / "elsewhere")
    (tmp_path / "set/sub").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(TandemError, match="is a link"):
        read(tmp_path / "set")
    (tmp_path / "set/sub").unlink()
    (tmp_path / "elsewhere").rename(tmp_path / "set/sub")
    (tmp_path / "set/part.bin").rename(tmp_path / "part.bin")
    (tmp_path / "set/part.bin").symlink_to(tmp_path / "part.bin")
    with pytest.raises(TandemError, match="not a plain file"):
        read(tmp_path / "set")


def test_a_link_cannot_be_built_into_a_folder(tmp_path: Path) -> None:
    with pytest.raises(TandemError, match="not a plain file"):
        build_with(tmp_path / "set", lambda build: (build.path / "part.bin").symlink_to("/etc/hostname"))


def test_other_kinds_and_versions_are_named_with_a_cure(tmp_path: Path) -> None:
    make(tmp_path / "set")
    with pytest.raises(TandemError, match="holds shards, not subword"):
        read_manifest(tmp_path / "set", kind="subword", version=1)
    with pytest.raises(TandemError, match="format 1, not 2: make it again"):
        read_manifest(tmp_path / "set", kind="shards", version=2)
    with pytest.raises(TandemError, match="format 1, not 0: use a newer Tandem"):
        read_manifest(tmp_path / "set", kind="shards", version=0)


def test_missing_and_short_files_are_named_unless_sizes_are_skipped(tmp_path: Path) -> None:
    make(tmp_path / "set")
    (tmp_path / "set/part.bin").write_text("hell")
    with pytest.raises(TandemError, match=r"part\.bin has 4 bytes, not 5"):
        read(tmp_path / "set")
    (tmp_path / "set/part.bin").unlink()
    with pytest.raises(TandemError, match=r"part\.bin is missing"):
        read(tmp_path / "set")
    assert read_manifest(tmp_path / "set", kind="shards", version=1, sizes=False).facts == {"pairs": 3}


def test_verify_names_a_changed_file_and_an_extra_one(tmp_path: Path) -> None:
    manifest = make(tmp_path / "set")
    (tmp_path / "set/part.bin").write_text("hallo")
    with pytest.raises(TandemError, match=r"part\.bin is damaged"):
        verify(tmp_path / "set", manifest)
    (tmp_path / "set/part.bin").write_text("hello")
    (tmp_path / "set/extra.bin").write_text("?")
    with pytest.raises(TandemError, match=r"extra\.bin is not in the manifest"):
        verify(tmp_path / "set", manifest)
    assert read(tmp_path / "set") == manifest


def test_fresh_means_whole_and_of_the_same_fingerprint(tmp_path: Path) -> None:
    def fresh(mark: str) -> bool:
        return maybe_fresh(tmp_path / "set", kind="shards", version=1, fingerprint=mark) is not None

    assert not fresh("a")
    make(tmp_path / "set")
    assert fresh("a")
    assert not fresh("b")
    (tmp_path / "set/part.bin").unlink()
    assert not fresh("a")


def test_a_reader_puts_back_the_old_folder_after_a_crash_in_the_swap(tmp_path: Path) -> None:
    make(tmp_path / "set")
    (tmp_path / "set").rename(tmp_path / "set.old")
    assert read(tmp_path / "set").fingerprint == "a"
    assert not (tmp_path / "set.old").exists()


def test_settling_removes_the_old_folder_when_the_new_one_is_in_place(tmp_path: Path) -> None:
    make(tmp_path / "set")
    make(tmp_path / "other", mark="old")
    (tmp_path / "other").rename(tmp_path / "set.old")
    settle(tmp_path / "set")
    assert [p.name for p in tmp_path.iterdir()] == ["set"]
    assert read(tmp_path / "set").fingerprint == "a"


def test_a_parent_that_is_a_file_is_told_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(TandemError, match="Cannot write in"):
        make(tmp_path / "file/set")


def test_fingerprints_ignore_the_order_of_keys_and_see_every_value() -> None:
    assert fingerprint({"a": 1, "b": [1, "ü", None]}) == fingerprint({"b": [1, "ü", None], "a": 1})
    assert len({fingerprint(value) for value in (1, 2, "1", [1], {"1": 1}, None, True, 1.5)}) == 8


def test_nan_has_no_fingerprint() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        fingerprint({"a": float("nan")})


def test_sha256_of_a_file(tmp_path: Path) -> None:
    write_atomic(tmp_path / "x", b"abc")
    assert sha256_file(tmp_path / "x") == sha256(b"abc").hexdigest()


def test_a_manifest_is_read_from_bytes_that_have_no_folder_yet(tmp_path: Path) -> None:
    manifest = make(tmp_path / "set")
    raw = (tmp_path / "set/manifest.json").read_bytes()
    assert parse_manifest(raw, folder=tmp_path / "nowhere") == manifest
    with pytest.raises(TandemError, match=r"nowhere/manifest.json is damaged or was edited"):
        parse_manifest(raw.replace(b'"pairs": 3', b'"pairs": 4'), folder=tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        ("a", True),
        ("a/b.bin", True),
        ("..a/b..", True),
        ("..", False),
        ("a/../b", False),
        ("/a", False),
        ("", False),
    ],
)
def test_a_name_stays_inside_its_folder(name: str, is_one: bool) -> None:
    assert is_name(name) == is_one


def test_what_an_interrupted_build_left_is_found_by_the_same_build_only(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    assert maybe_partial(folder, kind="shards", version=1, fingerprint="a") is None
    with pytest.raises(KeyError):
        build_with(folder, fail_half_way)
    left = maybe_partial(folder, kind="shards", version=1, fingerprint="a")
    assert left is not None
    assert content(left) == {"first.bin": b"done"}
    assert maybe_partial(folder, kind="shards", version=1, fingerprint="b") is None
    build_with(folder, lambda _build: None)
    assert maybe_partial(folder, kind="shards", version=1, fingerprint="a") is None
