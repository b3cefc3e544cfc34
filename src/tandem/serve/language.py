"""Names of languages, and a guess which one a text is in (py3langid, extra `[language]`)."""

from collections.abc import Callable, Collection
from typing import TypeAlias

__all__ = ["Guess", "build_guess", "language_name"]

Guess: TypeAlias = Callable[[str, Collection[str]], tuple[str, float]]
"""Text and the codes to choose from (none: all that are known) to the likeliest code and its share, 0 to 1."""

TABLE = """
ar=Arabic bg=Bulgarian bn=Bengali bs=Bosnian ca=Catalan cs=Czech cy=Welsh da=Danish de=German el=Greek
en=English eo=Esperanto es=Spanish et=Estonian eu=Basque fa=Persian fi=Finnish fr=French ga=Irish gl=Galician
gu=Gujarati he=Hebrew hi=Hindi hr=Croatian hu=Hungarian hy=Armenian id=Indonesian is=Icelandic it=Italian
ja=Japanese ka=Georgian kk=Kazakh kn=Kannada ko=Korean lt=Lithuanian lv=Latvian mk=Macedonian ml=Malayalam
mn=Mongolian mr=Marathi ms=Malay mt=Maltese my=Burmese nb=Norwegian ne=Nepali nl=Dutch nn=Nynorsk no=Norwegian
pa=Punjabi pl=Polish pt=Portuguese ro=Romanian ru=Russian si=Sinhala sk=Slovak sl=Slovenian so=Somali
sq=Albanian sr=Serbian sv=Swedish sw=Swahili ta=Tamil te=Telugu th=Thai tl=Tagalog tr=Turkish uk=Ukrainian
ur=Urdu uz=Uzbek vi=Vietnamese zh=Chinese
"""
NAMES = dict(pair.split("=") for pair in TABLE.split())


def language_name(code: str) -> str:
    """English name of a language, with what the code says besides; the code itself where it is not known."""
    primary, *rest = code.replace("_", "-").split("-")
    name = NAMES.get(primary)
    if name is None:
        return code
    return f"{name} ({'-'.join(rest)})" if rest else name


def build_guess() -> Guess | None:
    """A guess, where py3langid is installed."""
    try:
        from py3langid.langid import MODEL_FILE, LanguageIdentifier  # noqa: PLC0415  (an optional, slow import)
    except ImportError:
        return None
    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)

    def guess(text: str, among: Collection[str]) -> tuple[str, float]:
        ranked = [(str(code), float(share)) for code, share in identifier.rank(text)]
        primary = {code.replace("_", "-").split("-")[0]: code for code in among}
        fitting = [(primary[code], share) for code, share in ranked if code in primary]
        if fitting:
            return fitting[0]
        return ranked[0] if not among else (next(iter(among)), 0.0)

    return guess
