"""The adjectives, with irregular degrees and the classes of nouns that they suit."""

from tandem.data.corpus.builtin.nouns import NOUNS
from tandem.data.corpus.builtin.words import Adjective, Noun, adjective_from_line

__all__ = ["ADJECTIVES", "MOODS", "SUITED"]

_TABLE = """
alt, älter, ältest | old | adult animal building sight vehicle ware text town
jung, jünger, jüngst | young | human animal criminal
groß, größer, größt | tall | adult young
groß, größer, größt | big | animal ware vehicle room building town open container
klein, kleiner, kleinst | small | animal ware vehicle room building town open container gift dining shop
freundlich | friendly, friendlier, friendliest | human pet
nett | nice | human
klug, klüger, klügst | clever | human kin pet
reich | rich | adult
arm, ärmer, ärmst | poor | adult criminal
fleißig | hard-working | adult pupil kin
faul | lazy | pupil pet
höflich | polite | human
berühmt | famous | job sight
stark, stärker, stärkst | strong | adult wild
mutig | brave | human
ehrlich | honest | human
streng | strict | teaches parent
schüchtern | shy, shyer, shyest | young
neugierig | curious | human pet
ungeduldig | impatient | adult
lustig | funny, funnier, funniest | human told tale watched
gefährlich | dangerous | wild criminal
wild | wild | wild
treu, treuer, treust | loyal, more loyal, most loyal | pet
neu, neuer, neuest | new | ware vehicle text device clothes building idea dining shop watched heard
schön | beautiful | clothes gift plant town sight open furniture heard instrument
hübsch | pretty, prettier, prettiest | clothes plant dish
teuer/teur, teurer, teuerst | expensive | ware dining planned
billig | cheap | ware
schwer | heavy | furniture sent packed
leicht | light | packed
rot, -, - | red | clothes driven ridden bloom thrown
blau, -, - | blue | clothes driven ridden dish packed
grün, -, - | green | clothes driven ridden dish packed
gelb, -, - | yellow | clothes ridden dish bloom
schwarz, -, - | black | clothes driven pet packed
weiß, -, - | white | clothes driven pet dish
grau, -, - | grey | clothes driven pet packed
braun, -, - | brown | clothes pet packed farm
kaputt, -, - | broken | fixable
schmutzig | dirty, dirtier, dirtiest | washable dish cleaned
sauber | clean | clothes dish
rund, -, - | round | round
modern | modern | building device furniture room
bequem | comfortable | furniture clothes
praktisch, praktischer, praktischst | practical | device used
lang, länger, längst | long | planned written
kurz, kürzer, kürzest | short | planned written
interessant | interesting | written idea watched sight town told
langweilig | boring | written watched exam event
spannend | exciting | tale watched won
wichtig | important | paper idea exam corrected
schwierig | difficult | solved answered exam
einfach | simple | solved answered idea
gut, besser, best | good, better, best | food drink tale proposal watched heard dining
schlecht, schlechter, schlechtest | bad, worse, worst | proposal watched
frisch | fresh | food
lecker | delicious | food
heiß | hot | hot
kalt, kälter, kältest | cold | drink hot
warm, wärmer, wärmst | warm | hot baked
süß | sweet | fruit sweet
reif | ripe | fruit
schnell | fast | vehicle farm
langsam | slow | carriage
hell | bright | room
dunkel/dunkl, dunkler, dunkelst | dark | room
leer, -, - | empty | container carriage
voll, voller, vollst | full | container carriage
ruhig | quiet | open town room dining
laut | noisy, noisier, noisiest | town dining
gemütlich | cosy, cosier, cosiest | room dining
tief | deep | water
breit | wide | broad
traurig | sad, sadder, saddest | tale heard
hungrig | hungry, hungrier, hungriest | animal
"""

_MOODS = """
müde | tired | -
krank, kränker, kränkst | ill, - | -
glücklich | happy, happier, happiest | -
traurig | sad | -
wütend | angry, angrier, angriest | -
nervös | nervous | -
zufrieden | satisfied | -
enttäuscht | disappointed | -
einsam | lonely, lonelier, loneliest | -
stolz | proud | -
überrascht | surprised | -
gesund | healthy, healthier, healthiest | -
"""

ADJECTIVES: tuple[Adjective, ...] = tuple(adjective_from_line(line) for line in _TABLE.strip().splitlines())
MOODS: tuple[Adjective, ...] = tuple(adjective_from_line(line) for line in _MOODS.strip().splitlines())

SUITED: dict[Noun, tuple[Adjective, ...]] = {
    noun: tuple(adjective for adjective in ADJECTIVES if adjective.tags & noun.tags) for noun in NOUNS
}
