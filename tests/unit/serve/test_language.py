"""Names and guesses of languages."""

import pytest

from tandem.serve.language import build_guess, language_name


@pytest.mark.parametrize(
    ("code", "name"),
    [("en", "English"), ("pt-BR", "Portuguese (BR)"), ("zh_Hans", "Chinese (Hans)"), ("xyz", "xyz")],
)
def test_languages_are_called_by_name(code: str, name: str) -> None:
    assert language_name(code) == name


def test_a_language_is_guessed_among_those_asked_for() -> None:
    guess = build_guess()
    assert guess is not None
    german = "Der alte Mann sieht jeden Morgen den Hund im Garten."
    assert guess(german, ())[0] == "de"
    assert guess(german, ["fr", "de-AT"])[0] == "de-AT"
    assert guess(german, ["tlh"]) == ("tlh", 0.0)
    assert 0 <= guess("", ["en"])[1] <= 1
