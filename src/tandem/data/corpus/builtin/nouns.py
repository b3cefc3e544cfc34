"""The nouns: German with gender and plural, English, and the classes that decide what may be said of them."""

from tandem.data.corpus.builtin.words import Noun, Place, noun_from_line, place_from_line

__all__ = ["NOUNS", "PLACES", "nouns_tagged"]

_PEOPLE = """
der Mann, Männer | man, men | human adult
die Frau, Frauen | woman, women | human adult
der Junge, Jungen, * | boy | human young
das Mädchen, Mädchen | girl | human young
das Kind, Kinder | child, children | human young
der Vater, Väter | father | kin parent sole
die Mutter, Mütter | mother | kin parent sole
der Bruder, Brüder | brother | kin
die Schwester, Schwestern | sister | kin
der Sohn, Söhne | son | kin young
die Tochter, Töchter | daughter | kin young
der Onkel, Onkel | uncle | kin
die Tante, Tanten | aunt | kin
der Großvater, Großväter | grandfather | kin elder sole
die Großmutter, Großmütter | grandmother | kin elder sole
der Neffe, Neffen, * | nephew | kin young
die Nichte, Nichten | niece | kin young
der Enkel, Enkel | grandson | kin young
die Enkelin, Enkelinnen | granddaughter | kin young
die Cousine, Cousinen | cousin | kin
der Lehrer, Lehrer | teacher | human adult job teaches
die Ärztin, Ärztinnen | doctor | human adult job heals
der Zahnarzt, Zahnärzte, Zahnarztes | dentist | human adult job heals
der Student, Studenten, * | student | human adult job pupil
der Schüler, Schüler | pupil | human young pupil
der Freund, Freunde | friend | human friend
die Nachbarin, Nachbarinnen | neighbour | human adult friend
der Kollege, Kollegen, * | colleague | human adult friend
die Chefin, Chefinnen | boss | human adult friend
der Koch, Köche | cook | human adult job
der Bäcker, Bäcker | baker | human adult job
der Polizist, Polizisten, * | policeman, policemen | human adult job arrests
der Dieb, Diebe | thief, thieves | criminal
der Gast, Gäste | guest | human adult
der Arbeiter, Arbeiter | worker | human adult builds
der Bauer, Bauern, * | farmer | human adult job
der Fahrer, Fahrer | driver | human adult
der Kellner, Kellner | waiter | human adult job
die Schauspielerin, Schauspielerinnen | actress | human adult job
die Künstlerin, Künstlerinnen | artist | human adult job
der Sänger, Sänger | singer | human adult job
die Autorin, Autorinnen | author | human adult job
der Richter, Richter | judge | human adult job
die Anwältin, Anwältinnen | lawyer | human adult job
die Verkäuferin, Verkäuferinnen | shop assistant | human adult job
der Soldat, Soldaten, * | soldier | human adult job
der Tourist, Touristen, * | tourist | human adult
der Kunde, Kunden, * | customer | human adult
die Dame, Damen | lady | human adult
der Herr, Herren, *Herrn | gentleman, gentlemen | human adult
der König, Könige | king | human adult builds
die Königin, Königinnen | queen | human adult
der Prinz, Prinzen, * | prince | human adult
die Prinzessin, Prinzessinnen | princess | human adult
der Pilot, Piloten, * | pilot | human adult job
die Journalistin, Journalistinnen | journalist | human adult job
der Ingenieur, Ingenieure | engineer | human adult job builds
der Musiker, Musiker | musician | human adult job
der Trainer, Trainer | coach | human adult teaches
der Patient, Patienten, * | patient | human adult ill
der Gärtner, Gärtner | gardener | human adult job
die Bürgermeisterin, Bürgermeisterinnen | mayor | human adult builds
die Krankenschwester, Krankenschwestern | nurse | human adult job
"""

_ANIMALS = """
der Hund, Hunde | dog | animal pet hunter
die Katze, Katzen | cat | animal pet hunter
das Pferd, Pferde | horse | animal farm
die Kuh, Kühe | cow | animal farm
das Schwein, Schweine | pig | animal farm
die Ziege, Ziegen | goat | animal farm
der Esel, Esel | donkey | animal farm
die Ente, Enten | duck | animal prey
der Vogel, Vögel | bird | animal prey
die Maus, Mäuse | mouse, mice | animal prey
der Hase, Hasen, * | hare | animal prey
der Fuchs, Füchse | fox | animal wild hunter
der Wolf, Wölfe | wolf, wolves | animal wild hunter
der Bär, Bären, * | bear | animal wild
der Löwe, Löwen, * | lion | animal wild
der Affe, Affen, * | monkey | animal wild
der Elefant, Elefanten, * | elephant | animal wild
die Schlange, Schlangen | snake | animal wild
"""

_FOOD = """
das Brot, - | bread | food mass baked cut feed
der Käse, - | cheese | food mass cut raw
das Fleisch, -, Fleisch | meat | food mass cut meal raw menu
der Reis, - | rice | food mass meal menu
der Fisch, - | fish | food mass meal raw menu
der Honig, - | honey | food mass
die Schokolade, - | chocolate | food mass
das Eis, -, Eises | ice cream | food mass menu
die Butter, - | butter | produce mass
die Marmelade, - | jam | food mass
der Apfel, Äpfel | apple | food fruit orchard cut feed
die Birne, Birnen | pear | food fruit orchard cut
die Banane, Bananen | banana | food fruit cut
die Orange, Orangen | orange | food fruit cut
die Kirsche, Kirschen | cherry | food fruit orchard
die Erdbeere, Erdbeeren | strawberry | food fruit orchard
die Nuss, Nüsse | nut | food
die Kartoffel, Kartoffeln | potato, potatoes | food meal cut feed
die Tomate, Tomaten | tomato, tomatoes | food cut
die Karotte, Karotten | carrot | food cut meal feed
die Zwiebel, Zwiebeln | onion | produce cut
das Ei, Eier | egg | food meal
der Kuchen, Kuchen | cake | food baked sweet cut menu
die Suppe, Suppen | soup | food meal hot menu
der Salat, Salate | salad | food menu
die Pizza, Pizzas | pizza | food baked cut menu
die Wurst, Würste | sausage | food cut raw menu
das Brötchen, Brötchen | roll | food baked menu
der Keks, Kekse | biscuit | food baked sweet
"""

_DRINKS = """
das Wasser, - | water | drink mass
die Milch, - | milk | drink mass
der Kaffee, -, Kaffees | coffee | drink mass hot
der Tee, -, Tees | tea | drink mass hot
das Bier, - | beer | drink mass
der Wein, - | wine | drink mass
der Saft, - | juice | drink mass
"""

_TEXTS = """
das Buch, Bücher | book | text written thing lies gift
die Zeitung, Zeitungen | newspaper | text thing lies
der Brief, Briefe | letter | text written thing lies paper
der Roman, Romane | novel | text written tale thing lies gift
das Gedicht, Gedichte | poem | text written tale
die Geschichte, Geschichten | story | text written tale told
das Märchen, Märchen | fairy tale | text written tale told
der Bericht, Berichte | report | text written paper
der Artikel, Artikel | article | text written paper
die Zeitschrift, Zeitschriften | magazine | text thing lies
die Nachricht, Nachrichten | message | text written
die Postkarte, Postkarten | postcard | text written thing lies gift
die Rechnung, Rechnungen | bill | text paper bill
der Vertrag, Verträge | contract | text paper signed
das Formular, Formulare | form | text paper signed
die Liste, Listen | list | text written paper
das Wörterbuch, Wörterbücher | dictionary | text thing lies gift
das Tagebuch, Tagebücher | diary | text thing lies gift
"""

_THINGS = """
das Auto, Autos | car | vehicle driven ware washable fixable seen
das Fahrrad, Fahrräder | bicycle | vehicle ridden ware washable fixable
das Motorrad, Motorräder | motorbike | vehicle ridden ware fixable
der Lastwagen, Lastwagen | lorry | vehicle driven fixable seen
das Boot, Boote | boat | vehicle ware fixable seen
das Schiff, Schiffe | ship | vehicle seen
das Flugzeug, Flugzeuge | aeroplane | vehicle seen
der Zug, Züge | train | vehicle carriage awaited seen
der Bus, Busse, Busses | bus | vehicle carriage awaited seen
die Straßenbahn, Straßenbahnen | tram | vehicle carriage awaited seen
das Taxi, Taxis | taxi | vehicle awaited seen
der Computer, Computer | computer | device ware fixable stands used
das Radio, Radios | radio | device ware fixable stands switched used
der Fernseher, Fernseher | television | device ware fixable stands switched
die Kamera, Kameras | camera | device ware fixable lies thing used gift
die Lampe, Lampen | lamp | device ware fixable stands switched
der Drucker, Drucker | printer | device ware fixable stands switched used
das Handy, Handys | mobile phone | device ware fixable lies thing used gift
die Uhr, Uhren | clock | device ware fixable hangs
die Waschmaschine, Waschmaschinen | washing machine | device ware fixable switched used
der Kühlschrank, Kühlschränke | fridge | device ware fixable opened cleaned
das Hemd, Hemden | shirt | clothes garment ware washable ironed gift
das Kleid, Kleider | dress | clothes ware washable ironed gift
der Mantel, Mäntel | coat | clothes garment ware
der Hut, Hüte | hat | clothes headgear ware gift
der Schuh, Schuhe | shoe | clothes garment paired ware cleaned
der Rock, Röcke | skirt | clothes ware washable ironed
die Jacke, Jacken | jacket | clothes garment ware washable gift
der Pullover, Pullover | sweater | clothes garment ware washable gift
die Mütze, Mützen | cap | clothes headgear ware washable gift
der Schal, Schals, Schals | scarf, scarves | clothes headgear ware washable gift
der Anzug, Anzüge | suit | clothes garment ware ironed
die Bluse, Blusen | blouse | clothes ware washable ironed gift
die Krawatte, Krawatten | tie | clothes ware gift
der Tisch, Tische | table | furniture ware fixable flat cleaned round
der Stuhl, Stühle | chair | furniture ware fixable flat
das Bett, Betten | bed | furniture ware flat broad
der Schrank, Schränke | cupboard | furniture ware fixable opened
das Sofa, Sofas | sofa | furniture ware flat broad
das Regal, Regale | shelf, shelves | furniture ware fixable flat
der Teppich, Teppiche | carpet | furniture ware cleaned round
der Spiegel, Spiegel | mirror | furniture ware cleaned hangs round
der Schlüssel, Schlüssel | key | thing small lies
die Tasche, Taschen | bag | thing ware container stands gift
der Koffer, Koffer | suitcase | thing ware container stands opened packed
der Rucksack, Rucksäcke | backpack | thing ware container stands opened packed gift
das Glas, Gläser | glass | thing ware container dish stands
die Tasse, Tassen | cup | thing ware container dish stands
der Teller, Teller | plate | thing ware dish stands
die Flasche, Flaschen | bottle | thing container stands opened
das Messer, Messer | knife, knives | thing ware lies used
die Gabel, Gabeln | fork | thing lies
der Löffel, Löffel | spoon | thing lies
der Topf, Töpfe | pot | thing ware container stands used
die Pfanne, Pfannen | pan | thing ware stands used
der Ball, Bälle | ball | thing ware lies gift thrown
die Puppe, Puppen | doll | thing ware lies gift
das Bild, Bilder | picture | thing ware hangs gift painted
das Foto, Fotos | photo | thing hangs gift
das Geschenk, Geschenke | present | thing ware gift opened lies
der Regenschirm, Regenschirme | umbrella | thing ware small stands opened
der Ring, Ringe | ring | thing ware small gift lies
die Kerze, Kerzen | candle | thing ware gift stands
die Schachtel, Schachteln | box | thing container opened stands
der Korb, Körbe | basket | thing ware container stands
der Stift, Stifte | pen | thing ware small lies used gift
das Heft, Hefte | notebook | thing ware lies
die Decke, Decken | blanket | thing ware washable lies gift
das Kissen, Kissen | cushion | thing ware washable lies
das Paket, Pakete | parcel | thing opened stands sent
der Pass, Pässe, Passes | passport | thing small lies
die Fahrkarte, Fahrkarten | ticket | thing small lies
die Münze, Münzen | coin | thing small lies collected
die Briefmarke, Briefmarken | stamp | thing small lies collected
die Vase, Vasen | vase | thing ware container stands gift
die Gitarre, Gitarren | guitar | instrument ware gift
das Klavier, Klaviere | piano | instrument ware
die Geige, Geigen | violin | instrument ware gift
die Trommel, Trommeln | drum | instrument ware
die Blume, Blumen | flower | plant bloom ware gift painted picked
die Rose, Rosen | rose | plant bloom ware gift picked
der Baum, Bäume | tree | plant painted
die Tür, Türen | door | opened cleaned part
das Fenster, Fenster | window | opened cleaned part
das Tor, Tore | gate | opened
"""

_IDEAS = """
die Idee, Ideen | idea | idea proposal
der Plan, Pläne, Plans | plan | idea proposal changed project
die Frage, Fragen | question | idea answered
das Problem, Probleme | problem | idea solved
die Aufgabe, Aufgaben | task | idea solved
das Rätsel, Rätsel | riddle | idea solved
die Antwort, Antworten | answer | idea proposal
der Vorschlag, Vorschläge | suggestion | idea proposal
das Projekt, Projekte | project | idea project
der Fehler, Fehler | mistake | corrected
das Geheimnis, Geheimnisse | secret | told
der Witz, Witze | joke | told
das Lied, Lieder | song | heard
der Film, Filme, Films | film | watched
das Theaterstück, Theaterstücke | play | watched
das Konzert, Konzerte | concert | event watched
die Party, Partys | party | event planned
die Hochzeit, Hochzeiten | wedding | event planned
das Fest, Feste | festival | event planned
die Reise, Reisen | journey | planned exam
der Ausflug, Ausflüge | outing | event planned
die Prüfung, Prüfungen | exam | exam
das Spiel, Spiele | game | won
der Preis, Preise | prize | won
der Wettbewerb, Wettbewerbe | competition | event won
die Besprechung, Besprechungen | meeting | event planned
das Deutsch, -, Deutsch | German | language
das Englisch, -, Englisch | English | language
das Französisch, -, Französisch | French | language
das Spanisch, -, Spanisch | Spanish | language
das Italienisch, -, Italienisch | Italian | language
"""

_PLACES = """
das Haus, Häuser | house | building room owned dwelling | in in | in into
die Wohnung, Wohnungen | flat | room rented owned home dwelling | in in | in into
das Zimmer, Zimmer | room | room cleaned home | in in | in into
die Küche, Küchen | kitchen | room cleaned | in in | in into
das Badezimmer, Badezimmer | bathroom | room cleaned | in in | in into
das Wohnzimmer, Wohnzimmer | living room | room cleaned home | in in | in into
das Klassenzimmer, Klassenzimmer | classroom | room cleaned study | in in | in into
der Keller, Keller | cellar | room | in in | in into
der Garten, Gärten | garden | open owned home | in in | in into
das Büro, Büros | office | room study | in in | in to
die Schule, Schulen | school | building | in at | in to
die Kirche, Kirchen | church, churches | building sight | in in | in to
das Krankenhaus, Krankenhäuser | hospital | building | in in | in to
der Bahnhof, Bahnhöfe | station | building | an at | zu to
der Flughafen, Flughäfen | airport | building | an at | zu to
das Museum, Museen, Museums | museum | building sight | in in | in to
das Kino, Kinos | cinema | building | in at | in to
das Theater, Theater | theatre | building | in at | in to
das Restaurant, Restaurants | restaurant | dining | in in | in to
das Café, Cafés, Cafés | café | dining | in in | in to
das Hotel, Hotels | hotel | building | in in | zu to
der Supermarkt, Supermärkte | supermarket | shop retail | in at | in to
die Bäckerei, Bäckereien | bakery | shop | in in | zu to
die Apotheke, Apotheken | pharmacy | shop | in in | zu to
der Laden, Läden | shop | shop retail | in in | in to
die Bibliothek, Bibliotheken | library | building study | in in | in to
die Universität, Universitäten | university | building study | an at | zu to
die Fabrik, Fabriken | factory | building | in in | zu to
die Werkstatt, Werkstätten | workshop | room | in in | in to
das Rathaus, Rathäuser | town hall | building | in in | zu to
das Schloss, Schlösser | castle | building sight | in in | zu to
der Turm, Türme | tower | built sight urban | auf on | zu to
die Brücke, Brücken | bridge | built broad urban | auf on | zu to
der Park, Parks, Parks | park | open urban field | in in | in to
der Wald, Wälder | forest | open field | in in | in into
die Stadt, Städte | city | town sight dwelling | in in | in to
das Dorf, Dörfer | village | town dwelling | in in | in to
der Platz, Plätze | square | open urban | auf in | zu to
der Markt, Märkte | market | shop retail | auf at | auf to
der Strand, Strände | beach | open field | an on | an to
der See, Seen, Sees | lake | open water urban | an by | an to
der Fluss, Flüsse | river | water broad | an by | zu to
die Insel, Inseln | island | open sight | auf on | auf to
der Balkon, Balkone, Balkons | balcony | open | auf on | auf onto
der Bauernhof, Bauernhöfe | farm | open owned | auf on | auf to
das Schwimmbad, Schwimmbäder | swimming pool | building | in at | in to
"""


def _lines(table: str) -> list[str]:
    return [line for line in table.splitlines() if line]


PLACES: tuple[Place, ...] = tuple(map(place_from_line, _lines(_PLACES)))
NOUNS: tuple[Noun, ...] = (
    *(noun_from_line(f"{line} person") for line in _lines(_PEOPLE)),
    *(
        noun_from_line(line)
        for table in (_ANIMALS, _FOOD, _DRINKS, _TEXTS, _THINGS, _IDEAS)
        for line in _lines(table)
    ),
    *(place.noun for place in PLACES),
)


def nouns_tagged(*tags: str) -> tuple[Noun, ...]:
    """List the nouns of any of these classes, in table order."""
    wanted = frozenset(tags)
    return tuple(noun for noun in NOUNS if noun.tags & wanted)
