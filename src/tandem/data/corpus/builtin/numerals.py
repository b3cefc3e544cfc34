"""Numbers as words and digits, years, prices and the clock, in both languages."""

__all__ = ["clock_time", "english_cardinal", "german_cardinal", "grouped"]

_GERMAN = [
    "null",
    "ein",
    "zwei",
    "drei",
    "vier",
    "fünf",
    "sechs",
    "sieben",
    "acht",
    "neun",
    "zehn",
    "elf",
    "zwölf",
]
_ENGLISH = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
]
_GERMAN_HOURS = ["zwölf", "eins", *_GERMAN[2:12]]
_ENGLISH_HOURS = ["twelve", *_ENGLISH[1:12]]
_LARGEST_WORD = 12


def german_cardinal(number: int) -> str:
    """Spell a count up to twelve, as German texts do, and write the others in digits."""
    return _GERMAN[number] if number <= _LARGEST_WORD else grouped(number)[0]


def english_cardinal(number: int) -> str:
    """Spell a count up to twelve and write the others in digits."""
    return _ENGLISH[number] if number <= _LARGEST_WORD else grouped(number)[1]


def grouped(number: int) -> tuple[str, str]:
    """Write digits in German and in English: 12.500 and 12,500."""
    text = f"{number:,}"
    return text.replace(",", "."), text


def clock_time(quarters: int) -> tuple[str, str]:
    """Say a time of the twelve-hour clock, counted in quarter hours after twelve: halb acht, half past seven."""
    hour, quarter = divmod(quarters % 48, 4)
    german, english = _GERMAN_HOURS, _ENGLISH_HOURS
    following = (hour + 1) % 12
    if quarter == 0:
        spoken = "ein" if hour == 1 else german[hour]
        return f"um {spoken} Uhr", f"at {english[hour]} o'clock"
    if quarter == 1:
        return f"um Viertel nach {german[hour]}", f"at a quarter past {english[hour]}"
    if quarter == 2:
        return f"um halb {german[following]}", f"at half past {english[hour]}"
    return f"um Viertel vor {german[following]}", f"at a quarter to {english[following]}"
