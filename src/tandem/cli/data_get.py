"""`tandem data list` and `tandem data get`: public corpora."""

# Imports wait until a command runs, so that --help answers at once.

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from tandem.data.corpus.public.entry import PublicCorpus
    from tandem.data.corpus.public.fetch import Fetched
    from tandem.data.corpus.public.listing import Listing
    from tandem.progress import Progress

__all__ = ["get_corpus", "list_corpora"]

_SPLITS = ("train", "valid", "test")


def list_corpora(
    words: Annotated[list[str] | None, typer.Argument(help="Only corpora with all these words.")] = None,
    *,
    languages: Annotated[str, typer.Option(help="Only this pair of languages, as en-de.")] = "",
    everything: Annotated[bool, typer.Option("--all", help="All of mtdata's index instead.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """List public corpora: what they hold, how big they are, and under which licence."""
    from tandem.data.corpus.public.entry import parse_languages
    from tandem.observe.visible import visible_lines

    pair = parse_languages(languages) if languages else None
    lines = _indexed(words or [], pair) if everything else _catalogued(words or [], pair)
    if as_json:
        typer.echo(json.dumps(list(lines), indent=2, ensure_ascii=False))
        return
    shown = 0
    for shown, line in enumerate(lines, 1):  # noqa: B007 - counted for the closing line
        typer.echo(visible_lines(_render(line)))
    if shown == 0:
        typer.echo("No corpus fits." if everything else "No corpus fits; --all looks at the whole index.")
    elif not everything:
        typer.echo("\nFetch one with `tandem data get NAME`; --all lists the whole index of mtdata.")


def get_corpus(
    name: Annotated[str, typer.Argument(help="A name from `tandem data list`, or an id of its --all.")],
    *,
    to: Annotated[Path, typer.Option(help="Folder under which the corpus gets its own.")] = Path("corpora"),
    languages: Annotated[str, typer.Option(help="Source and target, as en-de.")] = "",
) -> None:
    """Download a public corpus and write it as aligned text, ready for a recipe."""
    from tandem.cli.bars import Bars
    from tandem.data.corpus.public.download import find_cache
    from tandem.data.corpus.public.entry import parse_languages
    from tandem.data.corpus.public.fetch import fetch_corpus
    from tandem.observe.visible import visible, visible_lines

    pair = parse_languages(languages) if languages else None
    with Bars() as bars:
        corpus = _find(name, pair, bars)
        fetched = fetch_corpus(corpus, to / corpus.folder, cache=find_cache(), progress=bars)
    typer.echo(visible(_summarise(corpus, fetched)))
    typer.echo("\nFor a recipe:\n")
    typer.echo(visible_lines("\n".join(_recipe_lines(corpus, fetched.folder.resolve()))))


def _find(name: str, pair: tuple[str, str] | None, progress: "Progress") -> "PublicCorpus":
    from tandem.data.corpus.public.catalogue import find_corpus
    from tandem.data.corpus.public.download import find_cache
    from tandem.data.corpus.public.index import find_indexed

    is_id_of_mtdata = name.count("-") == 4
    if is_id_of_mtdata:
        return find_indexed(name, find_cache(), languages=pair, progress=progress)
    return find_corpus(name, pair)


def _catalogued(words: list[str], pair: tuple[str, str] | None) -> Iterator[dict[str, Any]]:
    from tandem.data.corpus.public.catalogue import CATALOGUE

    for listing in CATALOGUE:
        text = f"{listing.name} {listing.summary}".casefold()
        fits = all(word.casefold() in text for word in words)
        if fits and (pair is None or listing.find_pair(*pair)):
            yield _describe(listing, pair)


def _describe(listing: "Listing", pair: tuple[str, str] | None) -> dict[str, Any]:
    from tandem.data.corpus.public.catalogue import recipes_with

    corpus = listing.build(pair)
    return {
        "name": listing.name,
        "summary": listing.summary,
        "languages": "-".join(corpus.languages),
        "all_languages": list(listing.languages),
        "pairs": {split: corpus.pairs(split) for split in corpus.splits},
        "download_bytes": corpus.download_bytes,
        "licence": listing.licence,
        "recipes": list(recipes_with(listing)),
        "archives": [
            {"url": archive.url, "bytes": archive.size_bytes, "sha256": archive.sha256}
            for archive in corpus.archives
        ],
    }


def _indexed(words: list[str], pair: tuple[str, str] | None) -> Iterator[dict[str, Any]]:
    from tandem.cli.bars import Bars
    from tandem.data.corpus.public.download import find_cache
    from tandem.data.corpus.public.index import search_index

    for entry in search_index(find_cache(), words, languages=pair, progress=Bars()):
        yield {"name": entry["did"], "url": entry["url"]}


def _render(line: dict[str, Any]) -> str:
    if "url" in line:
        urls = line["url"] if isinstance(line["url"], list) else [line["url"]]
        return "  ".join([line["name"], *urls])
    pairs = ", ".join(f"{split} {_known(count, '{:,}')}" for split, count in line["pairs"].items())
    size = line["download_bytes"]
    facts = [
        f"{line['languages']}"
        + (f" (+{len(line['all_languages']) - 1})" if line["all_languages"][1:] else ""),
        f"pairs: {pairs}",
        f"download: {_known(size and size / 1e6, '{:,.1f} MB')}",
        f"licence: {line['licence']}",
        *([f"in {', '.join(line['recipes'])}"] if line["recipes"] else []),
    ]
    return f"{line['name']}: {line['summary']}\n    {' · '.join(facts)}"


def _known(value: float | None, form: str) -> str:
    return "unknown" if value is None else form.format(value)


def _summarise(corpus: "PublicCorpus", fetched: "Fetched") -> str:
    begin = "Already there" if fetched.was_there else "Wrote"
    counts = ", ".join(f"{split} {pairs:,} pairs" for split, pairs in fetched.pairs().items())
    return f"{begin}: {fetched.folder} ({counts}). Licence: {corpus.licence}."


def _recipe_lines(corpus: "PublicCorpus", folder: Path) -> Iterator[str]:
    source, target = corpus.languages
    yield from ("data:", f"  source_language: {source}", f"  target_language: {target}")
    for split in corpus.splits:
        first, rest = ("    ", "    ") if split == "valid" else ("    - ", "      ")
        yield f"  {split}:"
        yield f"{first}name: {corpus.name}"
        yield f"{rest}source: {json.dumps(str(folder / f'{split}.{source}'), ensure_ascii=False)}"
        yield f"{rest}target: {json.dumps(str(folder / f'{split}.{target}'), ensure_ascii=False)}"
