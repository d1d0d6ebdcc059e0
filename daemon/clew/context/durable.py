"""What of a conversation holds beyond it: facts about whoever says them, and what they prefer. Pure."""

from __future__ import annotations

import re

from clew.context import phrases
from clew.context.contradictions import slot

LONGEST = 300
"""Characters of a sentence that is worth a note."""

_OWN = frozenset(
    phrases.words(
        """i my me we our mine ich mein meine meinen meiner mir wir unser unsere je j mon ma mes moi nous notre nos yo mi mis me nosotros
        nuestra nuestro soy vivo tengo trabajo prefiero sono abito lavoro preferisco sou moro tenho trabalho prefiro io mio mia miei mie
        noi nostra nostro eu meu minha meus minhas nós nosso nossa ik mijn mij wij onze mam mój moja
        moje mnie jestem mieszkam я мой моя мои моё мне меня мы наш наша"""
    )
)
_CJK_OWN = re.compile("我|咱|私|僕|俺|うち")
_FLEETING = (phrases.HEDGE | phrases.HYPOTHETICAL | phrases.CONDITION | phrases.CONDITIONAL | phrases.TASK | phrases.PROMISE) | (
    phrases.OBJECTION | phrases.WHEN | phrases.DEADLINE | phrases.UNTIL | phrases.ERROR | phrases.OPEN | phrases.IDLE
)
_REDACTED = "[redacted"


def lasting(text: str) -> bool:
    """Whether a sentence, in the words of the person who said it, tells of them what will hold tomorrow too.

    Told by the words alone, and in doubt it is not: a guess, a plan, a question, a thing of one day, or what had a secret in it.
    """
    if len(text) > LONGEST or _REDACTED in text or "?" in text or "？" in text:
        return False
    own = not _OWN.isdisjoint(phrases.words(text)) or bool(phrases.CJK.search(text) and _CJK_OWN.search(text))
    does = phrases.read(text, phrases.within(phrases.languages(text), phrases.ALL))
    telling = does & (phrases.PREFERENCE | phrases.NAMING) or slot(text)
    return own and bool(telling) and not does & _FLEETING
