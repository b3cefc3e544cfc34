"""The page to translate in a real browser: live, by keyboard, on a phone and in the dark."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect
from tests.unit.serve.fake import Fake, Running, running, served


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A page and what the browser said of it."""

    page: Page
    complaints: list[str]
    requests: list[str]

    @property
    def translation(self) -> Locator:
        return self.page.locator("#translation")

    def lit(self) -> tuple[list[str], list[str]]:
        """Words that light up: of the text, of its translation."""
        source, target = (
            self.page.locator(f"{box} .word.lit").all_text_contents() for box in ("#echo", "#translation")
        )
        return source, target


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    models = (
        served(Fake(), name="german"),
        served(Fake(mark="?"), name="french", languages=("en", "fr")),
    )
    with running(*models) as started:
        yield started


def opened(browser: Browser, server: Running, **context: Any) -> Opened:
    page = browser.new_context(**context).new_page()
    complaints: list[str] = []
    requests: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    page.goto(str(server.client.base_url), wait_until="load")
    expect(page.locator("#model option")).not_to_have_count(0)
    return Opened(page=page, complaints=complaints, requests=requests)


@pytest.fixture(scope="module")
def shown(browser: Browser, server: Running) -> Opened:
    return opened(browser, server, viewport={"width": 1000, "height": 700})


def test_typing_translates_by_itself_and_asks_nobody_else(shown: Opened, server: Running) -> None:
    shown.page.keyboard.type("the old dog")  # the text has the focus from the start
    expect(shown.translation).to_have_text("dog! old! the!")
    assert shown.page.locator("#source-name").text_content() == "English"
    assert shown.page.locator("#target-name").text_content() == "German"
    assert all(url.startswith(str(server.client.base_url)) for url in shown.requests)
    assert shown.complaints == []


def test_a_word_and_what_it_came_of_light_up_on_both_sides(shown: Opened) -> None:
    shown.page.locator("#text").fill("the old 😀 dog\nsleeps well")
    expect(shown.translation).to_contain_text("well! sleeps!")
    shown.page.locator("#translation .word", has_text="dog!").hover()
    assert shown.lit() == (["dog"], ["dog!"])
    place = shown.page.locator("#echo .word", has_text="sleeps").bounding_box()
    assert place is not None
    shown.page.mouse.move(place["x"] + place["width"] / 2, place["y"] + place["height"] / 2)
    assert shown.lit() == (["sleeps"], ["sleeps!"])
    shown.page.mouse.move(1, 1)
    assert shown.lit() == ([], [])


def test_words_under_the_text_lie_where_they_are_read(shown: Opened) -> None:
    shown.page.locator("#text").fill("one two\n\n" + "a long line of many words " * 12 + "\nthe end")
    expect(shown.translation).to_contain_text("end! the!")
    heights = shown.page.evaluate(
        "[echo.scrollHeight, text.scrollHeight, echo.clientWidth - text.clientWidth]"
    )
    assert heights[0] == pytest.approx(heights[1], abs=1)
    assert heights[2] == 0


def test_the_keyboard_reaches_everything(shown: Opened) -> None:
    page = shown.page
    page.locator("#text").fill("one two")
    page.keyboard.press("Control+Enter")
    expect(shown.translation).to_have_text("two! one!")
    shown.translation.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert shown.lit() == (["one"], ["one!"])
    page.keyboard.press("ArrowLeft")
    assert shown.lit() == (["two"], ["two!"])
    page.locator("#text").focus()
    reached = []
    for _ in range(5):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.id"))
    assert reached == ["clear", "go", "translation", "copy", "more"]


def test_other_translations_come_on_demand(shown: Opened) -> None:
    shown.page.locator("#text").fill("a b")
    shown.page.locator("#more").click()
    expect(shown.page.locator("#others li")).to_have_count(3)
    expect(shown.page.locator("#others li").first).to_contain_text("b! a! 1")
    shown.page.locator("#more").click()
    expect(shown.page.locator("#others")).to_be_hidden()


def test_another_model_translates_at_once(shown: Opened) -> None:
    shown.page.locator("#text").fill("a b")
    shown.page.locator("#model").select_option("french")
    expect(shown.translation).to_have_text("b? a?")
    assert shown.page.locator("#target-name").text_content() == "French"
    shown.page.locator("#model").select_option("german")
    expect(shown.translation).to_have_text("b! a!")


def test_what_is_refused_is_said_and_mended_by_the_next_text(shown: Opened) -> None:
    before = len(shown.complaints)
    shown.page.locator("#text").fill("unspeakable")
    expect(shown.page.locator("#status")).to_have_text("This cannot be said: say something else.")
    shown.page.locator("#text").fill("good")
    expect(shown.translation).to_have_text("good!")
    shown.page.locator("#clear").click()
    expect(shown.translation).to_have_text("")
    del shown.complaints[before:]  # the browser itself complains of every 4xx


def test_a_text_is_shown_as_text(shown: Opened) -> None:
    shown.page.locator("#text").fill("<img src=x onerror=alert(1)>")
    expect(shown.translation).to_have_text("onerror=alert(1)>! src=x! <img!")
    assert shown.page.locator("#translation img, #echo img").count() == 0
    assert shown.complaints == []


def test_dark_and_light_are_chosen_by_system_and_button(browser: Browser, server: Running) -> None:
    page = opened(browser, server, color_scheme="dark").page
    colour = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(colour) == "rgb(20, 23, 26)"
    page.locator("#theme").click()
    assert page.evaluate(colour) == "rgb(255, 255, 255)"
    page.reload()
    assert page.evaluate(colour) == "rgb(255, 255, 255)"


def test_a_phone_scrolls_downwards_only(browser: Browser, server: Running) -> None:
    phone = opened(browser, server, viewport={"width": 360, "height": 740})
    phone.page.locator("#text").fill("word" * 200)
    expect(phone.translation).to_have_text("word" * 200 + "!")
    phone.page.locator("#more").click()
    expect(phone.page.locator("#others li")).to_have_count(3)
    assert phone.page.evaluate("document.documentElement.scrollWidth") == 360
    boxes = [phone.page.locator(f"{box}").bounding_box() for box in ("#text", "#translation")]
    assert boxes[0] is not None
    assert boxes[1] is not None
    assert boxes[0]["y"] + boxes[0]["height"] < boxes[1]["y"]


def test_a_key_is_asked_for_where_one_is_needed(browser: Browser) -> None:
    with running(served(Fake()), keys=["a-long-key"]) as guarded:
        shown = opened(browser, guarded)
        shown.page.locator("#text").fill("a")
        expect(shown.page.locator("#ask-key")).to_be_visible()
        shown.page.locator("#key").fill("a-long-key")
        shown.page.keyboard.press("Enter")
        expect(shown.translation).to_have_text("a!")
        expect(shown.page.locator("#ask-key")).to_be_hidden()
        shown.page.context.close()
