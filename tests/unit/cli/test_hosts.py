"""The short look before a run on several hosts: what stops it, and what is a warning."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.launch.doctor.findings import examination, host, link

from tandem.cli.hosts import HostsOptions, _examine
from tandem.config import load_recipe
from tandem.errors import TandemError
from tandem.launch.doctor import look
from tandem.launch.doctor.facts import LinkFacts
from tandem.launch.hosts import read_hosts
from tandem.launch.ssh import Ssh
from tandem.runlog.writer import NullLog

NAN = float("nan")


def examine(links: list[LinkFacts], repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        look, "look", lambda *_, **__: replace(examination([host("a"), host("b")], links), tandem="0.1.0")
    )
    recipe = load_recipe(repository / "recipes" / "demo.yaml").recipe
    _examine(recipe, read_hosts("a,b"), Ssh(), HostsOptions(hosts="a,b"), NullLog())


def test_a_link_that_crawls_is_a_warning_with_what_it_costs(
    repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    links = [link("a", "b", bytes_per_s=1e6), link("b", "a", bytes_per_s=1e8)]
    examine(links, repository, monkeypatch)
    said = capsys.readouterr().err
    assert "warning: a → b, link: 8 Mb/s" in said
    assert "more a step" in said


def test_a_link_that_carries_no_data_stops_the_run(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stuck = replace(link(), latency_s=NAN, bytes_per_s=NAN, loss=NAN, problem="a: timed out")
    with pytest.raises(TandemError, match="carries no data"):
        examine([stuck], repository, monkeypatch)
