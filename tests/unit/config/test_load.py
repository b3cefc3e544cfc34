"""Loading a recipe: values, origins, paths, and every mistake named with place and cure."""

import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tandem.config import Corpus, LoadedRecipe, load_recipe
from tandem.errors import TandemError

NAME_MEANS = "What the run is called: letters, digits, - _ and . with a letter or digit first"
NO_WAY = "must name its text by source and target, or tsv, or folder, or builtin, but has"

RECIPE = """\
name: tiny
data:
  train:
    - builtin: {pairs: 10}
"""


def load(folder: Path, text: str = RECIPE, *overrides: str) -> LoadedRecipe:
    path = folder / "tiny.yaml"
    path.write_text(text, encoding="utf-8")
    return load_recipe(path, overrides)


def mistakes(folder: Path, text: str = RECIPE, *overrides: str) -> list[str]:
    with pytest.raises(TandemError) as caught:
        load(folder, text, *overrides)
    return str(caught.value).replace(f"{folder}/", "").split("\n")


def test_defaults_fill_what_is_not_written(tmp_path: Path) -> None:
    recipe = load(tmp_path).recipe
    assert (recipe.seed, recipe.clean.max_words, recipe.subword.vocabulary) == (1, 80, 32_768)
    assert recipe.batch.target_tokens == 25_000
    assert recipe.data.valid is None
    assert recipe.prepared_folder == Path("prepared/tiny")


def test_an_empty_section_means_its_defaults(tmp_path: Path) -> None:
    assert load(tmp_path, f"{RECIPE}clean:\nsubword:\n").recipe == load(tmp_path).recipe


def test_each_value_knows_where_it_came_from(tmp_path: Path) -> None:
    origins = load(tmp_path, RECIPE, "clean.max_words=100").origins
    assert origins["name"] == f"{tmp_path / 'tiny.yaml'}:1"
    assert origins["data.train.0.builtin.pairs"] == f"{tmp_path / 'tiny.yaml'}:4"
    assert origins["clean.max_words"] == "command line"
    assert origins["clean.min_words"] == "default"
    assert origins["data.test"] == "default"


def test_a_value_that_a_preset_filled_in_is_derived(tmp_path: Path) -> None:
    overrides = ["model={preset: big, dropout: 0.2}", "optim.schedule=transformer"]
    loaded = load(tmp_path, RECIPE, *overrides)
    rows = {key: (value, origin) for key, value, origin in loaded.rows()}
    assert rows["model.width"] == ("1024", "derived")
    assert rows["model.dropout"] == ("0.2", "command line")
    assert rows["model.encoder_layers"] == ("6", "default")
    assert rows["optim.learning_rate"] == ("2.0", "derived")


def test_rows_leave_out_what_nobody_set(tmp_path: Path) -> None:
    rows = {key: (value, origin) for key, value, origin in load(tmp_path, RECIPE, "data.valid=null").rows()}
    assert "data.folder" not in rows
    assert rows["data.valid"] == ("null", "command line")
    assert rows["data.test"] == ("[]", "default")
    assert rows["clean.markup"] == ("true", "default")


def test_paths_start_from_the_recipe_in_a_file_and_from_here_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setenv("HOME", "/home/somebody")
    text = "name: tiny\ndata:\n  train:\n    - {source: ../a.en, target: ~/a.de}\n    - tsv: /b.tsv\n"
    data = load(tmp_path, text, "data.folder=out", "data.train.1.tsv=./c.tsv").recipe.data
    assert data.train[0].source == tmp_path.parent / "a.en"
    assert data.train[0].target == Path("/home/somebody/a.de")
    assert data.train[1].tsv == here / "c.tsv"
    assert data.folder == here / "out"


def test_a_link_keeps_its_name_because_the_name_says_what_it_holds(tmp_path: Path) -> None:
    (tmp_path / "blob").write_text("")
    (tmp_path / "train.tsv.gz").symlink_to("blob")
    recipe = load(tmp_path, "name: tiny\ndata: {train: [{tsv: train.tsv.gz}]}\n").recipe
    assert recipe.data.train[0].tsv == tmp_path / "train.tsv.gz"


def test_names_are_compared_once_paths_are_whole(tmp_path: Path) -> None:
    folder = tmp_path / "news"
    folder.mkdir()
    found = mistakes(folder, "name: tiny\ndata:\n  train:\n    - folder: .\n    - folder: ../more/news\n")
    assert found == ["tiny.yaml:5: data.train.1 is called 'news' like one before it; give it another name"]


def test_an_unknown_user_in_a_path_is_one_sentence(tmp_path: Path) -> None:
    found = mistakes(tmp_path, "name: tiny\ndata: {train: [{tsv: ~no-such-user-here/a.tsv}]}\n")
    assert found == [
        "The recipe names ~no-such-user-here/a.tsv, but there is no such user here; write the whole path."
    ]


@pytest.mark.parametrize(
    ("more", "line"),
    [
        (
            "clean:\n  max_word: 5\n",
            "tiny.yaml:6: unknown key 'clean.max_word'; did you mean 'clean.max_words'?",
        ),
        ("clen: {}\n", "tiny.yaml:5: unknown key 'clen'; did you mean 'clean'?"),
        ("max_ratio: 5\n", "tiny.yaml:5: unknown key 'max_ratio'; did you mean 'clean.max_ratio'?"),
        (
            "batch:\n  zzz: 5\n",
            "tiny.yaml:6: unknown key 'batch.zzz'; the keys here are target_tokens, shares",
        ),
        (
            "5: x\n",
            (
                "tiny.yaml:5: unknown key '5'; the keys here are name, seed, data, clean, subword, batch, "
                "model, optim, train, evaluate, checkpoint, exchange, telemetry"
            ),
        ),
    ],
)
def test_an_unknown_key_is_named_with_its_line_and_the_nearest_key(
    tmp_path: Path, more: str, line: str
) -> None:
    assert mistakes(tmp_path, RECIPE + more) == [line]


@pytest.mark.parametrize(
    ("override", "line"),
    [
        ("seed=x", 'seed must be a whole number, not "x"'),
        ("seed=true", "seed must be a whole number, not true"),
        ("seed=1e6", "seed must be a whole number, not 1000000.0"),
        ("seed=-1", "seed must be greater than or equal to 0, not -1"),
        ("clean.markup=no", 'clean.markup must be true or false, not "no"'),
        ("clean.max_ratio=.5", "clean.max_ratio must be greater than or equal to 1, not 0.5"),
        ("clean.max_ratio=1e999", "clean.max_ratio must be a finite number, not Infinity"),
        ("clean=5", "clean must be a section of keys and values, not 5"),
        ("data.train={tsv: x}", "data.train must be a list, not a section"),
        ("data.train=[]", "data.train must be a list of at least one item, not an empty list"),
        ("data.train.0.weight=0", "data.train.0.weight must be greater than 0, not 0"),
        ("data.folder=''", 'data.folder must be a path, not ""'),
        ("subword.kind=word", "subword.kind must be 'bpe', 'unigram' or 'segmented', not \"word\""),
        ("name=5", "name must be text (quotes make text of anything), not 5"),
        (
            "name=../up",
            f'name cannot be "../up": {NAME_MEANS}',
        ),
        (
            "data.target_language=../en",
            (
                'data.target_language cannot be "../en": '
                "Code of the language to translate into, such as `de` or `zh-Hans`"
            ),
        ),
        ("clean.min_word=3", "unknown key 'clean.min_word'; did you mean 'clean.min_words'?"),
    ],
)
def test_a_wrong_value_is_one_sentence(tmp_path: Path, override: str, line: str) -> None:
    assert mistakes(tmp_path, RECIPE, override) == [f"command line: {line}"]


def test_a_long_wrong_value_is_cut_short(tmp_path: Path) -> None:
    (line,) = mistakes(tmp_path, RECIPE, f"seed={'x' * 1000}")
    assert line.endswith("xxx…")
    assert len(line) < 150


def test_missing_keys_are_named_with_what_they_mean(tmp_path: Path) -> None:
    assert mistakes(tmp_path, "seed: 3\n") == [
        f"tiny.yaml: name is missing: {NAME_MEANS}",
        "tiny.yaml: data is missing: Which text to learn from, which to watch and which to judge by",
    ]


def test_all_mistakes_are_reported_at_once(tmp_path: Path) -> None:
    text = "name: a b\nsead: 3\ndata:\n  train:\n    - {builtin: {pair: 3}}\nclean: {max_words: many}\n"
    found = mistakes(tmp_path, text, "batch", "subword.joint=1")
    assert [line.split(" ")[0] for line in found] == [
        "command",
        "tiny.yaml:1:",
        "tiny.yaml:5:",
        "tiny.yaml:5:",
        "tiny.yaml:6:",
        "command",
        "tiny.yaml:2:",
    ]


@pytest.mark.parametrize(
    ("overrides", "line"),
    [
        (
            ["batch.target_tokens=1000"],
            (
                "batch.target_tokens is 1000, too few for 4 of the longest sentences: make it at least 1024, "
                "or subword.max_pieces at most 250"
            ),
        ),
        (["model.heads=7"], "model.heads is 7, which does not divide width, 512; make it 8"),
        (["clean.min_words=90"], "clean.min_words is 90, more than max_words, which is 80"),
        (
            ["subword.model=a.model", "subword.joint=false"],
            "subword.joint must be true with a model of your own, which serves both languages",
        ),
        (
            ["subword.model=a.model", "subword.kind=segmented"],
            (
                "subword.model cannot be used with kind segmented, which takes pieces as they are; "
                "take one of the two out"
            ),
        ),
        (
            ["data.valid={tsv: v.tsv, weight: 2}"],
            "data.valid.weight means something for training text only; take it out",
        ),
        (
            ["data.test=[{tsv: v.tsv}, {folder: w, weight: 2}]"],
            "data.test.1.weight means something for training text only; take it out",
        ),
        (
            ["data.valid={builtin: {pairs: 5}}"],
            "data.valid.builtin.split is 'train', but must be valid or test here",
        ),
        (
            ["data.train.0.builtin.split=test"],
            "data.train.0.builtin.split is 'test', but must be train here",
        ),
        (
            ["data.train.1.builtin.pairs=5"],
            "data.train.1 is called 'builtin' like one before it; give it another name",
        ),
        (
            ["data.target_language=fr"],
            "data.train.0.builtin is English to German, but the recipe is en to fr",
        ),
        (
            ["data.train=[{tsv: a}]", "data.target_language=en"],
            "data.target_language is 'en', the same as source_language",
        ),
        (
            ["data.train=[{source: a, target: a}]"],
            "data.train.0.target is the same file as source; it must hold the translations",
        ),
        (
            ["data.train=[{source: a}]"],
            f"data.train.0 {NO_WAY} source",
        ),
        (
            ["data.train=[{}]"],
            f"data.train.0 {NO_WAY} none of them",
        ),
        (
            ["data.train=[{tsv: a, folder: b}]"],
            f"data.train.0 {NO_WAY} folder and tsv",
        ),
    ],
)
def test_values_that_do_not_fit_together_are_named(tmp_path: Path, overrides: list[str], line: str) -> None:
    found = mistakes(tmp_path, RECIPE, *overrides)
    assert [sentence.split(": ", 1)[1] for sentence in found] == [line]


def test_several_contradictions_are_several_lines(tmp_path: Path) -> None:
    found = mistakes(tmp_path, RECIPE, "data.valid={builtin: {pairs: 5}, weight: 2}")
    assert len(found) == 2


@pytest.mark.parametrize(
    ("corpus", "label"),
    [
        ({"source": "a/train.en", "target": "a/train.de"}, "train"),
        ({"source": "a/test.2016.en.xz", "target": "a/test.2016.de.xz"}, "test.2016"),
        ({"tsv": "a/news.tsv.gz"}, "news"),
        ({"folder": "a/europarl-v7"}, "europarl-v7"),
        ({"builtin": {"pairs": 1}}, "builtin"),
        ({"folder": "a/b", "name": "mine"}, "mine"),
    ],
)
def test_a_corpus_is_called_after_where_it_is(corpus: dict[str, object], label: str) -> None:
    assert Corpus.model_validate(corpus).label == label


@settings(max_examples=150, deadline=None)
@given(
    noise=st.binary(max_size=40) | st.text(" \n:-[]{}&*!a\t'\"#", max_size=40).map(str.encode),
    cut=st.integers(0, 70),
)
def test_no_bytes_make_anything_but_a_recipe_or_a_sentence(noise: bytes, cut: int) -> None:
    with tempfile.TemporaryDirectory() as folder, suppress(TandemError):
        path = Path(folder) / "noise.yaml"
        path.write_bytes(RECIPE.encode()[:cut] + noise + RECIPE.encode()[cut:])
        load_recipe(path)


@settings(max_examples=150, deadline=None)
@given(
    key=st.sampled_from(["seed", "data", "data.train", "data.train.0", "data.train.0.builtin", "clean", "a"]),
    rest=st.text(),
)
def test_no_override_makes_anything_but_a_recipe_or_a_sentence(key: str, rest: str) -> None:
    with tempfile.TemporaryDirectory() as folder, suppress(TandemError):
        path = Path(folder) / "tiny.yaml"
        path.write_text(RECIPE)
        load_recipe(path, [key + rest, f"{key}={rest}", f"{key}.{rest}"])
