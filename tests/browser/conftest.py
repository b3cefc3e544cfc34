"""The browser that pages are opened in."""

from collections.abc import Iterator

import pytest
from benchmarks.dashboard_served import CHROMIUM, browsing
from playwright.sync_api import Browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("needs chromium, which is not installed")
    with browsing() as started:
        yield started
