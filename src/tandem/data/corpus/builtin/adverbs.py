"""The adverbials that need no grammar: when, how often, how, and the names of people, cities and vehicles."""

from tandem.data.corpus.builtin.numerals import clock_time, english_cardinal, german_cardinal
from tandem.data.corpus.builtin.words import Adverb

__all__ = [
    "CITIES",
    "CLOCK", "DATES",
    "FAR",
    "FEMALE_NAMES",
    "HABITS",
    "INTENSIFIERS",
    "MALE_NAMES",
    "MANNERS",
    "NOW_ADVERBS",
    "OFTEN",
    "OPENERS",
    "SINCE",
    "SOON",
    "SPOKEN_PAST",
    "SURNAMES",
    "TOLD_PAST",
    "VEHICLES",
    "WH",
    "YEARS",
]  # fmt: skip

FEMALE_NAMES = (
    "Anna", "Maria", "Julia", "Laura", "Lena", "Sophie", "Emma", "Clara", "Lisa", "Nina", "Eva", "Sarah",
    "Hannah", "Katharina", "Martina", "Petra", "Sabine", "Ursula", "Monika", "Johanna", "Paula", "Greta",
)  # fmt: skip
MALE_NAMES = (
    "Paul", "Peter", "Michael", "Martin", "Stefan", "Jan", "Tim", "Jonathan", "Daniel", "David", "Simon", "Oliver",
    "Karl", "Robert", "Wolfgang", "Walter", "Georg", "Anton", "Emil", "Leon", "Erik", "Ralf",
)  # fmt: skip
SURNAMES = (
    "Weber", "Schneider", "Fischer", "Meyer", "Wagner", "Becker", "Hoffmann", "Koch", "Richter", "Klein", "Neumann",
    "Krüger", "Hartmann", "Lange", "Werner", "Lehmann", "Keller", "Vogel", "Winter", "Sommer", "Brandt", "Lindner",
)  # fmt: skip


def _adverbs(kind: str, table: str) -> tuple[Adverb, ...]:
    rows = (line.split(" | ") for line in table.strip().splitlines())
    return tuple(Adverb(german=german, english=english, kind=kind) for german, english in rows)


_WEEKDAYS = (
    ("Montag", "Monday"), ("Dienstag", "Tuesday"), ("Mittwoch", "Wednesday"), ("Donnerstag", "Thursday"),
    ("Freitag", "Friday"), ("Samstag", "Saturday"), ("Sonntag", "Sunday"),
)  # fmt: skip
_MONTHS = (
    ("Januar", "January"), ("Februar", "February"), ("März", "March"), ("April", "April"), ("Mai", "May"),
    ("Juni", "June"), ("Juli", "July"), ("August", "August"), ("September", "September"), ("Oktober", "October"),
    ("November", "November"), ("Dezember", "December"),
)  # fmt: skip
_UNITS: tuple[tuple[str, str, range], ...] = (
    ("Stunden", "hours", range(2, 12)), ("Tagen", "days", range(2, 7)), ("Wochen", "weeks", range(2, 6)),
    ("Monaten", "months", range(2, 12)), ("Jahren", "years", range(2, 13)),
)  # fmt: skip


def _time(german: str, english: str) -> Adverb:
    return Adverb(german=german, english=english, kind="time")


def _spans(german: str, english: str, units: slice) -> tuple[Adverb, ...]:
    return tuple(
        _time(
            german.format(f"{german_cardinal(n)} {unit}"),
            english.format(f"{english_cardinal(n)} {english_unit}"),
        )
        for unit, english_unit, counts in _UNITS[units]
        for n in counts
    )


def _weekdays(german: str, english: str) -> tuple[Adverb, ...]:
    return tuple(_time(german.format(day), english.format(english_day)) for day, english_day in _WEEKDAYS)


SPOKEN_PAST = (
    *_adverbs("time", """
gestern | yesterday
vorgestern | the day before yesterday
heute Morgen | this morning
gestern Abend | yesterday evening
letzte Woche | last week
letzten Monat | last month
letztes Wochenende | last weekend
letzte Nacht | last night
"""),
    *_spans("vor {}", "{} ago", slice(0, 3)),
    *_weekdays("letzten {}", "last {}"),
)  # fmt: skip
TOLD_PAST = (
    *_adverbs("time", """
damals | back then
eines Tages | one day
eines Morgens | one morning
vor vielen Jahren | many years ago
vor langer Zeit | a long time ago
"""),
)  # fmt: skip
YEARS = tuple(_time(f"im Jahr {year}", f"in {year}") for year in range(1920, 2020))
DATES = (*YEARS[70:], *(_time(f"im {month}", f"in {english}") for month, english in _MONTHS))
HABITS = (
    *_adverbs("time", """
jeden Tag | every day
jeden Morgen | every morning
jeden Abend | every evening
jede Woche | every week
jeden Monat | every month
am Wochenende | at the weekend
im Sommer | in summer
im Winter | in winter
nach der Arbeit | after work
"""),
    *_weekdays("jeden {}", "every {}"),
)  # fmt: skip
NOW_ADVERBS = _adverbs("time", """
gerade | right now
jetzt | now
im Moment | at the moment
heute | today
""")  # fmt: skip
SOON = (
    *_adverbs("time", """
morgen | tomorrow
übermorgen | the day after tomorrow
morgen Abend | tomorrow evening
heute Abend | this evening
bald | soon
"""),
    *_weekdays("am {}", "on {}"),
)  # fmt: skip
FAR = (
    *_adverbs("time", """
nächste Woche | next week
nächsten Monat | next month
nächstes Jahr | next year
"""),
    *_spans("in {}", "in {}", slice(1, 4)),
    *(_time(f"am {day}. {month}", f"on {day} {english}") for month, english in _MONTHS for day in range(1, 29)),
)  # fmt: skip
SINCE = _spans("seit {}", "for {}", slice(3, 5))
CLOCK = tuple(_time(*clock_time(quarters)) for quarters in range(48))
OFTEN = (
    *_adverbs("often", """
oft | often
immer | always
manchmal | sometimes
selten | rarely
meistens | usually
"""),
    *_adverbs("already", "nie | never"),
)  # fmt: skip
OPENERS = _adverbs("time", """
leider | unfortunately,
vielleicht | perhaps
zum Glück | fortunately,
natürlich | of course,
deshalb | that is why
""")  # fmt: skip
MANNERS = {
    adverb.german: adverb
    for adverb in _adverbs("manner", """
langsam | slowly
schnell | quickly
vorsichtig | carefully
leise | quietly
laut | loudly
höflich | politely
herzlich | warmly
heimlich | secretly
geduldig | patiently
gründlich | thoroughly
aufmerksam | attentively
fleißig | diligently
ruhig | peacefully
gut | well
""")
}  # fmt: skip
INTENSIFIERS = _adverbs("degree", """
sehr | very
ziemlich | quite
wirklich | really
""")  # fmt: skip
VEHICLES = _adverbs("with", """
mit dem Zug | by train
mit dem Bus | by bus
mit dem Auto | by car
mit dem Fahrrad | by bike
mit der Straßenbahn | by tram
mit dem Taxi | by taxi
""")  # fmt: skip
CITIES = (
    ("Berlin", "Berlin"), ("Hamburg", "Hamburg"), ("München", "Munich"), ("Köln", "Cologne"), ("Wien", "Vienna"),
    ("Dresden", "Dresden"), ("Leipzig", "Leipzig"), ("Bremen", "Bremen"), ("Zürich", "Zurich"), ("Rom", "Rome"),
    ("Paris", "Paris"), ("London", "London"), ("Prag", "Prague"), ("Nürnberg", "Nuremberg"), ("Genf", "Geneva"),
    ("Deutschland", "Germany"), ("Österreich", "Austria"), ("Frankreich", "France"), ("Italien", "Italy"),
    ("Spanien", "Spain"), ("Norwegen", "Norway"), ("Schweden", "Sweden"), ("Polen", "Poland"),
)  # fmt: skip
WH = {adverb.german: adverb for adverb in _adverbs("wh", """
wann | when
wo | where
wohin | where
warum | why
wie oft | how often
wie lange | how long
""")}  # fmt: skip
