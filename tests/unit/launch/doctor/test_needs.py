from pathlib import Path

from tandem.config import load_recipe
from tandem.launch.doctor.needs import Needs


def test_without_a_recipe_they_are_those_of_the_base_model() -> None:
    needs = Needs.of(None)
    assert needs.of_what == "the base model"
    assert 2.3e8 < needs.gradient_bytes < 2.6e8
    assert needs.memory is None


def test_the_disk_holds_all_checkpoints_that_are_kept_one_in_the_making_and_the_data(
    repository: Path, tmp_path: Path
) -> None:
    (tmp_path / "ids.bin").write_bytes(bytes(1000))
    words = [f"data.folder={tmp_path}", "checkpoint.keep_last=2", "checkpoint.keep_best=1"]
    needs = Needs.of(load_recipe(repository / "recipes/demo.yaml", words).recipe)
    assert needs.disk_bytes == 5 * needs.checkpoint_bytes + 1000
