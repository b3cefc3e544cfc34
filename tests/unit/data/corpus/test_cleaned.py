from pathlib import Path

import pytest

from tandem.config import CleanSection, Corpus
from tandem.data.corpus import read
from tandem.data.corpus.cleaned import Cleaned, CleanRules, clean_corpora, open_cleaned
from tandem.data.corpus.files import find_files
from tandem.errors import TandemError

ENGLISH = [f"sentence {number % 37} of {number}" for number in range(200)]
GERMAN = [f"Satz {number % 37} von {number}" for number in range(200)]


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read, "CHUNK_LINES", 32)


def write_corpus(folder: Path, name: str, english: list[str], german: list[str]) -> Corpus:
    paths = {}
    for side, ending, lines in (("source", "en", english), ("target", "de", german)):
        paths[side] = folder / f"{name}.{ending}"
        paths[side].write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return Corpus(name=name, source=paths["source"], target=paths["target"])


def clean(
    folder: Path, *corpora: Corpus, fingerprint: str = "f", workers: int = 1, **rules: object
) -> tuple[Cleaned, bool]:
    files = [find_files(corpus, languages=("en", "de")) for corpus in corpora]
    section = CleanSection.model_validate(rules)
    settings = CleanRules(clean=section, held_out={}, languages=("en", "de"), segmented=False, seed=1)
    return clean_corpora(folder, files, settings, fingerprint=fingerprint, workers=workers)


def all_pairs(cleaned: Cleaned) -> list[tuple[str, str]]:
    return [pair for part in cleaned.parts for pair in part.read()]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_parts_hold_the_pairs_in_order(tmp_path: Path) -> None:
    cleaned, reused = clean(tmp_path / "out", write_corpus(tmp_path, "news", ENGLISH, GERMAN))
    assert all_pairs(cleaned) == list(zip(ENGLISH, GERMAN, strict=True))
    assert (cleaned.pairs, len(cleaned.parts), reused) == (200, 7, False)


def test_one_worker_and_two_write_the_same_bytes(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path, "news", ENGLISH * 2, GERMAN * 2)
    clean(tmp_path / "one", corpus)
    clean(tmp_path / "two", corpus, workers=2)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


def test_duplicates_go_over_parts_and_corpora_and_the_first_stays(tmp_path: Path) -> None:
    first = write_corpus(tmp_path, "first", ENGLISH[:50] + ENGLISH[:10], GERMAN[:50] + GERMAN[:10])
    second = write_corpus(tmp_path, "second", ENGLISH[40:100], GERMAN[40:100])
    cleaned, _ = clean(tmp_path / "out", first, second)
    assert all_pairs(cleaned) == list(zip(ENGLISH[:100], GERMAN[:100], strict=True))
    assert [part.corpus for part in cleaned.parts] == [0, 0, 1, 1]
    tallies = cleaned.tallies
    assert tallies["first"].dropped["exact duplicate"] == tallies["second"].dropped["exact duplicate"] == 10
    assert (tallies["first"].kept, tallies["second"].kept) == (50, 50)
    assert tallies["second"].examples["exact duplicate"][0].source == ENGLISH[40]
    assert len(tallies["second"].examples["exact duplicate"]) == 3


def test_duplicates_stay_where_the_recipe_says_so(tmp_path: Path) -> None:
    cleaned, _ = clean(
        tmp_path / "out", write_corpus(tmp_path, "news", ENGLISH * 2, GERMAN * 2), drop_duplicates=False
    )
    assert cleaned.pairs == 400


def test_a_finished_stage_is_reused_and_a_stale_one_made_again(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path, "news", ENGLISH, GERMAN)
    clean(tmp_path / "out", corpus)
    assert clean(tmp_path / "out", corpus)[1]
    cleaned, reused = clean(tmp_path / "out", corpus, fingerprint="other", max_word_characters=8)
    assert (reused, cleaned.pairs) == (False, 200)


def test_an_interrupted_stage_goes_on_with_the_parts_that_are_whole(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path, "news", ENGLISH, GERMAN)
    clean(tmp_path / "whole", corpus)
    stopped = write_corpus(tmp_path, "news", ENGLISH, GERMAN[:-1])
    with pytest.raises(TandemError, match="sides differ"):
        clean(tmp_path / "out", stopped)
    partial = tmp_path / "out.partial"
    times = {path.name: path.stat().st_mtime_ns for path in partial.glob("0000-*.tsv.zst")}
    assert len(times) == 6
    (partial / "0000-0000002.keys.tmp").unlink()
    write_corpus(tmp_path, "news", ENGLISH, GERMAN)
    clean(tmp_path / "out", corpus)
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")
    kept = [name for name, time in times.items() if (tmp_path / "out" / name).stat().st_mtime_ns == time]
    assert sorted(times.keys() - kept) == ["0000-0000002.tsv.zst"]


def test_a_corpus_of_which_nothing_stays_is_an_error_with_the_reasons(tmp_path: Path) -> None:
    with pytest.raises(TandemError, match="left none of the 200 pairs of corpus news.*200 identical sides"):
        clean(tmp_path / "out", write_corpus(tmp_path, "news", ENGLISH, ENGLISH))
    assert not (tmp_path / "out").exists()


def test_an_opened_stage_is_the_finished_one(tmp_path: Path) -> None:
    cleaned, _ = clean(tmp_path / "out", write_corpus(tmp_path, "news", ENGLISH, GERMAN))
    assert open_cleaned(tmp_path / "out") == cleaned
