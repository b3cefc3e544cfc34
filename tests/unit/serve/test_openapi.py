"""The description of the API is true: requests made up from it get the answers that it tells, from a real model."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from html import escape
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from tests.unit.serve.fake import Fake, Running, running, served
from tests.unit.serve.test_markup import Soup
from tests.unit.translate.small_model import build_small, build_translator, write_subword

from tandem.serve.limits import Limits


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    subword = write_subword(tmp_path_factory.mktemp("served") / "subword")
    translator = build_translator(build_small(subword), subword)
    model = replace(served(Fake()), translator=translator)
    limits = Limits(characters=500, sentences=100)
    with running(model, limits=limits, guess=lambda _text, _among: ("en", 0.5)) as started:
        yield started


@pytest.fixture(scope="module")
def described(server: Running) -> Any:
    # Too long is said by a status of its own, which schemathesis does not take for a refusal by itself.
    checks = {
        "negative_data_rejection": {"expected-statuses": ["400", "401", "403", "404", "413", "415", "422"]}
    }
    config = schemathesis.Config.from_dict({"checks": checks})
    return schemathesis.openapi.from_url(str(server.client.base_url.join("/openapi.json")), config=config)


schema = schemathesis.pytest.from_fixture("described")


@schema.parametrize()
@settings(
    max_examples=60, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)
def test_every_answer_is_as_described(case: schemathesis.Case[Any]) -> None:
    case.call_and_validate()


@given(html=Soup)
@settings(max_examples=60)
def test_whatever_html_is_sent_a_real_model_changes_nothing_but_text(server: Running, html: str) -> None:
    html = html[:500]
    answer = server.post(q=html, source="en", target="de", format="html")
    assert answer.status_code == 200
    assert [*answer.json()] == ["translatedText"]
    assert markup(answer.json()["translatedText"]) == markup(html)


def markup(html: str) -> Counter[str]:
    """All that begins like markup, up to where it may end."""
    return Counter(re.findall("<[A-Za-z/!?][^<>]*", html))


def test_html_without_inline_markup_is_translated_as_its_text_is(server: Running) -> None:
    texts = ["My cousin likes the old train.", "Is he sitting down?"]
    told = server.post(text=texts).json()["translations"]
    html = "<h1>{}</h1>\n<p>{}</p>".format(*texts)
    answer = server.post(q=html, source="en", target="de", format="html").json()
    escaped = (escape(each["text"], quote=False) for each in told)
    assert answer["translatedText"] == "<h1>{}</h1>\n<p>{}</p>".format(*escaped)


def test_models_languages_and_limits_of_this_server_are_described(server: Running) -> None:
    schemas = server.client.get("/openapi.json").json()["components"]["schemas"]
    own = schemas["TranslateRequest"]["properties"]
    assert own["model"]["anyOf"][0]["enum"] == ["small"]
    assert own["target"]["anyOf"][0]["enum"] == ["de"]
    assert own["text"]["anyOf"][0]["maxLength"] == 500
    form = schemas["LibreForm"]["properties"]["q"]
    for text in (own["text"], schemas["LibreRequest"]["properties"]["q"], form):
        assert "A line may have 5,000 characters" in text["description"]
        assert "500 in 100 lines" in text["description"]
    assert schemas["LibreRequest"]["properties"]["source"]["enum"] == ["en", "auto"]
    paths = server.client.get("/openapi.json").json()["paths"]
    for path in ("/translate", "/detect"):
        assert "multipart/form-data" in paths[path]["post"]["requestBody"]["content"]
    assert "description" in own["beam"]
