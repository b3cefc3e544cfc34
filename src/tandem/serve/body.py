"""The body of a request: bounded while it is read, JSON or a form of either kind."""

import asyncio
import json
import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from starlette.requests import ClientDisconnect, Request

from tandem.serve import multipart
from tandem.web.refusal import Refusal

__all__ = ["BodyReader"]

FORM = "application/x-www-form-urlencoded"
JSON = "application/json"

SPILLED_BYTES = 32 * 2**20
"""Read and forgotten of a body that is too long: a client that is still sending would not see the answer."""

MOST_FIELDS = 100

SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyReader:
    """Reads the fields of bodies that are not too long and not too slow."""

    most_bytes: int
    most_s: float

    async def read(self, request: Request) -> tuple[dict[str, Any], bool]:
        """The fields of a JSON object or of a form, and whether it was a form."""
        content_type = request.headers.get("content-type", JSON)
        kind = content_type.partition(";")[0].strip().lower()
        if kind not in {FORM, JSON, multipart.KIND}:
            raise Refusal(
                415,
                f"The body must be {JSON}, {FORM} or {multipart.KIND}: set the Content-Type header to what it is.",
            )
        body = await self._whole_body(request)
        if kind == multipart.KIND:
            return dict(multipart.read_parts(body, content_type, most=MOST_FIELDS)), True
        text = _decoded(body)
        # What `curl -d` sends is called a form whatever it is.
        is_form = kind == FORM and not text.startswith("{")
        return (_form(text) if is_form else _json_object(text)), is_form

    async def _whole_body(self, request: Request) -> bytes:
        try:
            async with asyncio.timeout(self.most_s):
                return await self._bytes(request)
        except TimeoutError:
            raise Refusal(
                408,
                f"The request did not arrive whole within {self.most_s:g} s.",
                headers={"Connection": "close"},
            ) from None
        except ClientDisconnect:
            raise Refusal(400, "The request ended before its body did.") from None

    async def _bytes(self, request: Request) -> bytes:
        body = bytearray()
        length = 0
        async for chunk in request.stream():
            length += len(chunk)
            if length <= self.most_bytes:
                body += chunk
            elif length > SPILLED_BYTES:
                break
        if length > self.most_bytes:
            raise Refusal(
                413,
                f"The request is longer than {self.most_bytes:,} bytes: send it in parts.",
                headers={"Connection": "close"},
            )
        return bytes(body)


def _decoded(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError:
        raise Refusal(400, "The body is not UTF-8.") from None


def _form(text: str) -> dict[str, Any]:
    try:
        return dict(parse_qsl(text, keep_blank_values=True, errors="replace", max_num_fields=MOST_FIELDS))
    except ValueError:
        raise Refusal(400, f"The form has more than {MOST_FIELDS} fields.") from None


def _json_object(text: str) -> dict[str, Any]:
    try:
        value = _whole(json.loads(text, parse_constant=_refuse_constant))
    except json.JSONDecodeError as error:
        raise Refusal(
            400, f"The body is not JSON: {error.msg} at line {error.lineno}, column {error.colno}."
        ) from None
    except (ValueError, RecursionError):  # a number of thousands of digits; brackets in brackets
        raise Refusal(400, "The body is not JSON that can be read here.") from None
    if not isinstance(value, dict):
        raise Refusal(422, 'The body must be a JSON object, as in {"text": "Good morning."}.')
    return value


def _refuse_constant(name: str) -> None:
    raise ValueError(name)


def _whole(value: Any) -> Any:
    """The value with halves of characters, which JSON can write but UTF-8 cannot, replaced."""
    match value:
        case str():
            return SURROGATE.sub("\ufffd", value)
        case list():
            return [_whole(each) for each in value]
        case dict():
            return {_whole(name): _whole(each) for name, each in value.items()}
    return value
