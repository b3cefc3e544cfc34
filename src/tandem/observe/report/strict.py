"""Anything that a report holds as JSON that every reader takes: no NaN, no infinity, no half of a character."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from tandem.artefact import JsonValue

__all__ = ["encodable", "strict_json"]


def encodable(text: str) -> str:
    """Text that has a UTF-8 form: lone surrogates, as of a file name that is no UTF-8, are written out."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def strict_json(value: object) -> JsonValue:
    """A copy whose numbers are all finite, null instead of others, and whose texts can all be encoded."""
    if isinstance(value, float | np.floating):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, str):
        return encodable(value)
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, Mapping):
        return {encodable(str(key)): strict_json(each) for key, each in value.items()}
    if isinstance(value, Sequence):
        return [strict_json(each) for each in value]
    return encodable(str(value))
