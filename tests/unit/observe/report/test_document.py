import json
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
from tests.unit.observe.report.told_run import bare_run, build_report, build_run, finding
from tests.unit.observe.verdicts.series_story import (
    build_checkpoint,
    build_evaluations,
    build_imported,
    build_ranks,
    build_samples,
    build_start,
    build_steps,
)

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


def test_what_another_tool_did_not_say_is_null() -> None:
    start = build_start(ranks=0, parameters=0, device="", precision="")
    checkpoint = build_checkpoint(bytes=0, files={}, blocked_s=math.nan, write_s=math.nan)
    steps = build_steps(9, target_tokens=np.zeros(9, np.int64))
    series = build_run(
        imported=build_imported(times="none"),
        starts=((0.0, start),),
        steps=steps,
        ranks=build_ranks(steps),
        checkpoints=(checkpoint,),
        evaluations=build_evaluations([5], [2.0], valid_tokens=0),
    )
    document = json.loads(document_text(build_report(series)))
    unknown = {"begun_ns", "seconds", "target_tokens", "ranks", "parameters", "device", "precision"}
    assert {name for name, value in document["run"].items() if value is None} == unknown
    wrote = document["checkpoints"][0]
    unknown = {"time_s", "bytes", "blocked_s", "write_s", "files", "is_removed", "is_rejected"}
    assert {name for name, value in wrote.items() if value is None} == unknown
    assert document["evaluations"][0]["valid_tokens"] is None
    assert document["evaluations"][0]["time_s"] is None


def test_ranks_are_those_that_trained() -> None:
    series = build_run(starts=((0.0, build_start(ranks=6)),))
    assert json.loads(document_text(build_report(series)))["run"]["ranks"] == 6
    imported = build_run(imported=build_imported(), starts=((0.0, build_start(ranks=8)),))
    assert json.loads(document_text(build_report(imported)))["run"]["ranks"] == 8


def test_what_a_sampler_did_not_know_is_null() -> None:
    samples = build_samples()
    described = replace(samples.described, cores=-1, memory_bytes=-1, gpu_memory_bytes=(-1,))
    series = build_run(samples={"alpha": replace(samples, described=described)})
    host = json.loads(document_text(build_report(series)))["hosts"]["alpha"]
    assert (host["cores"], host["memory_bytes"], host["gpu_memory_bytes"]) == (None, None, [None])


def test_text_that_is_no_unicode_is_written_out() -> None:
    series = build_run(name="a\udcff", recipe={"k\udcff": "v\udcff"})
    document = json.loads(document_text(build_report(series)).encode())
    assert document["run"]["name"] == "a\\udcff"
    assert document["recipe"] == {"k\\udcff": "v\\udcff"}
