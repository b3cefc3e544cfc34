"""The verbs: principal parts in both languages, who does them to what, and how they behave.

Flags on time: state (no progressive), sensed (a state with a plain past), skill (a state that lasts), sudden (past
only), epoch (years ago), once (no habit), unwilled (neither future nor modal), unwished (no modal), past (simple past
even in speech). On objects: known (definite), kinds (bare plural), single (no plural), foreign (not one's own),
swap (it is the German subject). Others: passive (makes a natural one), at= (where it is done), how= (manners).
"""

from tandem.data.corpus.builtin.words import Verb, verb_from_line

__all__ = [
    "ACTIONS",
    "BE",
    "BECOME",
    "COST",
    "EXIST",
    "GO_BY",
    "HAVE",
    "LAST_TIME",
    "LIKE_DOING",
    "LIVE",
    "MOVES",
    "PURSUITS",
    "PUTS",
    "REPORTS",
    "SITS",
    "STATES",
    "VERBS",
    "WEATHER",
    "WONDERS",
]

_ACTIONS = """
schlafen schläft schlief geschlafen | sleep slept slept | person animal | | at=home how=ruhig,gut
arbeiten | work | adult | | at=building,shop,dining how=fleißig,langsam,schnell
lachen | laugh | person | | unwilled
weinen | cry | young | | unwilled
tanzen | dance | person | | at=home,open
singen singt sang gesungen | sing sang sung | person | | at=home,open how=laut,leise,gut
spielen | play | young pet | | at=home,open
lernen | study | pupil | | at=home,study how=fleißig
auf-stehen steht stand gestanden s | get got got +up | person | |
ein-schlafen schläft schlief geschlafen s | fall fell fallen =asleep | person pet | | sudden
auf-wachen s | wake woke woken +up | person | | sudden unwished
an-kommen kommt kam gekommen s | arrive | person | | unwished
zurück-kommen kommt kam gekommen s | come came come +back | person | | unwished
aus-gehen geht ging gegangen s | go went gone +out | adult | |
sich aus-ruhen | rest | person | | at=home,open
sich beeilen | hurry | person | | unwished
sich an-ziehen zieht zog gezogen | get got got =dressed | person | |
sich setzen | sit sat sat +down | person | |
sich erkälten | catch caught caught =a cold | person | | sudden
husten | cough | person | | unwilled
lächeln | smile | person | | unwilled
rauchen | smoke | adult | | at=open
frühstücken | have had had =breakfast | person | | at=home,dining
fern-sehen sieht sah gesehen | watch =television | person | |
ein-kaufen | shop | adult | | at=shop,town
schwimmen schwimmt schwamm geschwommen s | swim swam swum | person | |
lügen lügt log gelogen | lie lied lied | person | | unwilled unwilled
haben hat hatte gehabt =Hunger~keinen Hunger | be was been =hungry | person | | state past
haben hat hatte gehabt =Durst~keinen Durst | be was been =thirsty | person | | state past
haben hat hatte gehabt =recht | be was been =right | person | | state past
haben hat hatte gehabt =Zeit~keine Zeit | have had had =time | person | | state past
bleiben bleibt blieb geblieben s =zu Hause | stay =at home | person | |
gehen geht ging gegangen s =nach Hause | go went gone =home | person | |
kommen kommt kam gekommen s =nach Hause | come came come =home | person | |
spielen =Fußball | play =football | person | | at=field
spielen =Karten | play =cards | person | | at=home,dining
machen =Hausaufgaben~keine Hausaufgaben | do did done =homework | pupil young | | at=home,study
essen isst aß gegessen | eat ate eaten | person | acc food | passive
fressen frisst fraß gefressen | eat ate eaten | hunter | acc raw |
fressen frisst fraß gefressen | eat ate eaten | farm | acc feed |
trinken trinkt trank getrunken | drink drank drunk | person | acc drink |
lesen liest las gelesen | read read read | person | acc text | at=home,open,dining how=aufmerksam,langsam
schreiben schreibt schrieb geschrieben | write wrote written | adult | acc written | at=home,study passive
kaufen | buy bought bought | adult | acc ware food produce drink plant | passive foreign
verkaufen | sell sold sold | adult | acc ware vehicle | passive once
suchen | look | person | acc=for thing small pet |
finden findet fand gefunden | find found found | person | acc thing small pet | sudden
verlieren verliert verlor verloren | lose lost lost | person | acc small | sudden
brauchen | need | person | acc ware thing device | state past
holen | fetch | person | acc thing drink |
tragen trägt trug getragen | carry | person | acc packed sent furniture |
tragen trägt trug getragen | wear wore worn | person | acc garment headgear | single
öffnen | open | person | acc opened | passive how=vorsichtig,langsam,leise
schließen schließt schloss geschlossen | close | person | acc opened | passive how=vorsichtig,langsam,leise
reparieren | repair | adult | acc fixable | passive
putzen | clean | person | acc cleaned | passive
waschen wäscht wusch gewaschen | wash | person | acc washable | passive
bügeln | iron | adult | acc ironed |
malen | paint | person | acc painted |
zeichnen | draw drew drawn | person | acc plant animal sight |
bauen | build built built | builds | acc building built | passive once sudden epoch
besuchen | visit | person | acc friend kin sight |
kennen kennt kannte gekannt | know knew known | person | acc person town sight watched | state past known
treffen trifft traf getroffen | meet met met | person | acc person | at=open,dining,building
lieben | love | person | acc kin | state past
mögen mag mochte gemocht | like | person | acc human animal | state past known
sehen sieht sah gesehen | see saw seen | person | acc person animal seen | state sensed at=open,town
hören | hear heard heard | person | acc heard | state sensed
fotografieren | photograph | person | acc sight animal person |
an-rufen ruft rief gerufen | phone | person | acc person |
ein-laden lädt lud geladen | invite | adult | acc person | passive
ab-holen | pick +up | adult | acc person sent | passive
an-ziehen zieht zog gezogen | put put put +on | person | acc garment | single
aus-ziehen zieht zog gezogen | take took taken +off | person | acc garment | single
an-machen | turn +on | person | acc switched | known
aus-machen | turn +off | person | acc switched | known
vergessen vergisst vergaß vergessen | forget forgot forgotten | person | acc thing small | sudden
verstehen versteht verstand verstanden | understand understood understood | person | acc idea written | state known
unterschreiben unterschreibt unterschrieb unterschrieben | sign | adult | acc signed | passive once
übersetzen übersetzt übersetzte übersetzt | translate | adult | acc tale written | passive
lösen | solve | person | acc solved | passive
beantworten | answer | person | acc answered | passive how=schnell,geduldig
schneiden schneidet schnitt geschnitten | cut cut cut | person | acc cut |
backen backt backte gebacken | bake | person | acc baked | passive
kochen | cook | adult | acc meal |
probieren | try | person | acc food |
bestellen | order | adult | acc menu drink | passive foreign
bezahlen | pay paid paid | adult | acc bill | passive
mieten | rent | adult | acc rented driven | once foreign
füttern | feed fed fed | person | acc pet farm | passive
jagen | chase | hunter | acc prey |
fangen fängt fing gefangen | catch caught caught | hunter | acc prey | sudden
beißen beißt biss gebissen | bite bit bitten | pet | acc adult | sudden
werfen wirft warf geworfen | throw threw thrown | person | acc thrown |
packen | pack | person | acc packed |
gießen gießt goss gegossen | water | person | acc plant |
pflücken | pick | person | acc picked orchard |
sammeln | collect | person | acc collected | kinds
planen | plan | adult | acc planned | once
vor-bereiten bereitet bereitete bereitet | prepare | adult | acc planned | how=gründlich,heimlich once
organisieren | organise | adult | acc event | passive once
ab-sagen | cancel | adult | acc event | passive once
gewinnen gewinnt gewann gewonnen | win won won | person | acc won | sudden
verpassen | miss | person | acc carriage | sudden
verlassen verlässt verließ verlassen | leave left left | person | acc room town building | how=leise,schnell known
bewundern | admire | person | acc sight plant job |
begrüßen | greet | person | acc human | how=höflich,herzlich
stören | disturb | person | acc adult | unwilled known
trösten | comfort | adult | acc young |
untersuchen untersucht untersuchte untersucht | examine | heals | acc ill young | passive how=gründlich,vorsichtig
unterrichten unterrichtet unterrichtete unterrichtet | teach taught taught | teaches | acc pupil |
verhaften | arrest | arrests | acc criminal | passive once known
beobachten | watch | person | acc animal human | passive known
umarmen umarmt umarmte umarmt | hug | person | acc kin friend |
verstecken | hide hid hidden | person | acc small thing |
benutzen | use | person | acc used |
ändern | change | adult | acc changed | passive once
korrigieren | correct | teaches | acc corrected |
spielen =Klavier | play =the piano | person | | state skill how=gut
spielen =Gitarre | play =the guitar | person | | state skill how=gut
spielen =Geige | play =the violin | person | | state skill how=gut
lernen | learn learnt learnt | person | acc language |
sprechen spricht sprach gesprochen | speak spoke spoken | person | acc language | state
helfen hilft half geholfen | help | person | dat person | at=home,shop
danken | thank | person | dat person | how=höflich,herzlich
folgen s | follow | person pet | dat human |
antworten | answer | person | dat person | how=höflich,schnell,geduldig
vertrauen | trust | person | dat person | state known
zu-hören | listen | person | dat=to person |
gratulieren | congratulate | person | dat person | once
glauben | believe | person | dat person | state known
verzeihen verzeiht verzieh verziehen | forgive forgave forgiven | person | dat person | sudden
gehorchen | obey | pet young | dat adult | state known
gehören | belong | ware pet owned | dat=to person | state past known
gefallen gefällt gefiel gefallen | like | person | acc gift clothes sight watched town | state swap past known foreign
schmecken | like | person | acc food | state swap past known foreign
geben gibt gab gegeben | give gave given | person | dat person, acc thing gift sent |
zeigen | show showed shown | person | dat person, acc thing gift painted |
schicken | send sent sent | person | dat person, acc sent gift paper |
leihen leiht lieh geliehen | lend lent lent | person | dat friend kin, acc ridden driven used gift |
erzählen | tell told told | person | dat person, acc told |
bringen bringt brachte gebracht | bring brought brought | person | dat person, acc drink thing food |
kaufen | buy bought bought | adult kin | dat kin friend young, acc gift |
erklären | explain | teaches parent friend | dat=to pupil kin friend, acc idea |
empfehlen empfiehlt empfahl empfohlen | recommend | adult | dat=to person, acc dining tale watched |
vor-lesen liest las gelesen | read read read | adult kin | dat=to young, acc tale |
zurück-geben gibt gab gegeben | return | person | dat=to person, acc thing |
beschreiben beschreibt beschrieb beschrieben | describe | adult | dat=to person, acc criminal changed |
warten | wait | person | auf:acc=for person awaited | at=open,building
denken denkt dachte gedacht | think thought thought | person | an:acc=of kin friend planned exam | unwilled
sprechen spricht sprach gesprochen | speak spoke spoken | person | mit:dat=to person |
sprechen spricht sprach gesprochen | speak spoke spoken | adult | über:acc=about idea event watched |
träumen | dream dreamt dreamt | person | von:dat=about planned wild driven | unwilled
sich freuen | look =forward | person | auf:acc=to event planned | once
sich ärgern | be was been =annoyed | person | über:acc=about bill corrected exam | past unwilled
sich interessieren | be was been =interested | person | für:acc=in idea tale language sight | state past
sich erinnern | remember | person | an:acc human told | state known
sich kümmern | take took taken =care | person | um:acc=of pet farm young ill plant |
sich beschweren | complain | adult | über:acc=about bill dining exam | unwilled once
sich vor-bereiten bereitet bereitete bereitet | prepare | person | auf:acc=for exam | how=gründlich once
sich entschuldigen | apologise | person | bei:dat=to person |
sich verabschieden | say said said =goodbye | person | von:dat=to person | once
sich unterhalten unterhält unterhielt unterhalten | chat | person | mit:dat=with person | at=open,dining
streiten streitet stritt gestritten | argue | person | mit:dat=with person | unwilled
spielen | play | young | mit:dat=with young pet thrown | at=home,open
telefonieren | talk =on the phone | person | mit:dat=to person |
auf-passen | look | adult | auf:acc=after young pet |
teil-nehmen nimmt nahm genommen | take took taken =part | person | an:dat=in event | once
arbeiten | work | adult | an:dat=on project paper |
fragen | ask | adult | nach:dat=for bill sent |
haben hat hatte gehabt =Angst~keine Angst | be was been =afraid | person | vor:dat=of wild exam | state past
"""

_MOVES = """
gehen geht ging gegangen s | go went gone | person | | places
laufen läuft lief gelaufen s | run ran run | person pet | | places
zurück-kehren s | return | person | | places
fliegen fliegt flog geflogen s | fly flew flown | person | | cities
reisen s | travel | person | | cities
ziehen zieht zog gezogen s | move | adult kin | | cities
"""

_GO_BY = "fahren fährt fuhr gefahren s | go went gone | person | | cities places"

_SITS = """
liegen liegt lag gelegen | be was been | lies | | past
stehen steht stand gestanden | be was been | stands | | past
hängen hängt hing gehangen | be was been | hangs | | past
"""

_PUTS = """
legen | put put put | person | acc lies |
stellen | put put put | person | acc stands |
"""

_STATES = """
haben hat hatte gehabt =viel Arbeit | have had had =a lot of work | person | | state past
haben hat hatte gehabt =Kopfschmerzen | have had had =a headache | person | | state past
haben hat hatte gehabt =Fieber | have had had =a temperature | person | | state past
haben hat hatte gehabt =Zahnschmerzen | have had had =toothache | person | | state past
haben hat hatte gehabt =Rückenschmerzen | have had had =back pain | person | | state past
haben hat hatte gehabt =Besuch | have had had =visitors | person | | state past
haben hat hatte gehabt =einen Termin | have had had =an appointment | person | | state past
haben hat hatte gehabt =keine Zeit | have had had =no time | person | | state past
"""

_PURSUITS = """
versuchen | try | person | |
vergessen vergisst vergaß vergessen | forget forgot forgotten | person | | state
beschließen beschließt beschloss beschlossen | decide | person | |
hoffen | hope | person | | state
an-fangen fängt fing gefangen | begin began begun | person | |
planen | plan | adult | |
"""

_REPORTS = """
sagen | say said said | person | | state
glauben | believe | person | | state past
wissen weiß wusste gewusst | know knew known | person | | state past
hören | hear heard heard | person | | state
hoffen | hope | person | | state
vergessen vergisst vergaß vergessen | forget forgot forgotten | person | | state
bemerken | notice | person | | state
"""

_WONDERS = """
fragen | ask | person | | state
wissen weiß wusste gewusst | know knew known | person | | state past
"""

_WEATHER = """
regnen | rain | - | |
schneien | snow | - | |
"""


def _read(table: str) -> tuple[Verb, ...]:
    return tuple(verb_from_line(line) for line in table.strip().splitlines())


ACTIONS = _read(_ACTIONS)
MOVES = _read(_MOVES)
GO_BY = verb_from_line(_GO_BY)
SITS = _read(_SITS)
PUTS = _read(_PUTS)
STATES = _read(_STATES)
PURSUITS = _read(_PURSUITS)
REPORTS = _read(_REPORTS)
WONDERS = _read(_WONDERS)
WEATHER = _read(_WEATHER)
BECOME = verb_from_line("werden wird wurde geworden s | become became become | kin | | past")
HAVE = verb_from_line("haben hat hatte gehabt | have had had | town | | state past")
LIKE_DOING = verb_from_line("mögen mag mochte gemocht | like | person | | state past")
LIVE = verb_from_line("wohnen | live | person | | state")
BE = verb_from_line("sein ist war gewesen s | be was been | person | | state past")
EXIST = verb_from_line("geben gibt gab gegeben | be was been | - | acc building open | state past there")
COST = verb_from_line("kosten | cost cost cost | ware | | state past")
LAST_TIME = verb_from_line("dauern | last | event watched | | state past")
VERBS = (
    *ACTIONS,
    *MOVES,
    GO_BY,
    *SITS,
    *PUTS,
    *STATES,
    *PURSUITS,
    *REPORTS,
    *WONDERS,
    *WEATHER,
    BE,
    BECOME,
    HAVE,
    LIKE_DOING,
    LIVE,
    EXIST,
    COST,
    LAST_TIME,
)
