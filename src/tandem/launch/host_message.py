"""What a host of a run may say to the head: a message of any other form makes no sense, and costs the host its part."""

from ipaddress import ip_address
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, ValidationError

from tandem.launch.channel import Message
from tandem.launch.report import read_failure

__all__ = ["NonsenseError", "check_message"]

MOST_RANKS = 1 << 16
_LAST_SIGNAL = 64

_Count = Annotated[int, Field(ge=0, lt=1 << 62)]
_Rank = Annotated[str, Field(pattern=r"^[0-9]{1,5}$")]
_Word = Annotated[str, Field(max_length=300)]
_Sentence = Annotated[str, Field(max_length=100_000)]
_Seconds = Annotated[float, Field(gt=-1e12, lt=1e12)]
_ExitCode = Annotated[int, Field(ge=-_LAST_SIGNAL, le=255)]


class NonsenseError(ValueError):
    """A message that no host of this version of Tandem sends."""


def check_message(message: Message) -> None:
    """Raise NonsenseError for a message that is not as the hosts of this version send it."""
    form = _FORMS.get(str(message.get("is")))
    if form is None:
        raise NonsenseError("it is of no known kind")
    try:
        form.model_validate(dict(message))
    except ValidationError as error:
        raise NonsenseError(
            f"it is no {message['is']!r}: {error.error_count()} parts are missing or wrong"
        ) from None


def _is_address(text: str) -> str:
    # The scope of a link-local address is a name of its host's.
    ip_address(text.partition("%")[0])
    return text


def _is_failure(document: JsonValue) -> JsonValue:
    read_failure(document)
    return document


class _Form(BaseModel):
    """A kind of message; what else is in it is not looked at."""

    model_config = ConfigDict(strict=True, extra="ignore", allow_inf_nan=False)


class _Opened(_Form):
    disk: _Word
    identity: _Word
    tandem: _Word
    torch: _Word
    device: Annotated[str, Field(pattern=r"^[a-z0-9:]{1,40}$")]
    workers: Annotated[int, Field(ge=1, lt=MOST_RANKS)]
    connection: _Word
    time_s: _Seconds


class _Routed(_Form):
    address: Annotated[_Word, AfterValidator(_is_address)]
    nic: Annotated[str, Field(pattern=r"^[^\s/]{0,64}$")]
    is_private: bool


class _Listening(_Form):
    port: Annotated[int, Field(ge=1, le=65_535)]
    certificate: Annotated[
        str,
        Field(
            max_length=10_000,
            pattern=r"^-----BEGIN CERTIFICATE-----\n[A-Za-z0-9+/=\n]+-----END CERTIFICATE-----\n$",
        ),
    ]


class _Reserved(_Form):
    port: Annotated[int, Field(ge=1, le=65_535)]


class _Standing(_Form):
    step: _Count
    begun: _Count
    done: _Count
    collective: _Word
    changed_s: _Seconds


class _Beat(_Form):
    round: _Count
    pulses: Annotated[dict[_Rank, _Standing], Field(max_length=MOST_RANKS)] | None


class _Log(_Form):
    file: _Word
    offset: _Count
    text: str


class _Ended(_Form):
    round: _Count
    failed: Annotated[dict[_Rank, _ExitCode], Field(max_length=MOST_RANKS)]
    failures: Annotated[list[Annotated[JsonValue, AfterValidator(_is_failure)]], Field(max_length=MOST_RANKS)]
    missed: _Sentence
    was_ended: bool
    newest: _Count | None
    leaves: bool


class _Refused(_Form):
    message: _Sentence


_FORMS: dict[str, type[_Form]] = {
    "opened": _Opened,
    "routed": _Routed,
    "listening": _Listening,
    "reserved": _Reserved,
    "beat": _Beat,
    "log": _Log,
    "flushed": _Form,
    "ended": _Ended,
    "refused": _Refused,
}
