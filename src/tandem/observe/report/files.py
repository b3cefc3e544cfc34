"""Writing a report beside its run, or where a person wants it."""

import json
from pathlib import Path

from tandem.artefact import write_atomic
from tandem.errors import TandemError
from tandem.files import make_folder
from tandem.observe.report.document import report_document
from tandem.observe.report.gather import Report
from tandem.observe.report.html import report_page
from tandem.runlog.layout import RunLayout

__all__ = ["document_text", "write_files", "write_text"]


def document_text(report: Report) -> str:
    """The JSON of a report, laid out for reading."""
    return json.dumps(report_document(report), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def write_text(path: Path, content: bytes) -> None:
    """Write a file of the report, whole or not at all; its folder is made where only that is missing."""
    try:
        path.parent.mkdir(exist_ok=True)
        write_atomic(path, content)
    except OSError as error:
        raise TandemError(
            f"Cannot write {path}: {error.strerror or error}; name a file in a folder that you can write to."
        ) from error


def write_files(report: Report, run: Path) -> None:
    """Write the page and the JSON into the run's folder of reports, which must not lead out of the run."""
    folder = RunLayout(run).report
    make_folder(folder)
    write_text(folder / "report.html", report_page(report))
    write_text(folder / "report.json", document_text(report).encode())
