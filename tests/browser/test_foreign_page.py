"""What the page of another site gets done with a server on this machine, in a real browser: nothing."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page
from tests.unit.serve.fake import Fake, Running, running, served
from tests.unit.web.serving import answering

from tandem.web.limits import ConnectionLimits

FORM = """
async address => {
  const body = new URLSearchParams({ q: "secretly", source: "en", target: "de" });
  await fetch(address + "/translate", { method: "POST", mode: "no-cors", body }).catch(() => null);
}
"""
POSTED = """
address => {
  const form = document.createElement("form");
  Object.assign(form, { method: "post", action: address + "/translate" });
  form.innerHTML = '<input name="q" value="secretly"><input name="source" value="en"><input name="target" value="de">';
  document.body.append(form);
  form.submit();
}
"""
FRAMED = """
address => new Promise(resolve => {
  const frame = document.createElement("iframe");
  frame.onload = () => resolve(frame.contentWindow.length);
  frame.src = address + "/";
  document.body.append(frame);
})
"""


@pytest.fixture(scope="module")
def fake() -> Fake:
    return Fake()


@pytest.fixture(scope="module")
def server(fake: Fake) -> Iterator[Running]:
    with running(served(fake)) as started:
        yield started


@pytest.fixture
def foreign(browser: Browser) -> Iterator[Page]:
    """A page of another server on this machine: what is nearer than any other site."""
    with answering(ConnectionLimits()) as other, browser.new_context() as context:
        page = context.new_page()
        page.goto(f"http://127.0.0.1:{other.port}/healthz")
        yield page


def address_of(server: Running) -> str:
    return str(server.client.base_url).rstrip("/")


def test_the_script_of_a_foreign_page_has_nothing_translated(
    foreign: Page, server: Running, fake: Fake
) -> None:
    foreign.evaluate(FORM, address_of(server))
    assert 'path="/translate",status="403"' in server.client.get("/metrics").text
    assert not any("secretly" in lines for lines, _ in fake.batches)


def test_the_form_of_a_foreign_page_has_nothing_translated(
    foreign: Page, server: Running, fake: Fake
) -> None:
    with foreign.expect_response("**/translate") as answered:
        foreign.evaluate(POSTED, address_of(server))
    assert answered.value.status == 403
    assert not any("secretly" in lines for lines, _ in fake.batches)


def test_a_foreign_page_frames_nothing(foreign: Page, server: Running) -> None:
    with foreign.expect_response(f"{address_of(server)}/") as answered:
        foreign.evaluate(FRAMED, address_of(server))
    assert answered.value.status == 403


def test_a_link_of_a_foreign_page_is_followed(foreign: Page, server: Running) -> None:
    address = address_of(server)
    foreign.evaluate("address => { location.href = address + '/'; }", address)
    foreign.wait_for_url(f"{address}/")
    assert foreign.locator("#translation").count() == 1
