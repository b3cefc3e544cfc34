"""A served translator of text does with a line what it does with one from a file."""

from collections.abc import Sequence
from pathlib import Path

from tests.unit.serve.fake import running
from tests.unit.translate.small_model import SENTENCES, write_subword

from tandem.serve.served import ServedModel
from tandem.translate.engine import Found, Sentence
from tandem.translate.translator import Translator
from tandem.translate.wish import Wish


class Hearing:
    """Says each sentence as it hears it."""

    name = "hearing"

    def __init__(self) -> None:
        self.heard: list[Sentence] = []

    def search(self, sentences: Sequence[Sentence], wish: Wish) -> list[list[Found]]:
        self.heard += sentences
        places = [tuple(range(len(each.source))) for each in sentences]
        return [
            [Found(ids=each.source, score=-1.0, alignment=place if wish.alignment else ())] * wish.best
            for each, place in zip(sentences, places, strict=True)
        ]


def test_a_long_line_is_searched_in_sentences_and_comes_back_as_one(tmp_path: Path) -> None:
    engine = Hearing()
    translator = Translator(engine, write_subword(tmp_path / "subword"), most_pieces=40)
    line = " ".join(SENTENCES)[:4_990].rsplit(" ", 1)[0]
    model = ServedModel(name="small", source="en", target="de", translator=translator, wish=Wish())
    with running(model) as started:
        (told,) = started.post(text=line, best=2, alignment=True).json()["translations"]
    assert len(engine.heard) > 50
    assert max(len(sentence.source) for sentence in engine.heard) <= 40
    assert (told["text"], told["others"][0]["text"]) == (line, line)
    assert {tuple(link["source"]) for link in told["alignment"]} == {
        tuple(link["target"]) for link in told["alignment"]
    }
    assert max(link["target"][1] for link in told["alignment"]) == len(line)
