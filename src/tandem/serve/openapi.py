"""The API described for programs: OpenAPI 3.1, with the models and limits of this server."""

from typing import Any

from tandem import __version__
from tandem.serve.catalogue import Catalogue
from tandem.serve.limits import MOST_LINE_CHARACTERS, Limits
from tandem.serve.order import DetectRequest, LibreRequest, TranslateRequest

__all__ = ["build_openapi"]

Document = dict[str, Any]

REFUSALS = {
    400: "The body is neither JSON nor a form, or ended too soon.",
    401: "An API key is needed.",
    403: "The API key is not one of this server's.",
    404: "There is nothing here.",
    408: "The body did not arrive in time.",
    413: "The request is longer than this server takes.",
    415: "The body is of a kind that is not read here.",
    422: "The request asks for what cannot be done.",
    429: "Too much waits already, or too many wrong keys came: come again after Retry-After seconds.",
    503: "It was not done in time, or the server is about to end.",
}
READING = (400, 408, 413, 415, 422)
STRING: Document = {"type": "string"}
RANGE: Document = {"type": "array", "prefixItems": [{"type": "integer"}] * 2, "minItems": 2, "maxItems": 2}


def build_openapi(catalogue: Catalogue, limits: Limits, *, keys: bool) -> Document:
    """The description; `keys` says that translating takes an API key."""
    guarded = (401, 403, 429) if keys else ()
    paths: Document = {
        "/translate": {
            "post": {
                "summary": "Translate one text or many, in our own format or LibreTranslate's",
                "operationId": "translate",
                "requestBody": _body("TranslateRequest", "LibreRequest", form="LibreForm"),
                "responses": {
                    "200": _json("Translations.", _any("TranslateAnswer", "LibreAnswer")),
                    **_refusals(*{*READING, *guarded, 429, 503}),
                },
                **({"security": [{"bearer": []}, {}]} if keys else {}),
            }
        },
        "/detect": {
            "post": {
                "summary": "Guess the language of a text",
                "operationId": "detect",
                "requestBody": _body("DetectRequest", form="DetectRequest"),
                "responses": {
                    "200": _json("The likeliest language.", {"type": "array", "items": _ref("Detected")}),
                    **_refusals(*READING, *guarded, 404),
                },
                **({"security": [{"bearer": []}, {}]} if keys else {}),
            }
        },
        "/languages": _get(
            "Languages, as LibreTranslate lists them", {"type": "array", "items": _ref("Language")}
        ),
        "/models": _get("Models", _object(models={"type": "array", "items": _ref("Model")})),
        "/healthz": _get("Whether the server answers", _object(status=STRING)),
        "/readyz": _get("Whether the server takes requests", _object(status=STRING), 503),
        "/metrics": _text("What was counted, for Prometheus"),
        "/openapi.json": _get("This description", {"type": "object"}),
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "Tandem", "version": __version__, "description": "Translates text."},
        "paths": paths,
        "components": {
            "schemas": {**_requests(catalogue, limits), **_answers()},
            **({"securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}}} if keys else {}),
        },
    }


def _requests(catalogue: Catalogue, limits: Limits) -> Document:
    own, libre = TranslateRequest.model_json_schema(), LibreRequest.model_json_schema()
    names = [model.name for model in catalogue.models]
    for field, values in (("source", catalogue.sources), ("target", catalogue.targets), ("model", names)):
        own["properties"][field] = {**own["properties"][field], "anyOf": [{"enum": values}, {"type": "null"}]}
    libre["properties"]["source"]["enum"] = [*catalogue.sources, "auto"]
    libre["properties"]["target"]["enum"] = catalogue.targets
    for text in (own["properties"]["text"], libre["properties"]["q"]):
        one, many = text["anyOf"]
        one["maxLength"] = many["items"]["maxLength"] = limits.characters
        many["maxItems"] = limits.sentences
        text["description"] += _bounds(limits)
    said = {"description": libre["properties"]["q"]["description"]}
    form = {
        **libre,
        "properties": {**libre["properties"], "q": {**STRING, "maxLength": limits.characters, **said}},
    }
    form["properties"]["api_key"] = STRING
    return {
        "TranslateRequest": own,
        "LibreRequest": libre,
        "LibreForm": form,
        "DetectRequest": DetectRequest.model_json_schema(),
    }


def _bounds(limits: Limits) -> str:
    """The limits that a schema has no words for: of each line, and of all texts together."""
    return (
        f" A line may have {MOST_LINE_CHARACTERS:,} characters, and all texts together "
        f"{limits.characters:,} in {limits.sentences:,} lines; more is 413. Each sentence of a line is translated for "
        "itself, unless the server takes whole lines."
    )


def _answers() -> Document:
    scored = {"text": STRING, "score": {"type": ["number", "null"]}}
    link = _object(source=RANGE, target=RANGE)
    detected = _object(language=STRING, confidence={"type": "number", "minimum": 0, "maximum": 100})
    texts = {"type": "array", "items": STRING}
    return {
        "Error": _object(error={**STRING, "description": "One sentence."}),
        "TranslateAnswer": _object(
            model=STRING,
            source=STRING,
            target=STRING,
            translations={"type": "array", "items": _ref("Translation")},
        ),
        "Translation": {
            **_object(**scored),
            "properties": {
                **scored,
                "others": {"type": "array", "items": _object(**scored)},
                "alignment": {
                    "type": "array",
                    "items": link,
                    "description": "Characters (from, to) of the text and those of its translation that came of them.",
                },
            },
        },
        "LibreAnswer": {
            "type": "object",
            "required": ["translatedText"],
            "properties": {
                "translatedText": {"anyOf": [STRING, texts]},
                "alternatives": {"anyOf": [texts, {"type": "array", "items": texts}]},
                "detectedLanguage": {
                    "anyOf": [_ref("Detected"), {"type": "array", "items": _ref("Detected")}]
                },
            },
        },
        "Detected": detected,
        "Language": _object(code=STRING, name=STRING, targets=texts),
        "Model": _object(name=STRING, source=STRING, target=STRING, source_name=STRING, target_name=STRING),
    }


def _object(**properties: Document) -> Document:
    return {"type": "object", "required": list(properties), "properties": properties}


def _ref(name: str) -> Document:
    return {"$ref": f"#/components/schemas/{name}"}


def _any(*names: str) -> Document:
    return {"anyOf": [_ref(name) for name in names]} if len(names) > 1 else _ref(names[0])


def _body(*names: str, form: str) -> Document:
    return {
        "required": True,
        "content": {
            "application/json": {"schema": _any(*names)},
            **{
                kind: {"schema": _ref(form)}
                for kind in ("application/x-www-form-urlencoded", "multipart/form-data")
            },
        },
    }


def _json(meaning: str, schema: Document) -> Document:
    return {"description": meaning, "content": {"application/json": {"schema": schema}}}


def _refusals(*statuses: int) -> Document:
    return {str(status): _json(REFUSALS[status], _ref("Error")) for status in sorted(statuses)}


def _get(summary: str, schema: Document, *refusals: int) -> Document:
    answers = {"200": _json(f"{summary}.", schema), **_refusals(*refusals)}
    return {"get": {"summary": summary, "responses": answers}}


def _text(summary: str) -> Document:
    answer = {"description": f"{summary}.", "content": {"text/plain": {"schema": STRING}}}
    return {"get": {"summary": summary, "responses": {"200": answer}}}
