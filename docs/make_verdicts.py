"""Writes the sections of verdicts.md, whose texts are in the package. Run it from the repository."""

from pathlib import Path

from tandem.observe.verdicts.sections import sections_markdown

PAGE = Path(__file__).resolve().parent / "verdicts.md"
BEGIN, END = "<!-- sections: made by docs/make_verdicts.py -->", "<!-- end of the sections -->"


def main() -> None:
    """Put the sections between their markers."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        raise SystemExit(f"{PAGE.name} has no place for the sections: put the two markers back.")
    PAGE.write_text(f"{before}{BEGIN}\n\n{sections_markdown()}\n\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
