"""Words that say nothing about what a message is about, by language."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import lru_cache

from clew.context.text import normalise

_ENGLISH = """
a about above after again against all almost already also although always am an and another any anybody anyone
anything are aren as ask at away back be became because become been before being below between both but by came can
cannot come could couldn did didn do does doesn doing don done down during each either else enough even ever every
everybody everyone everything few find first for from further gave get gets getting give given go goes going gone
gonna got had hadn happen happened has hasn have haven having he her here hers herself him himself his how however i
if in into is isn it its itself just keep kind know last least less let like ll lot made make makes many may maybe me
mean mention mentioned might mine more most much must my myself need neither never next no nobody none nor not nothing
now of off often on once one only onto or other others our ours ourselves out over own per perhaps please put quite
rather re really recall remember remind said same saw say says see seem seen several shall she should shouldn show
since so some somebody someone something sometimes soon still such take talk talked talking tell than that the their
theirs them themselves then there these they thing things think this those though through thus to told too took toward
two under until up upon us use used using ve very via want wanted wants was wasn way we well went were weren what
whatever when where whether which while who whole whom whose why will with within without won would wouldn yes yet you
your yours yourself
"""
_GERMAN = """
hieß heißt heißen ab aber alle allem allen aller alles als also am an andere anderen anderer anderes auch auf aus bei beim bereits bin
bis bist bitte da dabei dafür daher damit danach dann daran darauf daraus darin darum das dass davon dazu dein deine
deinem deinen deiner dem den denn denen der deren des deshalb dessen dich die dies diese diesem diesen dieser dieses
dir doch dort du durch ebenfalls eben ein eine einem einen einer eines einfach einige einmal er erst es etwa etwas
euch euer eure für gab ganz gar geben gegen geht genau gerade gerne gibt ging habe haben habt hast hat hatte hatten
hattest hier hin ich ihm ihn ihnen ihr ihre ihrem ihren ihrer im immer in indem ins ist ja jede jedem jeden jeder
jedes jetzt kann kannst kein keine keinem keinen keiner können könnte könntest machen macht mal man manche mehr mein
meine meinem meinen meiner mich mir mit möchte möchtest müssen muss musst nach nachdem nein nicht nichts noch nochmal
nun nur ob oder ohne sag sagen sagte sagtest schon sehr sei sein seine seinem seinen seiner seit sich sie sind so soll
sollen sollte solche sondern sonst über um und uns unser unsere unter viel viele vom von vor wann war waren warst
warum was weil weiter welche welchem welchen welcher welches wem wen wenn wer werde werden weiß weißt wie wieder wieso
will willst wir wird wirst wo wobei wofür woher wohin womit worden wurde wurden würde würden zu zum zur zwar zwischen
erzähl erinnerst
"""
_FRENCH = """
ai as au aux avec avez avons ce cela ces cet cette comme dans de des du elle elles en es est et étais était eu fait
faire il ils je la le les leur lui ma mais me même mes moi mon ne nos notre nous on ont ou où par pas plus pour
pourquoi quand que quel quelle qui quoi sa sans se ses si son sont sur ta te tes toi ton tu un une va vos votre vous y
être avait avoir peux peut
"""
_SPANISH = """
al algo como con cuando cuál de del desde donde dónde el ella ellas ellos en entre era eres es esa ese eso esta está
este esto estoy fue ha hay he la las le les lo los más me mi mis muy no nos o para pero por porque puede puedes que
qué quién se ser si sí sin sobre son su sus te tengo tiene tu tus un una uno y ya yo
"""
_ITALIAN = """
ai al alla anche che chi ci come con cosa da dal dalla dei del della di dove e è era gli ha hai ho i il in io la le
lei lo lui ma mi mio mia nel nella no noi non o per perché più quando quale quello questa questo se sei si sono su sua
suo ti tu tuo tua un una uno
"""
_PORTUGUESE = """
à ao aos as às com como da das de dela dele do dos e é ela ele em era essa esse esta está este eu foi há isso já la
lhe mais mas me meu minha na nas no nos não nós o onde os ou para pela pelo por porque qual quando que quem se sem ser
seu sua são também te tem tu um uma você
"""
_DUTCH = """
aan al als bij ben bent dat de der deze die dit doen door dus een en er had heb hebben heeft het hier hij hoe ik in is
ja je jij kan kun kunt maar me meer met mij mijn moet naar nee niet niets nog nu of om omdat onder ons ook op over te
tot u uit van veel voor waar waarom was wat we wel wie wij wil worden wordt ze zei zich zij zijn zo zou
"""
_RUSSIAN = """
а бы был была были было быть в вам вас во вот все всё вы где да для до его ее её если есть еще ещё же за и из или им
их к как когда кто ли мне мой моя мы на не нет ни но о об он она они от по почему при с со так там то тоже только ты у
уже что чтобы это этот эта я
"""

_COURTESY = """
hi hey hello hallo hullo moin servus bye goodbye cheers thanks thank thx ty danke dankeschön bitteschön merci gracias
grazie obrigado obrigada bedankt spasibo спасибо ok okay okey oki kk yep yeah yup nope nah hmm hm uh um ah oh wow lol
haha hahaha hehe cool nice great perfect awesome super prima klasse toll gern good gut fine sure alright right morning
evening night afternoon morgen abend nacht guten gute bonjour salut hola buenos buenas días noches ciao olá привет
welcome sorry entschuldigung pardon tschüss servas bis später later soon luck glück day tag weekend wochenende
appreciate helpful hilfreich today heute verstanden understood alles klar genau stimmt problem mind question frage
moment help hilfe sounds bored
"""

LANGUAGES: tuple[frozenset[str], ...] = tuple(
    frozenset(normalise(text).split()) for text in (_ENGLISH, _GERMAN, _FRENCH, _SPANISH, _ITALIAN, _PORTUGUESE, _DUTCH, _RUSSIAN)
)

COURTESY: frozenset[str] = frozenset(normalise(_COURTESY).split())
"""Greetings, thanks and agreement in several languages: a message made of these and stop words asks for nothing."""


_LANGUAGES_OF: Mapping[str, tuple[int, ...]] = {
    word: tuple(number for number, language in enumerate(LANGUAGES) if word in language) for word in frozenset().union(*LANGUAGES)
}


def stop_words(words: list[str]) -> frozenset[str]:
    """The stop words that fit a message of these normalised words: those of the language, or languages, that it has most of."""
    counts = Counter(number for word in words for number in _LANGUAGES_OF.get(word, ()))
    most = max(counts.values(), default=0)
    return _together(tuple(language for number, language in enumerate(LANGUAGES) if counts.get(number, 0) == most))


@lru_cache(maxsize=1 << len(LANGUAGES))
def _together(languages: tuple[frozenset[str], ...]) -> frozenset[str]:
    return frozenset().union(*languages)
