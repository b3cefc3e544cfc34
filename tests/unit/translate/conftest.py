from pathlib import Path

import pytest
from tests.unit.translate.small_model import build_small, write_subword

from tandem.data.subword.learn import Subword, open_subword
from tandem.model import Transformer


@pytest.fixture(scope="session")
def subword_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data") / "subword"
    write_subword(folder)
    return folder


@pytest.fixture(scope="session")
def subword(subword_folder: Path) -> Subword:
    return open_subword(subword_folder)


@pytest.fixture
def model(subword: Subword) -> Transformer:
    return build_small(subword)
