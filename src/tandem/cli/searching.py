"""The options that say how to search and what to tell, and the wish that they make."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer

from tandem.errors import TandemError

if TYPE_CHECKING:
    from tandem.translate.wish import Sampling, Wish

__all__ = [
    "AlignmentOption",
    "AlphaOption",
    "BeamOption",
    "BestOption",
    "GreedyOption",
    "PenaltyOption",
    "SampleOption",
    "ScoresOption",
    "SeedOption",
    "TemperatureOption",
    "TokensOption",
    "TopOption",
    "Wanted",
    "WholeLinesOption",
]

BeamOption: TypeAlias = Annotated[
    int | None,
    typer.Option(min=1, max=100, help="Translations followed side by side; the recipe's if not given."),
]
AlphaOption: TypeAlias = Annotated[
    float | None,
    typer.Option(min=0, max=10, help="How strongly length is made up for; the recipe's if not given."),
]
PenaltyOption: TypeAlias = Annotated[
    Literal["gnmt", "power"],
    typer.Option(help="How: ((5 + length) / 6)^alpha, or length^alpha, which for --alpha 1 is the mean."),
]
BestOption: TypeAlias = Annotated[
    int, typer.Option(min=1, max=100, metavar="N", help="Translations of each line, best first.")
]
TemperatureOption: TypeAlias = Annotated[
    float | None, typer.Option(help="With --sample: below 1 draws likely pieces more often; 1 if not given.")
]
TopOption: TypeAlias = Annotated[
    int | None, typer.Option(min=1, help="With --sample: draw from so many of the likeliest pieces only.")
]
SeedOption: TypeAlias = Annotated[int | None, typer.Option(help="With --sample: another seed draws others.")]
GreedyOption: TypeAlias = Annotated[
    bool, typer.Option("--greedy", help="Take the best piece each time: a beam of 1.")
]
SampleOption: TypeAlias = Annotated[bool, typer.Option("--sample", help="Draw pieces by their probability.")]
ScoresOption: TypeAlias = Annotated[bool, typer.Option("--scores", help="Tell scores, in columns.")]
TokensOption: TypeAlias = Annotated[
    bool, typer.Option("--tokens", help="Tell the score of each piece, as JSON.")
]
WholeLinesOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--whole-lines/--sentences",
        help="Translate lines as they are, as evaluations do, or each sentence for itself, which is the default.",
        show_default=False,
    ),
]
AlignmentOption: TypeAlias = Annotated[
    bool, typer.Option("--alignment", help="Tell which words belong together, as JSON.")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What was typed; None where nothing was."""

    beam: int | None
    alpha: float | None
    penalty: Literal["gnmt", "power"]
    greedy: bool
    best: int
    sample: bool
    temperature: float | None
    top: int | None
    seed: int | None
    tokens: bool
    alignment: bool

    def wish(self, usual: "Wish") -> "Wish":
        """What is wished, where nothing was typed as usual for the model."""
        from tandem.translate.penalty import LengthPenalty

        self._refuse_contradictions()
        beam = 1 if self.greedy else self.beam or max(usual.beam, self.best)
        if not self.sample and self.best > beam:
            raise TandemError(
                f"A beam of {beam} cannot give the {self.best} best translations: raise --beam, or lower --best."
            )
        alpha = usual.penalty.alpha if self.alpha is None else self.alpha
        return replace(
            usual,
            beam=beam,
            best=self.best,
            penalty=LengthPenalty(alpha=alpha, kind=self.penalty),
            sampling=self._sampling() if self.sample else None,
            token_scores=self.tokens,
            alignment=self.alignment,
        )

    def _refuse_contradictions(self) -> None:
        if self.greedy and (self.sample or self.beam not in {None, 1}):
            raise TandemError("--greedy goes neither with --beam nor with --sample: take one of them out.")
        drawing = (self.temperature, self.top, self.seed)
        if not self.sample and any(value is not None for value in drawing):
            raise TandemError("--temperature, --top and --seed say how to draw: add --sample.")
        if self.sample and self.beam is not None:
            raise TandemError("--sample draws and does not search: take --beam out.")

    def _sampling(self) -> "Sampling":
        from tandem.translate.wish import Sampling

        temperature = 1.0 if self.temperature is None else self.temperature
        try:
            return Sampling(temperature=temperature, top=self.top or 0, seed=self.seed or 0)
        except ValueError as error:
            raise TandemError(f"--sample cannot draw so: {error}.") from None
