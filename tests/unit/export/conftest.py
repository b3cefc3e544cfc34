from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.export.few import few_sentences
from tests.unit.translate.small_model import write_run, write_subword

from tandem.checkpoint.layout import step_folder
from tandem.export import bundle, ctranslate2
from tandem.runlog.layout import RunLayout
from tandem.translate import ctranslate2_engine


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("export")
    write_subword(folder / "subword")
    write_run(folder / "run", folder / "subword", bleu={10: 9.0})
    return folder / "run"


@pytest.fixture(autouse=True, scope="module")
def little_work() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for module in (bundle, ctranslate2):
            patch.setattr(module, "sample_sentences", few_sentences)
        patch.setattr(ctranslate2_engine, "_cores", lambda: 1)
        yield


@pytest.fixture(scope="session")
def checkpoint(run: Path) -> Path:
    return step_folder(RunLayout(run).checkpoints, 10)
