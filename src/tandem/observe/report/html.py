"""The report as one self-contained page: answers first, each with its figure, then everything they rest on."""

from textwrap import shorten

from tandem.observe.data_card.html import card_sections
from tandem.observe.figures.alternative import describe_figure
from tandem.observe.figures.caption import CAPTIONS
from tandem.observe.finding import Evidence, Finding
from tandem.observe.markup import Html, joined, tag
from tandem.observe.page import build_page, figure_box, figure_data
from tandem.observe.report import summary
from tandem.observe.report.gather import Report
from tandem.observe.report.particulars import recipe_section, translations_section
from tandem.observe.report.quantity import evidence_text
from tandem.observe.tabular import Table, table_grid, table_section
from tandem.observe.terms import EVALUATIONS, terms_html
from tandem.observe.verdicts.sections import section_heading, section_html, section_id

__all__ = ["report_page"]

CURVES = ("losses", "bleu", "learning_rate", "gradient_norm", "throughput")
STEPS = ("anatomy", "step_times", "exchange", "step_bytes", "time_split")
TIMELINES = ("gpus", "network", "cpu")
OF_THE_CARD = ("dropped", "lengths")
"""Figures whose data the data card brings."""
GLANCE = 96
"""Characters of an answer in the overview."""
MARKS = {"yes": "●", "no": "○", "partly": "◐", "measured": "■", "cannot tell": "?"}


def report_page(report: Report) -> bytes:
    """The page, which needs no network; the same run gives the same bytes."""
    return build_page(title=f"Report: {report.series.name}", body=_body(report))


def _body(report: Report) -> Html:
    series = report.series
    begun = f" of a run begun on {summary.begun_at(series)}" if summary.has_clock(series) else ""
    header = tag(
        "header",
        tag("p", f"Report{begun}", class_="eyebrow"),
        tag("h1", series.name),
        tag("p", summary.headline(series), class_="answer"),
        *(tag("p", note, class_="warning") for note in summary.notes(series)),
        _contents(report),
    )
    return joined(
        (
            header,
            tag("main", *(_answer(finding, report) for finding in report.findings)),
            _figures("Curves", "curves", CURVES, report),
            _evaluations(report) if series.evaluations else Html(""),
            _figures("The step", "step", STEPS, report),
            _figures("Hosts on one time axis", "hosts", TIMELINES, report),
            translations_section(series),
            table_section(summary.checkpoints_table(series)),
            _figure("checkpoint_parts", report) if series.checkpoints else Html(""),
            _card(report),
            _environment(report),
            recipe_section(series),
            tag(
                "footer",
                "Everything here was computed from the run's log. 1 MB is 1,000,000 bytes; intervals are 95 %.",
            ),
            *(
                figure_data(name, figure)
                for name, figure in report.figures.items()
                if name not in OF_THE_CARD
            ),
        )
    )


def _contents(report: Report) -> Html:
    """The eleven verdicts at a glance, each a link to its answer."""
    rows = [
        tag(
            "li",
            tag(
                "a",
                tag("span", str(each.number), class_="place"),
                tag("span", f"{MARKS[each.verdict]} {each.verdict}", class_="verdict"),
                tag("span", each.question, class_="asked"),
                tag("span", shorten(each.answer, GLANCE, placeholder=" …"), class_="glance"),
                href=f"#{each.key}",
            ),
        )
        for each in report.findings
    ]
    return tag("nav", tag("ol", *rows), aria_label="Answers")


def _answer(finding: Finding, report: Report) -> Html:
    sure = "" if finding.confidence == "none" else f"{finding.confidence} confidence"
    parts = [
        tag("h2", f"{finding.number}. {finding.question}"),
        _meaning(finding),
        tag(
            "p",
            tag("span", f"{MARKS[finding.verdict]} {finding.verdict}", class_="verdict"),
            tag("span", sure, class_="sure"),
            class_="ruling",
        ),
        tag("p", finding.answer, class_="answer"),
    ]
    if finding.doubt:
        parts.append(tag("p", tag("b", "Why not surer: "), finding.doubt, class_="note"))
    if finding.advice:
        parts.append(tag("p", tag("b", "What to do: "), finding.advice, class_="advice"))
    if finding.missing:
        parts.append(tag("p", tag("b", "Not measured: "), "; ".join(finding.missing), class_="note"))
    if finding.figure:
        parts.append(_figure(finding.figure, report))
    parts += [_evidence(finding), _judging(finding)]
    return tag("section", *parts, id=finding.key, class_="finding")


def _meaning(finding: Finding) -> Html:
    """What the question means, and where to find the section about it."""
    if not finding.section:
        return Html("")
    place = tag("a", "How it is judged", href=f"#{section_id(finding.section)}")
    return tag(
        "details", tag("summary", "What is this?"), tag("p", finding.about, " ", place, "."), class_="what"
    )


def _judging(finding: Finding) -> Html:
    """The section about the question; it is long, and so comes last."""
    if not finding.section:
        return Html("")
    summary = tag("summary", "How it is judged")
    # Who comes here from a figure elsewhere has not seen the question.
    heading = section_heading(finding.section, level=3)
    section = section_html(finding.section)
    return tag("details", summary, heading, section, id=section_id(finding.section), class_="what")


def _evidence(finding: Finding) -> Html:
    parts = []
    if finding.evidence:
        parts.append(tag("dl", *map(_fact, finding.evidence), class_="facts"))
    if finding.would_change:
        parts.append(tag("p", tag("b", "What would change this: "), finding.would_change, class_="note"))
    return tag("details", tag("summary", "What it rests on"), *parts, class_="rests") if parts else Html("")


def _fact(evidence: Evidence) -> Html:
    return tag(
        "div",
        tag("dt", evidence.name),
        tag("dd", evidence_text(evidence)),
        tag("dd", evidence.definition),
    )


def _evaluations(report: Report) -> Html:
    table = summary.evaluations_table(report.series)
    meanings = {name: text for name, text in EVALUATIONS.items() if name in {"BLEU", *table.columns}}
    about = tag("details", tag("summary", "What is this?"), terms_html(meanings), class_="what")
    return table_section(table, about=about)


def _figures(title: str, key: str, names: tuple[str, ...], report: Report) -> Html:
    parts = [joined((tag("h3", CAPTIONS[name].title), _figure_or_link(name, report))) for name in names]
    return tag("section", tag("h2", title), *parts, id=f"figures-{key}")


def _figure_or_link(name: str, report: Report) -> Html:
    """A figure, or where to find it above; timelines stand together, because they share their axis."""
    above = next((each for each in report.findings if each.figure == name), None)
    if above is None or name in TIMELINES or name not in report.figures:
        return _figure(name, report)
    place = tag("a", f"answer {above.number}", href=f"#{above.key}")
    return tag("p", "It is shown with ", place, ".", class_="note")


def _figure(name: str, report: Report) -> Html:
    """The place of a figure, whose data is at the end of the page; or one line on what was not measured."""
    caption = CAPTIONS.get(name)
    if caption is None:
        return Html("")
    if name in report.undrawn:
        return _undrawn(report.undrawn[name])
    figure = report.figures.get(name)
    if figure is None:
        return tag("p", f"No figure: {caption.missing}", class_="note")
    return figure_box(
        name,
        figure=None,
        alternative=f"{caption.title}. {describe_figure(figure)}",
        meaning=caption.meaning,
        more=_more(name, report),
    )


def _more(name: str, report: Report) -> Html:
    """Where the page says what is concluded from a figure."""
    section = CAPTIONS[name].section
    about = next((each for each in report.findings if section and each.section == section), None)
    if about is None:
        return Html("")
    place = tag("a", f"{about.number}. {about.question}", href=f"#{section_id(section)}")
    return tag("p", "What is concluded from it: ", place)


def _undrawn(reason: str) -> Html:
    text = f"No figure: it could not be drawn ({reason}). This is an error in Tandem: please report it with the log."
    return tag("p", text, class_="note")


def _card(report: Report) -> Html:
    card = report.series.card
    heading = tag("h2", "Training data")
    if card is None:
        return tag("section", heading, tag("p", "The run has no data card.", class_="note"))
    failed = [report.undrawn[name] for name in OF_THE_CARD if name in report.undrawn]
    if failed:
        return tag("section", heading, *map(_undrawn, failed))
    return tag(
        "section",
        heading,
        card_sections(card, more=_more("dropped", report)),
        class_="card",
        id="training-data",
    )


def _environment(report: Report) -> Html:
    series = report.series
    tables: tuple[Table, ...] = (
        summary.processes_table(series),
        summary.hosts_table(series),
        summary.links_table(series),
    )
    shown = [
        joined((tag("h3", table.title), table_grid(table), tag("p", table.note, class_="note")))
        for table in tables
        if table.rows or table.note
    ]
    commands = zip(summary.process_ranks(series), series.processes, strict=True)
    rank, command = next(((rank, each.command) for rank, each in commands if each.command), (0, ()))
    if command:
        words = tag("pre", " ".join(command), tabindex="0")
        shown.append(joined((tag("h3", f"Command of rank {rank}"), words)))
    return tag("section", tag("h2", "Environment"), *shown)
