import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tandem.config import Recipe
from tandem.data.corpus import read
from tandem.data.prepare import prepare
from tandem.data.prepared import Prepared, open_prepared
from tandem.errors import TandemError
from tandem.lock import InUseError, holding, using
from tandem.runlog.event import DataPrepared, Event, StageFinished

BuildRecipe = Callable[..., Recipe]
Pairs = list[tuple[str, str]]


class Notes:
    """A run log that remembers."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def log(self, event: Event) -> None:
        self.events.append(event)

    def close(self) -> None:
        pass

    def reused(self) -> dict[str, bool]:
        return {event.stage: event.reused for event in self.events if isinstance(event, StageFinished)}


def run(recipe: Recipe, workers: int = 1) -> tuple[Prepared, dict[str, bool]]:
    notes = Notes()
    prepared = prepare(recipe, workers=workers, log=notes)
    assert isinstance(notes.events[-1], DataPrepared)
    return prepared, notes.reused()


def decoded(prepared: Prepared) -> Pairs:
    shards, subword = prepared.train(), prepared.subword()
    source, target = shards.gather(np.arange(len(shards)))
    return [
        (subword.source.decode(left.tolist()), subword.target.decode(right.tolist()))
        for left, right in zip(
            np.split(source.ids, np.cumsum(source.lengths)[:-1]),
            np.split(target.ids, np.cumsum(target.lengths)[:-1]),
            strict=True,
        )
    ]


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.mark.parametrize(
    "subword", [{}, {"joint": False}, {"kind": "unigram", "vocabulary": 500, "max_pieces": 128}]
)
def test_shards_hold_the_training_text_in_order(
    build_recipe: BuildRecipe, pairs: Pairs, subword: dict[str, Any]
) -> None:
    prepared, _ = run(build_recipe(subword=subword, model={"tied": "target"}))
    assert decoded(prepared) == pairs[:1_400]
    assert prepared.subword().vocabulary % 8 == 0


def test_any_number_of_workers_writes_the_same_bytes(
    build_recipe: BuildRecipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read, "CHUNK_LINES", 150)
    one, _ = run(build_recipe(data={"folder": str(tmp_path / "one")}))
    two, _ = run(build_recipe(data={"folder": str(tmp_path / "two")}), workers=2)
    for stage in ("clean", "subword", "train", "held-out"):
        assert contents(one.folder / stage) == contents(two.folder / stage)
    assert len(list(one.train_folder.glob("*.bin"))) == 10


def test_a_second_run_does_nothing(build_recipe: BuildRecipe) -> None:
    prepared, first = run(build_recipe())
    before = contents(prepared.folder)
    _, second = run(build_recipe())
    assert not any(first.values())
    assert second == {"clean": True, "subword": True, "encode": True, "card": False}
    assert contents(prepared.folder) == before


@pytest.mark.parametrize(
    ("changes", "stale"),
    [
        ({"clean": {"max_words": 70}}, {"clean", "subword", "encode"}),
        ({"subword": {"vocabulary": 608}}, {"subword", "encode"}),
        ({"subword": {"max_pieces": 32}}, {"encode"}),
        ({"batch": {"target_tokens": 1_024}}, set()),
        ({"seed": 2}, set()),
    ],
)
def test_only_what_depends_on_a_change_is_made_again(
    build_recipe: BuildRecipe, changes: dict[str, Any], stale: set[str]
) -> None:
    run(build_recipe())
    _, reused = run(build_recipe(**changes))
    assert {stage for stage, was in reused.items() if not was} == stale | {"card"}


def test_a_changed_file_is_stale_and_a_touched_one_is_not(build_recipe: BuildRecipe, tmp_path: Path) -> None:
    run(build_recipe())
    os.utime(tmp_path / "first.en")
    assert run(build_recipe())[1]["clean"]
    with (tmp_path / "first.en").open("a") as english, (tmp_path / "first.de").open("a") as german:
        english.write("One more sentence.\n")
        german.write("Noch ein Satz.\n")
    prepared, reused = run(build_recipe())
    assert not reused["clean"]
    assert ("One more sentence.", "Noch ein Satz.") in decoded(prepared)


def test_a_changed_weight_changes_the_plan_and_no_stage(build_recipe: BuildRecipe, tmp_path: Path) -> None:
    run(build_recipe())
    recipe = build_recipe()
    doubled = recipe.data.train[1].model_copy(update={"weight": 3.0})
    data = recipe.data.model_copy(update={"train": (recipe.data.train[0], doubled)})
    prepared, reused = run(recipe.model_copy(update={"data": data}))
    assert reused["encode"]
    plan = prepared.plan()
    from tandem.data.batches.plan import Cursor

    seen = Counter(
        int(pair) for update in range(plan.updates(0)) for pair in plan.update(Cursor(update=update)).pairs
    )
    assert {seen[pair] for pair in range(1_000)} == {1}
    assert {seen[pair] for pair in range(1_000, 1_400)} == {3}


def test_training_text_that_is_held_out_is_dropped_and_counted_by_set(
    build_recipe: BuildRecipe, tmp_path: Path, pairs: Pairs
) -> None:
    for ending, side in (("en", 0), ("de", 1)):
        with (tmp_path / f"second.{ending}").open("a", encoding="utf-8") as file:
            file.write("".join(f"{pair[side].upper()}\n" for pair in pairs[1_440:1_453]))
    prepared, _ = run(build_recipe())
    assert decoded(prepared) == pairs[:1_400]
    assert {held_out.name: held_out.overlap_removed for held_out in prepared.card().held_out} == {
        "valid": 10,
        "test-test": 3,
    }


def test_held_out_text_is_kept_as_it_is_and_never_filtered(build_recipe: BuildRecipe, tmp_path: Path) -> None:
    english = ["Tu\u0308r  and <b>door</b>", "", "word " * 200]
    german = ["Tür", "leer\u2028hier", "Wort"]
    (tmp_path / "valid.en").write_text(
        "".join(f"{line}\r\n" for line in english), encoding="utf-8", newline=""
    )
    (tmp_path / "valid.de").write_text("".join(f"{line}\n" for line in german), encoding="utf-8", newline="")
    prepared, _ = run(build_recipe())
    text = prepared.held_out_text("valid")
    assert (list(text.source), list(text.target)) == (english, german)
    assert len(prepared.held_out("valid")) == 3


def test_held_out_text_that_cannot_be_read_stops_with_its_line(
    build_recipe: BuildRecipe, tmp_path: Path
) -> None:
    lines = (tmp_path / "valid.en").read_bytes().split(b"\n")
    lines[7] = b"caf\xe9"
    (tmp_path / "valid.en").write_bytes(b"\n".join(lines))
    with pytest.raises(
        TandemError, match=r"Line 8 of the held-out set valid \(valid.en, valid.de\) is not UTF-8"
    ):
        run(build_recipe())


def test_sentences_with_too_many_pieces_are_dropped_and_counted(
    build_recipe: BuildRecipe, pairs: Pairs
) -> None:
    prepared, _ = run(build_recipe(subword={"max_pieces": 12}))
    card = prepared.card()
    dropped = {reason.reason: reason.count for reason in card.dropped}
    assert 0 < dropped["over 12 pieces"] == 1_400 - card.stored.pairs
    assert max(card.lengths.source.edges[-1], card.lengths.target.edges[-1]) <= 12
    assert set(decoded(prepared)) < set(pairs)


def test_a_model_of_ones_own_is_taken_as_it_is(build_recipe: BuildRecipe, tmp_path: Path) -> None:
    prepared, _ = run(build_recipe())
    own = tmp_path / "own.model"
    own.write_bytes((prepared.subword_folder / "subword.model").read_bytes())
    again, _ = run(build_recipe(subword={"model": str(own)}, data={"folder": str(tmp_path / "again")}))
    assert again.subword().source.fingerprint == prepared.subword().source.fingerprint
    assert decoded(again) == decoded(prepared)


def test_segmented_text_keeps_its_pieces(build_recipe: BuildRecipe, tmp_path: Path) -> None:
    for path in tmp_path.glob("*.??"):
        path.write_text(path.read_text(encoding="utf-8").replace("en ", "@@ en "), encoding="utf-8")
    prepared, _ = run(build_recipe(subword={"kind": "segmented", "vocabulary": 8_000}))
    card = prepared.card()
    assert card.vocabulary.kind == "segmented"
    assert card.fertility.target > 1
    assert card.vocabulary.unknown_pieces == 0


def test_too_large_a_vocabulary_names_the_largest_that_works(build_recipe: BuildRecipe) -> None:
    with pytest.raises(
        TandemError, match=r"too small for 30,000 pieces: set subword.vocabulary=\d+"
    ) as caught:
        run(build_recipe(subword={"vocabulary": 30_000}))
    most = int(str(caught.value).split("=")[1].split(" ")[0])
    assert run(build_recipe(subword={"vocabulary": most}))[0].subword().vocabulary == most


def test_a_missing_file_stops_before_any_work(build_recipe: BuildRecipe, tmp_path: Path) -> None:
    (tmp_path / "second.de").unlink()
    with pytest.raises(TandemError, match=r"no file .*second\.de"):
        run(build_recipe())
    assert not (tmp_path / "prepared").exists()


def test_a_prepared_folder_opens_by_itself(build_recipe: BuildRecipe) -> None:
    prepared, _ = run(build_recipe())
    opened = open_prepared(prepared.folder)
    assert opened.recipe == prepared.recipe
    assert opened.card() == prepared.card()
    with pytest.raises(TandemError, match="holds no finished data"):
        open_prepared(prepared.folder / "train")


def test_the_card_adds_up(build_recipe: BuildRecipe, pairs: Pairs) -> None:
    card = run(build_recipe())[0].card()
    assert card.raw.lines == card.stored.pairs + sum(reason.count for reason in card.dropped) == 1_400
    assert card.words.source == sum(len(source.split()) for source, _ in pairs[:1_400])
    assert card.cleaned.target_bytes == sum(len(f"{target}\n".encode()) for _, target in pairs[:1_400])
    assert sum(card.lengths.target.counts) == 1_400
    pieces = card.tokens.target - 1_400
    assert card.fertility.target == pytest.approx(pieces / card.words.target)
    assert [corpus.name for corpus in card.corpora] == ["first", "second"]
    assert 0 <= card.batching.padded_share < 0.3
    assert len(card.examples) == 5


def test_two_preparations_of_one_folder_do_not_mix(build_recipe: BuildRecipe) -> None:
    recipe = build_recipe()
    with holding(recipe.prepared_folder), pytest.raises(TandemError, match="is being made by process"):
        run(recipe)


def test_a_renamed_corpus_is_known_by_its_new_name(build_recipe: BuildRecipe) -> None:
    for name in ("one", "two"):
        train = [{"builtin": {"pairs": 300}, "name": name}]
        prepared, _ = run(build_recipe(data={"train": train}, subword={"vocabulary": 400}))
        assert [corpus.name for corpus in prepared.card().corpora] == [name]


def test_overlap_is_counted_under_the_role_that_a_set_has_now(
    build_recipe: BuildRecipe, tmp_path: Path
) -> None:
    same = {"source": str(tmp_path / "second.en"), "target": str(tmp_path / "second.de")}
    train = [{"source": str(tmp_path / "both.en"), "target": str(tmp_path / "both.de")}]
    for ending in ("en", "de"):
        parts = [(tmp_path / f"{name}.{ending}").read_bytes() for name in ("first", "second")]
        (tmp_path / f"both.{ending}").write_bytes(b"".join(parts))
    for roles in ({"valid": same, "test": []}, {"valid": None, "test": [same]}):
        prepared, _ = run(build_recipe(data={"train": train, **roles}))
        assert [held.overlap_removed for held in prepared.card().held_out] == [400]


def test_a_card_vouches_for_finished_data_only(build_recipe: BuildRecipe) -> None:
    prepared, _ = run(build_recipe())
    with pytest.raises(TandemError, match="too small"):
        run(build_recipe(subword={"vocabulary": 30_000}))
    with pytest.raises(TandemError, match="holds no finished data"):
        open_prepared(prepared.folder)
    run(build_recipe())
    assert open_prepared(prepared.folder).card().stored.pairs == 1_400


def test_shards_follow_the_model_itself(build_recipe: BuildRecipe, tmp_path: Path, pairs: Pairs) -> None:
    prepared, _ = run(build_recipe())
    own = tmp_path / "own.model"
    for vocabulary in (620, 640):
        other, _ = run(
            build_recipe(data={"folder": str(tmp_path / "other")}, subword={"vocabulary": vocabulary})
        )
        own.write_bytes((other.subword_folder / "subword.model").read_bytes())
        prepared, reused = run(build_recipe(subword={"model": str(own)}))
        assert not reused["encode"]
        assert decoded(prepared) == pairs[:1_400]
        assert prepared.card().vocabulary.kind == "your own model"


def test_a_model_that_is_no_file_stops_before_any_work(build_recipe: BuildRecipe, tmp_path: Path) -> None:
    with pytest.raises(TandemError, match="subword.model names .*, which is no file"):
        run(build_recipe(subword={"model": str(tmp_path)}))
    assert not (tmp_path / "prepared").exists()


def test_names_of_held_out_sets_do_not_collide_with_ours(build_recipe: BuildRecipe, tmp_path: Path) -> None:
    files = {"source": str(tmp_path / "test.en"), "target": str(tmp_path / "test.de")}
    names = ["x", "x-text", "x.partial", "x.old"]
    prepared, _ = run(build_recipe(data={"test": [{**files, "name": name} for name in names]}))
    assert [held_out.pairs for held_out in prepared.card().held_out] == [50] * 5


class Onlooker(Notes):
    """A run log whose every event finds the data open to a run that starts just then."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    def log(self, event: Event) -> None:
        super().log(event)
        open_prepared(self._folder).card()


def stats(folder: Path) -> dict[str, tuple[int, int]]:
    found = ((path, path.stat()) for path in sorted(folder.rglob("*")))
    return {str(path.relative_to(folder)): (facts.st_ino, facts.st_mtime_ns) for path, facts in found}


def test_fresh_data_stays_untouched_beside_its_user(build_recipe: BuildRecipe) -> None:
    prepared, _ = run(build_recipe())
    before = stats(prepared.folder)
    with using(prepared.folder):
        notes = Onlooker(prepared.folder)
        prepare(build_recipe(), workers=1, log=notes)
    assert len(notes.events) == 9
    assert stats(prepared.folder) == before


def test_a_recipe_that_differs_in_no_stage_is_written_down_beside_a_user(build_recipe: BuildRecipe) -> None:
    prepared, _ = run(build_recipe())
    before = stats(prepared.folder)
    with using(prepared.folder):
        prepare(build_recipe(batch={"target_tokens": 1_024}), workers=1, log=Onlooker(prepared.folder))
    after = stats(prepared.folder)
    assert {name for name in after if after[name] != before[name]} == {"recipe.yaml", "card.json"}
    opened = open_prepared(prepared.folder)
    assert opened.recipe.batch.target_tokens == opened.card().batching.target_tokens == 1_024


def test_a_card_that_is_lost_or_damaged_is_written_beside_a_user(build_recipe: BuildRecipe) -> None:
    prepared, _ = run(build_recipe())
    card = prepared.card()
    with using(prepared.folder):
        for harm in (Path.unlink, lambda path: path.write_text("{")):
            harm(prepared.card_file)
            assert run(build_recipe())[0].card() == card


@pytest.mark.parametrize(
    "changes",
    [
        {"clean": {"max_words": 70}},
        {"subword": {"vocabulary": 608}},
        {"subword": {"max_pieces": 32}},
        {
            "data": {"valid": {"builtin": {"split": "valid", "pairs": 50}}},
            "clean": {"drop_held_out_overlap": True},
        },
    ],
)
def test_other_data_is_refused_while_a_run_uses_the_folder(
    build_recipe: BuildRecipe, changes: dict[str, Any]
) -> None:
    prepared, _ = run(build_recipe())
    before = stats(prepared.folder)
    with using(prepared.folder):
        message = (
            f"prepared is in use by process {os.getpid()}: wait until that run ends, or give data.folder"
        )
        with pytest.raises(InUseError, match=message):
            run(build_recipe(**changes))
        assert stats(prepared.folder) == before
    _, reused = run(build_recipe(**changes))
    assert not reused["encode"]


def test_changed_text_is_refused_while_a_run_uses_the_folder(
    build_recipe: BuildRecipe, tmp_path: Path
) -> None:
    prepared, _ = run(build_recipe())
    expected = decoded(prepared)
    for path in (tmp_path / "valid.en", tmp_path / "first.en"):
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace(" ", "  new ", 1), encoding="utf-8")
        with using(prepared.folder), pytest.raises(InUseError):
            run(build_recipe())
        assert decoded(open_prepared(prepared.folder)) == expected
        path.write_text(text, encoding="utf-8")
    with using(prepared.folder):
        run(build_recipe())


def test_data_is_free_again_after_it_was_made(build_recipe: BuildRecipe, tmp_path: Path) -> None:
    prepared, _ = run(build_recipe())
    assert not list(tmp_path.glob("prepared.*"))
    with using(prepared.folder):
        pass
