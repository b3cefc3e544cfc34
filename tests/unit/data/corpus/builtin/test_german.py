"""German morphology against tables of known forms."""

import pytest

from tandem.data.corpus.builtin import german
from tandem.data.corpus.builtin.german import (
    ACC,
    ADJECTIVE_ENDINGS,
    DAT,
    GEN,
    NOM,
    PLURAL,
    PRONOUNS,
    RELATIVE,
    join_preposition,
    noun_forms,
    verb_from_parts,
    wo_compound,
)


@pytest.mark.parametrize(
    ("parts", "present"),
    [
        ("kaufen", "kaufe kaufst kauft kaufen kauft kaufen"),
        ("arbeiten", "arbeite arbeitest arbeitet arbeiten arbeitet arbeiten"),
        ("öffnen", "öffne öffnest öffnet öffnen öffnet öffnen"),
        ("zeichnen", "zeichne zeichnest zeichnet zeichnen zeichnet zeichnen"),
        ("wohnen", "wohne wohnst wohnt wohnen wohnt wohnen"),
        ("lernen", "lerne lernst lernt lernen lernt lernen"),
        ("tanzen", "tanze tanzt tanzt tanzen tanzt tanzen"),
        ("spielen", "spiele spielst spielt spielen spielt spielen"),
        ("sammeln", "sammle sammelst sammelt sammeln sammelt sammeln"),
        ("füttern", "füttere fütterst füttert füttern füttert füttern"),
        ("essen isst aß gegessen", "esse isst isst essen esst essen"),
        ("lesen liest las gelesen", "lese liest liest lesen lest lesen"),
        ("geben gibt gab gegeben", "gebe gibst gibt geben gebt geben"),
        ("halten hält hielt gehalten", "halte hältst hält halten haltet halten"),
        ("ein-laden lädt lud geladen", "lade lädst lädt laden ladet laden"),
        ("sein ist war gewesen s", "bin bist ist sind seid sind"),
        ("haben hat hatte gehabt", "habe hast hat haben habt haben"),
        ("wissen weiß wusste gewusst", "weiß weißt weiß wissen wisst wissen"),
    ],
)  # fmt: skip
def test_the_present_is_conjugated(parts: str, present: str) -> None:
    assert verb_from_parts(parts).present == tuple(present.split())


@pytest.mark.parametrize(
    ("parts", "preterite", "participle"),
    [
        ("kaufen", "kaufte kauftest kaufte kauften kauftet kauften", "gekauft"),
        ("zeichnen", "zeichnete zeichnetest zeichnete zeichneten zeichnetet zeichneten", "gezeichnet"),
        ("besuchen", "besuchte besuchtest besuchte besuchten besuchtet besuchten", "besucht"),
        ("reparieren", "reparierte repariertest reparierte reparierten repariertet reparierten", "repariert"),
        ("ab-holen", "holte holtest holte holten holtet holten", "abgeholt"),
        ("gehen geht ging gegangen s", "ging gingst ging gingen gingt gingen", "gegangen"),
        ("finden findet fand gefunden", "fand fandest fand fanden fandet fanden", "gefunden"),
        (
            "auf-stehen steht stand gestanden s",
            "stand standest stand standen standet standen",
            "aufgestanden",
        ),
        (
            "bringen bringt brachte gebracht",
            "brachte brachtest brachte brachten brachtet brachten",
            "gebracht",
        ),
    ],
)
def test_the_past_and_the_participle_are_formed(parts: str, preterite: str, participle: str) -> None:
    verb = verb_from_parts(parts)
    assert (verb.preterite, verb.participle) == (tuple(preterite.split()), participle)


@pytest.mark.parametrize(
    ("parts", "zu_infinitive", "imperative"),
    [
        ("lesen liest las gelesen", "zu lesen", "lies"),
        ("geben gibt gab gegeben", "zu geben", "gib"),
        ("helfen hilft half geholfen", "zu helfen", "hilf"),
        ("waschen wäscht wusch gewaschen", "zu waschen", "wasche"),
        ("bügeln", "zu bügeln", "bügle"),
        ("auf-stehen steht stand gestanden s", "aufzustehen", "stehe"),
        ("sich aus-ruhen", "auszuruhen", "ruhe"),
    ],
)
def test_infinitives_with_zu_and_imperatives(parts: str, zu_infinitive: str, imperative: str) -> None:
    verb = verb_from_parts(parts)
    assert (verb.zu_infinitive, verb.imperative) == (zu_infinitive, imperative)


@pytest.mark.parametrize(
    ("forms", "expected"),
    [
        (noun_forms(0, "Mann", "Männer"), "Mann Mann Mann Mannes Männer Männer Männern Männer"),
        (noun_forms(1, "Frau", "Frauen"), "Frau Frau Frau Frau Frauen Frauen Frauen Frauen"),
        (noun_forms(2, "Auto", "Autos"), "Auto Auto Auto Autos Autos Autos Autos Autos"),
        (noun_forms(2, "Haus", "Häuser"), "Haus Haus Haus Hauses Häuser Häuser Häusern Häuser"),
        (noun_forms(0, "Lehrer", "Lehrer"), "Lehrer Lehrer Lehrer Lehrers Lehrer Lehrer Lehrern Lehrer"),
        (noun_forms(2, "Kind", "Kinder"), "Kind Kind Kind Kindes Kinder Kinder Kindern Kinder"),
        (noun_forms(0, "Bär", "Bären", oblique="Bären"), "Bär Bären Bären Bären Bären Bären Bären Bären"),
        (noun_forms(0, "Herr", "Herren", oblique="Herrn"), "Herr Herrn Herrn Herrn Herren Herren Herren Herren"),
    ],
)  # fmt: skip
def test_nouns_are_declined(forms: tuple[str, ...], expected: str) -> None:
    assert forms == tuple(expected.split())


@pytest.mark.parametrize(
    ("declension", "table"),
    [
        ("weak", "e e e en | en e e en | en en en en | en en en en"),
        ("mixed", "er e es en | en e es en | en en en en | en en en en"),
        ("strong", "er e es e | en e es e | em er em en | en er en er"),
    ],
)
def test_adjective_endings(declension: str, table: str) -> None:
    expected = tuple(tuple(row.split()) for row in table.split(" | "))
    assert ADJECTIVE_ENDINGS[declension] == expected


def test_a_noun_in_nis_doubles_its_s_in_the_genitive() -> None:
    assert noun_forms(2, "Geheimnis", "Geheimnisse")[GEN] == "Geheimnisses"


def test_articles_and_possessives_are_declined() -> None:
    kein, euer, dies = german.ein_word("kein"), german.ein_word("euer"), german.der_word("dies")
    assert (kein[NOM][0], kein[ACC][0], kein[DAT][1], kein[GEN][2]) == ("kein", "keinen", "keiner", "keines")
    assert (euer[NOM][0], euer[NOM][1], euer[DAT][PLURAL]) == ("euer", "eure", "euren")
    assert (dies[NOM][2], dies[DAT][0], dies[GEN][PLURAL]) == ("dieses", "diesem", "dieser")


def test_relative_pronouns_differ_from_articles_where_they_must() -> None:
    assert (RELATIVE[DAT][PLURAL], RELATIVE[GEN][0], RELATIVE[ACC][0]) == ("denen", "dessen", "den")


@pytest.mark.parametrize(
    ("preposition", "phrase", "joined"),
    [
        ("in", "dem Park", "im Park"),
        ("in", "das Haus", "ins Haus"),
        ("an", "dem See", "am See"),
        ("an", "das Meer", "ans Meer"),
        ("zu", "dem Bahnhof", "zum Bahnhof"),
        ("zu", "der Schule", "zur Schule"),
        ("bei", "dem Arzt", "beim Arzt"),
        ("von", "dem alten Mann", "vom alten Mann"),
        ("in", "der Stadt", "in der Stadt"),
        ("auf", "dem Tisch", "auf dem Tisch"),
        ("mit", "dem Zug", "mit dem Zug"),
    ],
)
def test_prepositions_contract_with_the_article(preposition: str, phrase: str, joined: str) -> None:
    assert join_preposition(preposition, phrase) == joined


def test_question_words_for_things_behind_a_preposition() -> None:
    assert [wo_compound(word) for word in ("auf", "über", "mit", "von")] == [
        "worauf",
        "worüber",
        "womit",
        "wovon",
    ]


def test_pronouns_in_three_cases() -> None:
    assert PRONOUNS["du"].cases == ("du", "dich", "dir")
    assert PRONOUNS["Sie"].cases == ("Sie", "Sie", "Ihnen")
    assert (PRONOUNS["ihr"].reflexive, PRONOUNS["sie alle"].possessive) == ("euch", "ihr")
