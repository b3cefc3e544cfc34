"""What all tests share: in CI a skipped test fails, except those that need a GPU."""

import os
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from tests.interpreter import replace_language_once
from tests.schedule import ByModule, put_long_ones_first

# Several test processes on two cores: threads of their own would only wait for each other. Where a test asks for
# threads all the same, they wait asleep: awake they take the processor from those that they wait for.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

# Without a GPU, Triton's kernels run in its interpreter. It must know before anything imports it, as conftests may.
if not Path("/dev/nvidiactl").exists():
    os.environ.setdefault("TRITON_INTERPRET", "1")

REPOSITORY = Path(__file__).resolve().parents[1]
IN_CI = os.environ.get("CI") == "true"

settings.register_profile("tandem", deadline=None, derandomize=IN_CI)
settings.load_profile("tandem")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--device",
        choices=("auto", "cpu", "cuda"),
        default="auto",
        help="where to test: with cuda a test that finds no GPU fails, with cpu a GPU that is there is left alone",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--device") == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
        os.environ.setdefault("TRITON_INTERPRET", "1")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByModule | None:
    if config.getoption("dist") != "loadgroup":
        return None
    # The order is that of the collected tests, not that of their number.
    config.option.loadscopereorder = False
    return ByModule(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    put_long_ones_first(items)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    is_gpu = item.get_closest_marker("gpu") is not None
    if report.skipped and is_gpu and item.config.getoption("--device") == "cuda":
        report.outcome = "failed"
        report.longrepr = f"skipped, though a GPU was asked for: {report.longrepr}"
    elif IN_CI and report.skipped and not is_gpu:
        report.outcome = "failed"
        report.longrepr = f"skipped, which CI does not allow: {report.longrepr}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if IN_CI and report.outcome == "skipped":
        report.outcome = "failed"
        report.longrepr = f"skipped, which CI does not allow: {report.longrepr}"
    return report


@pytest.fixture(scope="session", autouse=True)
def quick_interpreter() -> None:
    """Kernels run twice as fast, where Triton's interpreter has been imported to run them."""
    interpreter = sys.modules.get("triton.runtime.interpreter")
    if hasattr(interpreter, "_patch_lang"):
        replace_language_once(interpreter)


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the checkout."""
    return REPOSITORY


@pytest.fixture(scope="session")
def real_data() -> Path:
    """Real English–German text that lies beside the checkout, where there is any."""
    folder = REPOSITORY.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the folder shared/data with real text is not beside the checkout")
    return folder
