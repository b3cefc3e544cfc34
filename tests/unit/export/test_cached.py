"""A checkpoint is converted for the CPU once."""

import shutil
from pathlib import Path

import pytest

from tandem.artefact import read_manifest
from tandem.errors import TandemError
from tandem.export import cached
from tandem.export.cached import cached_conversion
from tandem.export.ctranslate2 import Quantization, export_ctranslate2
from tandem.export.verify import Verified
from tandem.lock import BusyError
from tandem.progress import Progress, Silent
from tandem.translate.exported import KIND, VERSION, open_ctranslate2


class Sayings(Silent):
    """Progress that remembers what was said."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, text: str) -> None:
        self.said.append(text)


def test_the_first_time_is_said_and_the_second_takes_what_is_there(checkpoint: Path, tmp_path: Path) -> None:
    first, second = Sayings(), Sayings()
    folder = cached_conversion(checkpoint, cache=tmp_path, progress=first)
    assert folder.is_relative_to(tmp_path)
    assert len(first.said) == 1
    assert first.said[0].startswith("Converted step-00000010 for CTranslate2")
    before = (folder / "model.bin").stat().st_mtime_ns
    assert cached_conversion(checkpoint, cache=tmp_path, progress=second) == folder
    assert second.said == []
    assert (folder / "model.bin").stat().st_mtime_ns == before
    open_ctranslate2(folder, threads=1)


def test_the_conversion_that_nobody_asked_for_keeps_all_digits(checkpoint: Path, tmp_path: Path) -> None:
    folder = cached_conversion(checkpoint, cache=tmp_path)
    manifest = read_manifest(folder, kind=KIND, version=VERSION)
    assert manifest.facts["quantization"] == "float32"
    assert [path.name for path in (tmp_path / "ctranslate2").iterdir()] == [folder.name]


@pytest.mark.parametrize("name", ["model.bin", "manifest.json"])
def test_a_damaged_conversion_is_made_again(name: str, checkpoint: Path, tmp_path: Path) -> None:
    folder = cached_conversion(checkpoint, cache=tmp_path)
    data = bytearray((folder / name).read_bytes())
    data[0] ^= 1
    (folder / name).write_bytes(data)
    again = Sayings()
    assert cached_conversion(checkpoint, cache=tmp_path, progress=again) == folder
    assert len(again.said) == 1
    open_ctranslate2(folder, threads=1)


@pytest.mark.parametrize("name", ["model.safetensors", "recipe.yaml", "subword.model"])
def test_a_conversion_does_not_hide_that_its_checkpoint_is_damaged(
    name: str, checkpoint: Path, tmp_path: Path
) -> None:
    copy = tmp_path / checkpoint.name
    shutil.copytree(checkpoint, copy)
    cached_conversion(copy, cache=tmp_path)
    data = bytearray((copy / name).read_bytes())
    data[-2] ^= 1
    (copy / name).write_bytes(data)
    with pytest.raises(TandemError, match=f"{name} is damaged"):
        cached_conversion(copy, cache=tmp_path)
    (copy / name).unlink()
    with pytest.raises(TandemError, match=f"Cannot read .*{name}"):
        cached_conversion(copy, cache=tmp_path)


def test_a_conversion_serves_a_checkpoint_without_what_only_training_needs(
    checkpoint: Path, tmp_path: Path
) -> None:
    copy = tmp_path / checkpoint.name
    shutil.copytree(checkpoint, copy)
    folder = cached_conversion(copy, cache=tmp_path)
    (copy / "optimizer.safetensors").unlink()
    assert cached_conversion(copy, cache=tmp_path) == folder


def test_another_process_that_converts_the_same_is_waited_for(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[Path] = []

    def busy(folder: Path, target: Path, *, quantization: Quantization, progress: Progress) -> Verified:
        tries.append(target)
        if len(tries) == 1:
            raise BusyError("another is at it")
        return export_ctranslate2(folder, target, quantization=quantization, progress=progress)

    monkeypatch.setattr(cached, "export_ctranslate2", busy)
    monkeypatch.setattr(cached, "BUSY_S", 0.0)
    assert cached_conversion(checkpoint, cache=tmp_path) == tries[0] == tries[1]
