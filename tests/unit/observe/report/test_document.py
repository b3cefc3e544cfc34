import json
import math
import re
from pathlib import Path

from tests.unit.observe.report.told_run import bare_run, build_report, finding

from tandem.observe.finding import Evidence
from tandem.observe.report.document import SCHEMA_VERSION, report_document
from tandem.observe.report.files import document_text


def test_the_document_is_strict_json_with_unknowns_as_null() -> None:
    unknown = finding(evidence=(Evidence(name="n", value=math.nan, definition="d"),))
    document = json.loads(document_text(build_report(findings=(unknown,))))
    assert document["version"] == SCHEMA_VERSION
    assert document["findings"][0]["evidence"][0]["value"] is None
    assert document["run"]["steps"] == 1500
    assert document["evaluations"][-1]["step"] == 1500
    assert document["checkpoints"][0]["is_removed"] is True
    assert set(document["hosts"]) == {"alpha", "beta"}


def test_a_bare_run_has_the_same_keys() -> None:
    whole, bare = report_document(build_report()), report_document(build_report(bare_run()))
    assert whole.keys() == bare.keys()
    assert bare["data_card"] is None


def test_every_field_is_described(repository: Path) -> None:
    page = (repository / "docs" / "report.md").read_text(encoding="utf-8")
    described = set(re.findall(r"^\| `([a-z_]+)`", page, flags=re.MULTILINE))
    document = json.loads(document_text(build_report()))
    fields = {
        *document,
        *document["run"],
        *document["findings"][0],
        *document["findings"][0]["evidence"][0],
        *document["evaluations"][0],
        *document["checkpoints"][0],
    }
    assert fields <= described
    assert f"version {SCHEMA_VERSION}" in page
