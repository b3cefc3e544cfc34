from pathlib import Path

from tandem.data.subword.learn import Subword
from tandem.data.subword.model import SegmentedModel
from tandem.translate.marks import Marks, build_marks


def test_marks_and_rows_without_a_piece_are_never_said(subword: Subword) -> None:
    assert build_marks(subword, vocabulary=408) == Marks(start=1, end=2, banned=(1, 3, 0, *range(403, 408)))


def test_segmented_text_may_say_that_a_word_is_unknown(tmp_path: Path) -> None:
    path = tmp_path / "subword.txt"
    path.write_text("<unk>\n<s>\n</s>\n<pad>\ndas\nHau@@\ns\nist\n")
    segmented = SegmentedModel(path)
    marks = build_marks(Subword(source=segmented, target=segmented), vocabulary=16)
    assert set(marks.banned) == {1, 3, *range(8, 16)}
