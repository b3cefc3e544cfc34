"""A comparison as JSON, for machines; docs/compare.md describes it."""

import json
from dataclasses import asdict

from tandem import __version__
from tandem.artefact import JsonValue
from tandem.observe.compare.comparison import Comparison
from tandem.observe.report.strict import strict_json

__all__ = ["SCHEMA_VERSION", "comparison_text"]

SCHEMA_VERSION = 1


def comparison_text(comparison: Comparison) -> str:
    """The JSON, laid out for reading; what is not known is null."""
    held: dict[str, JsonValue] = {
        "version": SCHEMA_VERSION,
        "tandem": __version__,
        "runs": strict_json(
            [
                {"name": name, "headline": line}
                for name, line in zip(comparison.named, comparison.headlines, strict=True)
            ]
        ),
        "notes": strict_json(comparison.notes),
        "repeats": strict_json([asdict(each) for each in comparison.repeats]),
        "judgements": strict_json([asdict(each) for each in comparison.judgements]),
        "differences": strict_json([asdict(each) for each in comparison.differences]),
    }
    return json.dumps(held, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
