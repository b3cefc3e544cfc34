"""The short catalogue: public corpora by names that one can type."""

import difflib
from collections.abc import Mapping

from tandem.data.corpus.public.entry import PublicCorpus, Split
from tandem.data.corpus.public.listing import Listing, Source
from tandem.errors import TandemError

__all__ = ["CATALOGUE", "find_corpus", "recipes_with"]

_STATMT = "http://www.statmt.org"
_DATA = "http://data.statmt.org"
_DEV_2019 = f"{_DATA}/wmt19/translation-task/dev.tgz"
_DEV_2020 = f"{_DATA}/wmt20/translation-task/dev.tgz"
_TEST_2020 = f"{_DATA}/wmt20/translation-task/test.tgz"
_TED = (
    "https://huggingface.co/datasets/iwslt2017/resolve/ebd7c60d9800c2a1be010a227e5f0a2363730f7a"
    "/data/2017-01-trnted/texts/{x}/{y}/{x}-{y}.tgz"
)
_MULTI30K = "https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw"

_WMT_TERMS = "free for research (WMT)"
_EUROPARL_TERMS = "no known copyright restrictions (statmt.org)"

_EUROPARL_PAIRS = (
    *("de-en", "bg-en", "cs-en", "da-en", "el-en", "es-en", "et-en", "fi-en", "fr-en", "hu-en"),
    *("it-en", "lt-en", "lv-en", "nl-en", "pl-en", "pt-en", "ro-en", "sk-en", "sl-en", "sv-en"),
)
_BOTH_WAYS = ("en-de", "de-en")
_NEWS_PAIRS = ("en-de", "en-cs", "en-es", "en-fr", "cs-de", "cs-es", "cs-fr", "de-es", "de-fr", "es-fr")
_NEWS_PAIRS_RUSSIAN = (*_NEWS_PAIRS, "en-ru", "cs-ru", "de-ru", "es-ru", "fr-ru")

_EUROPARL_WMT13 = Source(
    name="europarl-v7",
    urls=(f"{_STATMT}/wmt13/training-parallel-europarl-v7.tgz",),
    members=("training/europarl-v7.{x}-{y}.{x}", "training/europarl-v7.{x}-{y}.{y}"),
    pairs={"de-en": 1_920_209},
)
_COMMONCRAWL = Source(
    name="commoncrawl",
    urls=(f"{_STATMT}/wmt13/training-parallel-commoncrawl.tgz",),
    members=("commoncrawl.{x}-{y}.{x}", "commoncrawl.{x}-{y}.{y}"),
    pairs={"de-en": 2_399_123},
)
_NEWS_V9 = Source(
    name="news-commentary-v9",
    urls=(f"{_STATMT}/wmt14/training-parallel-nc-v9.tgz",),
    members=("training/news-commentary-v9.{x}-{y}.{x}", "training/news-commentary-v9.{x}-{y}.{y}"),
    pairs={"de-en": 201_288},
)
_NEWS_V11 = Source(
    name="news-commentary-v11",
    urls=(f"{_DATA}/wmt16/translation-task/training-parallel-nc-v11.tgz",),
    members=(
        "training-parallel-nc-v11/news-commentary-v11.{x}-{y}.{x}",
        "training-parallel-nc-v11/news-commentary-v11.{x}-{y}.{y}",
    ),
)


def _news_to_2013(year: int, pairs: int | None = None) -> Source:
    """Until 2013 one set in all languages, as plain text."""
    return Source(
        name=f"newstest{year}",
        urls=(_DEV_2019,),
        members=(f"dev/newstest{year}.{{x}}", f"dev/newstest{year}.{{y}}"),
        pairs={} if pairs is None else dict.fromkeys(_NEWS_PAIRS_RUSSIAN, pairs),
    )


def _news_from_2014(
    year: int, pairs: Mapping[str, int], *, url: str = _DEV_2019, folder: str = "dev"
) -> Source:
    """Since 2014 one set a direction, as SGML."""
    stem = f"{folder}/newstest{year}-{{x}}{{y}}"
    members = (f"{stem}-src.{{x}}.sgm", f"{stem}-ref.{{y}}.sgm")
    return Source(name=f"newstest{year}", urls=(url,), members=members, form="sgm", pairs=pairs)


def _multi30k(split: Split, stem: str, pairs: int) -> tuple[Split, Source]:
    urls = (f"{_MULTI30K}/{stem}.{{x}}.gz", f"{_MULTI30K}/{stem}.{{y}}.gz")
    languages = ("en-de", "en-fr", "en-cs")
    return split, Source(name=f"multi30k-{stem}", urls=urls, pairs=dict.fromkeys(languages, pairs))


def _ted(name: str, stem: str, *, suffix: str = "", pairs: Mapping[str, int] | None = None) -> Source:
    file = f"{{x}}-{{y}}/{stem}.{{x}}-{{y}}"
    return Source(
        name=name,
        urls=(_TED,),
        members=(f"{file}.{{x}}{suffix}", f"{file}.{{y}}{suffix}"),
        form="sgm" if suffix else "ted",
        pairs=pairs or {},
    )


_NEWSTEST_2013 = _news_to_2013(2013, 3000)
_NEWSTEST_2014 = _news_from_2014(2014, {"de-en": 3003})

_NEWSTESTS = (
    (_news_to_2013(2009), _NEWS_PAIRS),
    (_news_to_2013(2010), _NEWS_PAIRS),
    (_news_to_2013(2011), _NEWS_PAIRS),
    (_news_to_2013(2012), _NEWS_PAIRS_RUSSIAN),
    (_NEWSTEST_2013, _NEWS_PAIRS_RUSSIAN),
    (_NEWSTEST_2014, ("de-en", "cs-en", "fr-en", "ru-en", "hi-en")),
    (_news_from_2014(2015, {}), _BOTH_WAYS),
    (_news_from_2014(2016, {}), _BOTH_WAYS),
    (_news_from_2014(2017, {}), _BOTH_WAYS),
    (_news_from_2014(2018, {}), _BOTH_WAYS),
    (_news_from_2014(2019, {}, url=_DEV_2020), _BOTH_WAYS),
    (_news_from_2014(2020, {}, url=_TEST_2020, folder="sgm"), _BOTH_WAYS),
)

CATALOGUE: tuple[Listing, ...] = (
    Listing(
        name="wmt14-en-de",
        summary='WMT 2014 training data, the set of "Attention is all you need"',
        licence=_WMT_TERMS,
        languages=("de-en",),
        sources=(
            ("train", _EUROPARL_WMT13),
            ("train", _COMMONCRAWL),
            ("train", _NEWS_V9),
            ("valid", _NEWSTEST_2013),
            ("test", _NEWSTEST_2014),
        ),
        recipe=True,
    ),
    Listing(
        name="wmt16-en-de",
        summary="the same with News Commentary v11 of WMT 2016",
        licence=_WMT_TERMS,
        languages=("de-en",),
        sources=(
            ("train", _EUROPARL_WMT13),
            ("train", _COMMONCRAWL),
            ("train", _NEWS_V11),
            ("valid", _NEWSTEST_2013),
            ("test", _NEWSTEST_2014),
        ),
        recipe=True,
    ),
    Listing(
        name="multi30k",
        summary="image captions, with the 2016 test set",
        licence="research use, non-commercial",
        languages=("en-de", "en-fr", "en-cs"),
        sources=(
            _multi30k("train", "train", 29_000),
            _multi30k("valid", "val", 1_014),
            _multi30k("test", "test_2016_flickr", 1_000),
        ),
    ),
    Listing(
        name="iwslt17",
        summary="TED talks of IWSLT 2017; valid is dev2010, test is tst2010 to tst2015",
        licence="CC BY-NC-ND 4.0",
        languages=("en-de", "de-en", "en-fr", "fr-en", "en-ja", "ja-en", "en-zh", "zh-en"),
        sources=(
            ("train", _ted("iwslt17", "train.tags", pairs={"en-de": 206_112})),
            ("valid", _ted("dev2010", "IWSLT17.TED.dev2010", suffix=".xml", pairs={"en-de": 888})),
            *(
                ("test", _ted(f"tst{year}", f"IWSLT17.TED.tst{year}", suffix=".xml"))
                for year in range(2010, 2016)
            ),
        ),
    ),
    Listing(
        name="europarl-v7",
        summary="European Parliament 1996–2011",
        licence=_EUROPARL_TERMS,
        languages=_EUROPARL_PAIRS,
        sources=(
            (
                "train",
                Source(
                    name="europarl-v7",
                    urls=(f"{_STATMT}/europarl/v7/{{x}}-{{y}}.tgz",),
                    members=("europarl-v7.{x}-{y}.{x}", "europarl-v7.{x}-{y}.{y}"),
                    pairs={"de-en": 1_920_209},
                ),
            ),
        ),
    ),
    Listing(
        name="europarl-v10",
        summary="European Parliament, the release of WMT 2020",
        licence=_EUROPARL_TERMS,
        languages=(*_EUROPARL_PAIRS, "cs-pl", "de-fr", "es-pt"),
        sources=(
            (
                "train",
                Source(
                    name="europarl-v10",
                    urls=(f"{_STATMT}/europarl/v10/training/europarl-v10.{{x}}-{{y}}.tsv.gz",),
                    form="tsv",
                ),
            ),
        ),
    ),
    Listing(
        name="commoncrawl",
        summary="web text of WMT 2013, noisy",
        licence=_WMT_TERMS,
        languages=("de-en", "cs-en", "es-en", "fr-en", "ru-en"),
        sources=(("train", _COMMONCRAWL),),
    ),
    Listing(
        name="news-commentary-v9",
        summary="newspaper comments, WMT 2014",
        licence=_WMT_TERMS,
        languages=("de-en", "cs-en", "fr-en", "ru-en"),
        sources=(("train", _NEWS_V9),),
    ),
    Listing(
        name="news-commentary-v11",
        summary="newspaper comments, WMT 2016",
        licence=_WMT_TERMS,
        languages=("de-en", "cs-en", "ru-en"),
        sources=(("train", _NEWS_V11),),
    ),
    Listing(
        name="tatoeba",
        summary="short everyday sentences, OPUS release of 2023-04-12",
        licence="CC BY 2.0 FR",
        languages=(
            "de-en",
            "cs-en",
            "en-es",
            "en-fr",
            "en-it",
            "en-ja",
            "en-nl",
            "en-pl",
            "en-pt",
            "en-ru",
            "en-uk",
        ),
        sources=(
            (
                "train",
                Source(
                    name="tatoeba",
                    urls=("https://object.pouta.csc.fi/OPUS-Tatoeba/v2023-04-12/moses/{x}-{y}.txt.zip",),
                    members=("*.{x}", "*.{y}"),
                ),
            ),
        ),
    ),
    *(
        Listing(
            name=source.name,
            summary=f"WMT news test set of {source.name[-4:]}",
            licence=_WMT_TERMS,
            languages=languages,
            sources=(("test", source),),
        )
        for source, languages in _NEWSTESTS
    ),
)


def find_corpus(name: str, languages: tuple[str, str] | None = None) -> PublicCorpus:
    """Return the corpus of that name; TandemError names the nearest one where there is none."""
    for listing in CATALOGUE:
        if listing.name == name:
            return listing.build(languages)
    near = difflib.get_close_matches(name, [listing.name for listing in CATALOGUE], n=1)
    hint = f"did you mean {near[0]}?" if near else "see `tandem data list`, and `tandem data list --all`."
    raise TandemError(f"There is no public corpus {name!r}: {hint}")


def recipes_with(listing: Listing) -> tuple[str, ...]:
    """Name the recipes of the catalogue that hold the text of this corpus."""
    names = {source.name for _, source in listing.sources}
    return tuple(
        other.name
        for other in CATALOGUE
        if other.recipe and other is not listing and names <= {source.name for _, source in other.sources}
    )
