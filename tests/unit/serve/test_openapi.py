"""The description of the API is true: requests made up from it get the answers that it tells."""

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from tests.unit.serve.fake import Fake, Running, running, served

from tandem.serve.limits import Limits


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    limits = Limits(characters=500, sentences=100)
    with running(served(Fake()), limits=limits, guess=lambda _text, _among: ("en", 0.5)) as started:
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
    max_examples=15, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)
def test_every_answer_is_as_described(case: schemathesis.Case[Any]) -> None:
    case.call_and_validate()


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
