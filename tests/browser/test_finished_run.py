"""A run that has ended in the dashboard: its hosts at the end, help in place, and the list on a phone."""

from collections.abc import Iterator

import pytest
from benchmarks.dashboard_served import serving
from playwright.sync_api import Browser, Page, expect
from tests.unit.observe import story
from tests.unit.observe.watch.host_story import sampling, write_samples

from tandem.observe.figures.caption import CAPTIONS
from tandem.observe.verdicts.sections import question_of
from tandem.runlog.event import RunFinished

WAIT_MS = 120_000
NAMES = ("over", "a-second-run-with-a-name-that-is-long-as-names-of-runs-are")
READABLE = 200

pytestmark = pytest.mark.xdist_group("dashboard")


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("runs")
    for name in NAMES:
        teller = story.Teller()
        records = [*story.training(teller, steps=400), teller.tell(story.finished(400))]
        story.write_log(folder / name, [*records, teller.tell(RunFinished(reason="completed"), rank=None)])
        write_samples(folder / name, list(sampling("h1", seconds=120)))
    with serving(folder) as server:
        yield server.address


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1200, "height": 800})
    context.set_default_timeout(WAIT_MS)
    expect.set_options(timeout=WAIT_MS)
    yield context.new_page()
    context.close()


def test_hosts_of_a_run_that_has_ended_are_shown_as_they_were_and_without_alarm(
    page: Page, address: str
) -> None:
    page.goto(f"{address}/run/over#hosts")
    expect(page.locator(".now > summary b")).to_have_text("At the end")
    expect(page.locator(".host .gpus")).to_contain_text("4 × NVIDIA H100")
    expect(page.locator(".now")).not_to_contain_text("⚠")
    expect(page.locator(".now")).not_to_contain_text("no sample")
    page.locator(".host summary").click()
    expect(page.locator(".host .devices p")).to_have_count(6)


def test_the_help_of_a_figure_says_to_which_question_its_section_belongs(page: Page, address: str) -> None:
    page.goto(f"{address}/run/over")
    help_box = page.locator("#panel-learning [data-name=bleu] .help")
    help_box.locator("summary").click()
    question = question_of(CAPTIONS["bleu"].section)
    heading = f"{question.number}. {question.question} (docs/verdicts.md)"
    expect(help_box.locator("h4")).to_have_text(heading)
    expect(help_box.locator("header p")).to_have_text(question.about)
    page.locator("#tab-answers").click()
    answer = page.locator(f".question[data-key={question.key}]")
    answer.locator("> summary").click()
    answer.locator("> .help > summary").click()
    expect(answer.locator("> .help .section p").first).to_be_visible()
    expect(answer.locator("> .help h4")).to_have_count(0)


@pytest.mark.parametrize(
    ("where", "term"), [("#numbers-help", "gradient norm"), ("#panel-learning section", "probe loss")]
)
def test_numbers_and_evaluations_are_explained_by_keyboard(
    page: Page, address: str, where: str, term: str
) -> None:
    page.goto(f"{address}/run/over")
    summary = page.locator(f"{where} > .help > summary").first
    expect(summary).to_have_text("What is this?")
    summary.focus()
    page.keyboard.press("Enter")
    expect(page.locator(f"{where} .help li b", has_text=term)).to_be_visible()


def test_names_and_states_in_the_list_can_be_read_on_a_phone(page: Page, address: str) -> None:
    page.set_viewport_size({"width": 360, "height": 740})
    page.goto(f"{address}/")
    expect(page.locator("#list li")).to_have_count(len(NAMES))
    for part in ("a", ".status"):
        boxes = [each.bounding_box() for each in page.locator(f"#list li > {part}").all()]
        assert all(box is not None and box["width"] >= READABLE for box in boxes), (part, boxes)
    assert page.evaluate("document.documentElement.scrollWidth") == 360
