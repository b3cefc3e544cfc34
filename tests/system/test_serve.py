"""`tandem serve` as a process: the same translations as offline, and an end that loses nothing."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from html import escape
from pathlib import Path

import httpx
import pytest
import typer
from tests.unit.translate.small_model import SENTENCES, write_run, write_subword
from typer.testing import CliRunner

from tandem.cli.serve import serve
from tandem.errors import TandemError
from tandem.translate.open import open_model

TANDEM = str(Path(sys.executable).with_name("tandem"))
DEADLINE_S = 120.0


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("served")
    write_subword(folder / "subword")
    write_run(folder / "run", folder / "subword", bleu={10: 3.0})
    return folder / "run"


@pytest.fixture
def server(run: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    words = [TANDEM, "serve", f"small={run}", "--port", "0", "--engine", "torch", "--device", "cpu"]
    with subprocess.Popen(
        words, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONWARNINGS": "error"}
    ) as process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith("opening small (")
        started = process.stderr.readline()
        assert started.startswith("Translating at http://127.0.0.1:"), started + process.stderr.read()
        yield process, started.split()[-1]
        process.kill()


def test_it_translates_as_offline_and_ends_without_losing_a_request(
    run: Path, server: tuple[subprocess.Popen[str], str]
) -> None:
    process, url = server
    portions = [SENTENCES[start : start + 40] for start in range(0, 280, 40)]

    def ask(portion: list[str]) -> httpx.Response:
        return httpx.post(f"{url}translate", json={"text": portion}, timeout=DEADLINE_S)

    with httpx.Client(base_url=url, timeout=DEADLINE_S) as client, ThreadPoolExecutor(len(portions)) as pool:
        page = {"q": f"<p>{SENTENCES[0]}</p>", "source": "en", "target": "de", "format": "html"}
        html = client.post("/translate", json=page).json()["translatedText"]
        asked = [pool.submit(ask, portion) for portion in portions]
        until = time.monotonic() + DEADLINE_S
        while _taken_on(client.get("/metrics").text) < 1 + len(portions):
            assert time.monotonic() < until
        process.send_signal(signal.SIGTERM)
        answers = [each.result() for each in asked]
    assert process.wait(DEADLINE_S) == 0
    assert process.stderr is not None
    assert process.stderr.read().splitlines()[-1] == "Ended: every request that was taken on is answered."
    offline = open_model(run, engine="torch", device="cpu")
    for portion, answer in zip(portions, answers, strict=True):
        assert answer.status_code == 200
        told = [each["text"] for each in answer.json()["translations"]]
        assert told == [each.text for each in offline.translate(portion)]
    assert html == f"<p>{escape(answers[0].json()['translations'][0]['text'], quote=False)}</p>"
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{url}healthz")


def _taken_on(metrics: str) -> int:
    figures = dict(line.rsplit(" ", 1) for line in metrics.splitlines() if not line.startswith("#"))
    answered = figures.get('tandem_requests_total{path="/translate",status="200"}', "0")
    return int(figures["tandem_requests_open"]) + int(answered)


def test_a_model_folder_with_a_corrupt_file_is_not_served(run: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(run, copy)
    (weights,) = copy.glob("checkpoints/*/model.safetensors")
    weights.write_bytes(weights.read_bytes()[:-1] + b"\x00")
    app = typer.Typer()
    app.command()(serve)
    result = CliRunner().invoke(app, [str(copy), "--port", "0", "--engine", "torch"])
    assert isinstance(result.exception, TandemError)
    assert "model.safetensors" in str(result.exception)
