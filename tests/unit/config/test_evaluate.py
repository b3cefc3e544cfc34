import pytest

from tandem.config import EvaluateSection


@pytest.mark.parametrize(
    ("language", "tokenizer"),
    [
        ("de", "13a"),
        ("zh-Hans", "zh"),
        ("ja", "char"),
        ("yue", "zh"),
        ("khm", "char"),
        ("th", "char"),
        ("ko", "13a"),
        ("pt_BR", "13a"),
    ],
)
def test_words_for_bleu_are_split_as_the_target_is_written(language: str, tokenizer: str) -> None:
    assert EvaluateSection().tokenizer(language) == tokenizer
    assert EvaluateSection(tokenize="intl").tokenizer(language) == "intl"
