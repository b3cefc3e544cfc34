"""The command `tandem data push` before it reaches any host."""

from pathlib import Path

import pytest
from tests.prepared import RECIPE, make_prepared

from tandem.cli.data_push import push_data
from tandem.cli.hosts import far_place
from tandem.errors import TandemError


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "made-up.yaml").write_text(RECIPE)
    return tmp_path


@pytest.mark.parametrize(
    ("path", "folder", "place"),
    [
        ("prepared/x", "", "{here}/prepared/x"),
        ("prepared/x", "work", "work/prepared/x"),
        ("prepared/x", "/data/work", "/data/work/prepared/x"),
        ("{here}/prepared/x", "work", "work/prepared/x"),
        ("/elsewhere/x", "work", "/elsewhere/x"),
        ("/elsewhere/x", "", "/elsewhere/x"),
    ],
)
def test_a_path_below_the_working_folder_is_below_that_of_the_host(
    here: Path, path: str, folder: str, place: str
) -> None:
    assert far_place(Path(path.format(here=here)), folder) == place.format(here=here)


def test_data_that_is_not_prepared_is_not_pushed(here: Path) -> None:
    with pytest.raises(TandemError, match=r"holds no finished data: make it with tandem data prepare"):
        push_data(Path("made-up.yaml"), hosts="a")


def test_data_of_another_subword_model_is_not_pushed(here: Path) -> None:
    make_prepared(here / "prepared/made-up")
    with pytest.raises(TandemError, match=r"prepared with another subword.vocabulary: prepare it again"):
        push_data(Path("made-up.yaml"), ["subword.vocabulary=999"], hosts="a")


def test_a_host_that_is_none_is_refused(here: Path) -> None:
    make_prepared(here / "prepared/made-up")
    with pytest.raises(TandemError, match="is no host"):
        push_data(Path("made-up.yaml"), hosts="-oProxyCommand=x,b")
