"""What of a conversation holds beyond it: facts about whoever says them, and what they prefer. Pure."""

from __future__ import annotations

import re

from clew.context import languages, phrases
from clew.context.contradictions import HEADS, slot

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
_KIN = frozenset(
    phrases.words(
        """wife husband partner daughter son mother mom mum father dad sister brother child children dog cat frau mann partner partnerin
        tochter sohn mutter vater schwester bruder kind kinder hund katze femme mari fille fils mère père sœur soeur frère enfant chien
        chat esposa mujer marido hija hijo madre padre hermana hermano perro gato moglie marito figlia figlio sorella fratello cane gatto
        filha filho mãe pai irmã irmão cachorro vrouw man dochter zoon moeder vader zus broer hond kat żona mąż córka syn mama matka
        tata ojciec siostra brat pies kot жена муж дочь сын мать мама отец папа сестра брат собака кошка кот"""
    )
)
_CJK_KIN = re.compile("妻|丈夫|老公|老婆|女儿|儿子|妈|爸|姐|妹|哥|弟|狗|猫|夫|娘|息子|母|父|姉|兄|犬")
_CJK_OWN = re.compile("我|咱|私|僕|俺|うち")
_FLEETING = (phrases.HEDGE | phrases.HYPOTHETICAL | phrases.CONDITION | phrases.CONDITIONAL | phrases.TASK | phrases.PROMISE) | (
    phrases.OBJECTION | phrases.WHEN | phrases.DEADLINE | phrases.UNTIL | phrases.ERROR | phrases.OPEN | phrases.IDLE
)
_UNSURE = phrases.HEDGE | phrases.HYPOTHETICAL | phrases.CONDITION | phrases.CONDITIONAL
_REDACTED = "[redacted"
_NUMBERS = re.compile(r"[\s\[(]*(?:#?\d{1,4}[\s,;.\])]*){1,200}")
_NUMBER = re.compile(r"\d+")


def lasting(text: str) -> bool:
    """Whether a sentence, in the words of the person who said it, tells of them what will hold tomorrow too.

    Told by the words alone, and in doubt it is not: a guess, a plan, a question, a thing of one day, or what had a secret in it.
    """
    if len(text) > LONGEST or _REDACTED in text or "?" in text or "？" in text:
        return False
    own = _own(text)
    does = phrases.read(text, languages.within(languages.counts(text), phrases.ALL))
    if not own or does & _FLEETING:
        return False
    return bool(does & phrases.PREFERENCE) or _of_one_value(slot(text)) or bool(does & phrases.NAMING and _near(text))


def worth_asking(text: str) -> bool:
    """Whether a sentence tells of whoever says it and is no question, guess or secret: a model may be asked whether it will last."""
    if not text or len(text) > LONGEST or _REDACTED in text or "?" in text or "？" in text:
        return False
    return _own(text) and not phrases.read(text, languages.within(languages.counts(text), phrases.ALL)) & _UNSURE


def chosen(answer: str, count: int) -> tuple[int, ...]:
    """The numbers, from 1 to `count`, that a model's answer names, in order. An answer that says anything else names none."""
    if not _NUMBERS.fullmatch(answer):
        return ()
    return tuple(sorted({number for number in map(int, _NUMBER.findall(answer)) if 1 <= number <= count}))


def _own(text: str) -> bool:
    return not _OWN.isdisjoint(phrases.words(text)) or bool(phrases.CJK.search(text) and _CJK_OWN.search(text))


def _of_one_value(slot: str) -> bool:
    """Whether it is a home, an employer and the like, or the value of something that people have one of."""
    return bool(slot) and (slot[0] != "=" or slot.split()[-1].removeprefix("=") in HEADS)


def _near(text: str) -> bool:
    """Whether somebody near is spoken of."""
    return not _KIN.isdisjoint(phrases.words(text)) or bool(_CJK_KIN.search(text))
