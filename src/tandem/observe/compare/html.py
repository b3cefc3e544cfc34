"""A comparison as one self-contained page: answers, curves over one another, then what differs."""

from itertools import starmap

from tandem.observe.compare.comparison import Comparison
from tandem.observe.compare.differences import Differences
from tandem.observe.compare.judgement import Judgement, shown
from tandem.observe.compare.overlay import Quantity, overlay_figure
from tandem.observe.compare.place import AGAINST, Against
from tandem.observe.figures.alternative import describe_figure
from tandem.observe.markup import Html, joined, tag
from tandem.observe.numbers import count
from tandem.observe.page import build_page, figure_box
from tandem.observe.tabular import Table, table_grid

__all__ = ["comparison_page"]

MARKS = {"better": "●", "inside noise": "≈", "cannot tell": "?"}
CURVES: tuple[tuple[Quantity, tuple[Against, ...]], ...] = (
    ("bleu", AGAINST),
    ("valid_loss", AGAINST),
    ("loss", AGAINST),
    ("throughput", ("steps", "time")),
    ("learning_rate", ("steps",)),
    ("gradient_norm", ("steps",)),
)
"""What is drawn, over which axes."""
TIME = " Training time counts from the first step on, restarts and evaluations included, pauses without a process not."
TITLES: dict[Quantity, str] = {
    "bleu": "BLEU on the valid text",
    "valid_loss": "Loss on the valid text",
    "loss": "Training loss",
    "throughput": "Speed",
    "learning_rate": "Learning rate",
    "gradient_norm": "Gradient norm",
}
MEANINGS: dict[Quantity, str] = {
    "bleu": "BLEU of real translations, detokenised, as sacreBLEU computes it, with 95 % intervals by resampling "
    "sentences. Curves can be compared only where the text and the way of counting are the same; the answers above "
    "say so.",
    "valid_loss": "Negative log-likelihood a target token, without smoothing and dropout: lower is better. Runs with "
    "other subword models have other tokens, so that their losses cannot be compared.",
    "loss": "Negative log-likelihood a target token of the text trained on, with dropout: a recipe with more dropout "
    "lies higher and need not be worse. Of an imported run, what its tool minimised.",
    "throughput": "Real target tokens a second of all ranks together, without the time of evaluations and checkpoints.",
    "learning_rate": "As the steps used it.",
    "gradient_norm": "Before clipping, on a scale of powers of ten.",
}


def comparison_page(comparison: Comparison) -> bytes:
    """The page, which needs no network; the same runs give the same bytes."""
    names = list(comparison.named)
    header = tag(
        "header",
        tag("p", "Comparison of runs", class_="eyebrow"),
        tag("h1", " · ".join(names)),
        *(
            tag("p", tag("b", f"{name}: "), line, class_="answer")
            for name, line in zip(names, comparison.headlines, strict=True)
        ),
        *(tag("p", note, class_="warning") for note in comparison.notes),
        _contents(comparison),
    )
    body = (
        header,
        tag("main", *map(_judgement, comparison.judgements)),
        *(_curves(comparison, *each) for each in CURVES),
        *(_differences(each, names) for each in comparison.differences),
        tag("footer", "Everything here was computed from the runs' logs. Intervals are 95 %."),
    )
    return build_page(title=f"Comparison: {', '.join(names)}", body=joined(body))


def _contents(comparison: Comparison) -> Html:
    """All answers at a glance, then what else is here, each a link."""
    rows = [
        (each.question.key, f"{MARKS[each.verdict]} {each.verdict}", each.question.title, each.better)
        for each in comparison.judgements
    ]
    rows += [(f"curves-{quantity}", "curves", TITLES[quantity], "") for quantity, _ in CURVES]
    rows += [
        (
            _place(each),
            "differences",
            f"What differs: {each.title.lower()}",
            count(len(each.rows)) if each.rows else "none",
        )
        for each in comparison.differences
    ]
    return tag("nav", tag("ol", *starmap(_row, enumerate(rows, start=1))), aria_label="Contents")


def _row(number: int, row: tuple[str, str, str, str]) -> Html:
    place, mark, title, more = row
    link = tag(
        "a",
        tag("span", str(number), class_="place"),
        tag("span", mark, class_="verdict"),
        tag("span", title, class_="asked"),
        tag("span", more, class_="glance") if more else "",
        href=f"#{place}",
    )
    return tag("li", link)


def _place(respect: Differences) -> str:
    return f"differences-{respect.title.lower()}"


def _judgement(judgement: Judgement) -> Html:
    question = judgement.question
    table = Table(
        title=question.title,
        columns=("run", "value (95 % interval)", "step"),
        rows=tuple(
            (value.run, shown(question, value), "" if value.step is None else f"{value.step:,}")
            for value in judgement.values
        ),
    )
    parts = [
        tag("h2", question.title),
        tag("p", tag("span", f"{MARKS[judgement.verdict]} {judgement.verdict}", class_="verdict")),
        tag("p", judgement.answer, class_="answer"),
        table_grid(table),
    ]
    if judgement.why:
        parts.append(tag("p", judgement.why, class_="note"))
    return tag("section", *parts, id=question.key, class_="finding")


def _curves(comparison: Comparison, quantity: Quantity, axes: tuple[Against, ...]) -> Html:
    title, meaning = TITLES[quantity], MEANINGS[quantity]
    parts = []
    for against in axes:
        figure = overlay_figure(comparison.named, quantity=quantity, against=against)
        if figure is None:
            continue
        box = figure_box(
            f"{quantity}-{against}",
            figure=figure,
            alternative=f"{title} against {against}. {describe_figure(figure)}",
            meaning=meaning + TIME * (against == "time"),
        )
        parts += [tag("h3", f"Against {against}"), box]
    drawn = parts or [tag("p", "No figure: no run has logged it.", class_="note")]
    return tag("section", tag("h2", title), *drawn, id=f"curves-{quantity}")


def _differences(respect: Differences, names: list[str]) -> Html:
    table = Table(
        title=f"What differs: {respect.title.lower()}",
        columns=("key", *names),
        rows=tuple((row.key, *row.values) for row in respect.rows),
        names=1 + len(names),
    )
    told = (
        f"{respect.same} things are alike."
        if respect.rows
        else f"No difference is known; {respect.same} alike."
    )
    if respect.untold:
        told += f" Not known of {', '.join(respect.untold)}."
    heading = tag("h2", table.title)
    return tag("section", heading, table_grid(table), tag("p", told, class_="note"), id=_place(respect))
