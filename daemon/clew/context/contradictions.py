"""Which of two observations of the same thing takes the other's place. Pure.

Told by the words alone: a thing has one home, one phone number, one status at a time; what is denied is not so any more. Where the
words do not tell, both stand, each with its date.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from clew.context import languages, phrases
from clew.context.naming import text_key
from clew.context.survival import content

LONGEST_KEY = 6
"""Words of what is said to have a value."""

_VALUE = re.compile(r"(?P<key>[^:：=＝]{2,60}?)\s?[:：=＝](?!//)\s?(?P<value>\S.*)")
_COPULA = re.compile(
    r"(?P<key>.{2,60}?)\s(?:is|are|ist|sind|lautet|est|sont|es|son|è|sono|é|são|jest|są|это|—|heet)\s(?P<value>\S.*)", re.IGNORECASE
)
_CJK_COPULA = re.compile(r"(?P<key>[^，。,]{1,20}?)(?:是|为|為|は)(?P<value>[^，。,]+)")


def _table(text: str) -> frozenset[str]:
    return frozenset(phrases.words(text))


_LISTS = _table(
    "note notes todo idea ideas reminder fact info tip warning url link see example remember notiz hinweis aufgabe nota tarea http https"
)
"""What stands in front of a colon without having one value."""
_POSSESSIVES = _table(
    "my his her their our its the a an your mein meine sein seine ihr ihre unser unsere der die das mon ma mes son sa ses leur le la les"
    " mi mis su sus el los las tu il lo i gli suo sua mio mia o os as meu minha seu mijn zijn haar de het mój moja jego jej мой моя мое"
    " его ее current new neue neuer neues nouveau nouvelle nuevo nueva nuovo nuova"
)
HEADS = _table(
    """name nickname age birthday birthdate address home phone number mobile email mail job employer profession status state version port
    host hostname ip timezone zone language color colour size height weight price cost rent budget deadline salary password favourite
    favorite username handle iban capital owner boss manager wife husband partner diet plan model branch
    alter geburtstag adresse telefon telefonnummer nummer beruf arbeitgeber zeitzone sprache farbe lieblingsfarbe größe gewicht preis
    miete frist gehalt chef chefin frau mann stand
    nom âge anniversaire téléphone numéro métier employeur fuseau langue couleur taille poids prix loyer statut
    nombre edad cumpleaños dirección teléfono número trabajo empleador idioma color talla peso precio alquiler estado
    nome età compleanno indirizzo telefono numero lavoro lingua colore taglia prezzo affitto stato
    idade aniversário endereço telefone emprego cor tamanho preço aluguel
    naam leeftijd verjaardag adres baan taal kleur maat prijs huur imię wiek urodziny numer praca język kolor rozmiar cena czynsz
    имя возраст адрес телефон номер работа язык цвет размер цена статус"""
)
"""Folded nouns that name what has one value at a time."""
_CJK_HEADS = re.compile(
    "(?:名字|年龄|年齢|生日|誕生日|地址|住所|电话|電話|邮箱|职业|職業|颜色|色|版本|状态|状態|价格|値段|时区|语言|言語|番号|号码)\\Z"
)
_SUBJECTS = _table(
    """i he she they we user the has have had is are be been was currently now just recently finally ve s m ich er sie wir jetzt nun
    ist bin hat habe je il elle on nous maintenant est suis a ai j yo él ella ahora ha se está estoy io lui lei ora si è
    sono ho eu ele ela agora ik hij zij ze nu heeft ja ona teraz я он она сейчас теперь sich"""
)
"""What may stand in front of a phrase that speaks of the thing itself."""
_FAMILIES: Mapping[str, str] = {
    "home": """live in, lives in, live at, lives at, living in, living at, reside in, resides in, residing in, based in, moved to,
        moved into, moves to, relocated to, wohne in, wohnt in, lebe in, lebt in, zog nach, zieht nach, gezogen nach, umgezogen nach,
        habite a, habite au, habite en, vis a, vit a, demenage a, demenagee a, vivo en, vive en, mudo a, mudado a, abito a,
        abita a, vivo a, vive a,
        trasferito a, trasferita a, moro em, mora em, vive em, mudou para, mudou se para, woon in, woont in, verhuisd naar, mieszkam w,
        mieszka w, przeprowadzil sie do, przeprowadzila sie do, живу в, живет в, переехал в, переехала в, location, located in, hometown,
        lives_in""",
    "work": """work at, works at, work for, works for, working at, working for, employed at, employed by, arbeite bei, arbeitet bei,
        arbeite fuer, arbeitet fuer, travaille chez, travaille a, travaille pour, trabajo en, trabaja en, trabajo para, trabaja para,
        lavoro da, lavora da, lavora per, lavoro per, lavora presso, trabalho na, trabalha na, trabalho no, trabalha no, trabalha em,
        werk bij, werkt bij, pracuje w, работаю в, работает в, employer, employed_by, works_at""",
    "partner": """married to, engaged to, verheiratet mit, marie avec, mariee avec, casado con, casada con, sposato con, sposata con,
        casado com, casada com, getrouwd met""",
    "name": "called, is called, is named, goes by, heisst, heisse, s appelle, se llama, si chiama, se chama, heet, nazywa sie, зовут",
}
_MOVED = frozenset(("umgezogen", "gezogen", "uebersiedelt", "verhuisd"))
"""What stands at the end of the sentence, as in `ist nach Oslo umgezogen`."""
_STARTS = tuple((slot, phrases.words(phrase)) for slot, listed in _FAMILIES.items() for phrase in listed.split(","))
_CJK_FAMILIES = (
    ("home", re.compile("住在|搬到|搬去|搬家到|居住在|に住んで|に引っ越し|へ引っ越し")),
    ("work", re.compile("就职于|就職於|任职于|在.{1,20}(?:工作|上班)|で働い|に勤め")),
)
_MORE = _table(
    "also too additionally another second auch außerdem zweite aussi également deuxième también además segundo anche inoltre também ook"
    " też również także тоже также"
)
"""Words that say that something is so beside what was so before."""
_CJK_MORE = re.compile("也|还|還|另外|も")
_FORMERLY = re.compile(
    r"\b(?:used to|formerly|previously|once lived|until \d{4}|frueher|ehemals|autrefois|anteriormente|antes|prima|vroeger|kiedys|раньше)\b"
    "|以前|曾经|かつて"
)


def slot(text: str, name: str = "") -> str:
    """What a sentence says of the thing called `name` that has one value at a time; empty where it says no such thing, or adds to it."""
    folded = phrases.fold(text)
    told = phrases.words(text)
    if _FORMERLY.search(folded) or not _MORE.isdisjoint(told) or (phrases.CJK.search(text) and _CJK_MORE.search(text)):
        return ""
    return _family(text, told, frozenset(phrases.words(name))) or _attribute(text, frozenset(phrases.words(name)))


def _family(text: str, told: tuple[str, ...], name: frozenset[str]) -> str:
    start = 0
    while start < len(told) and (told[start] in _SUBJECTS or told[start] in name):
        start += 1
    if start < len(told) and told[start] in ("nach", "naar") and told[-1] in _MOVED:
        return "home"
    # The subject may have eaten a word of the phrase, as in `is called`.
    for first in range(start, -1, -1):
        for family, phrase in _STARTS:
            if told[first : first + len(phrase)] == phrase:
                return family
    if phrases.CJK.search(text):
        return next((family for family, pattern in _CJK_FAMILIES if pattern.search(text)), "")
    return ""


def _attribute(text: str, name: frozenset[str]) -> str:
    """The key of `key: value` or, for keys that have one value at a time, of `key is value`."""
    if found := _VALUE.fullmatch(text):
        words = phrases.words(found["key"])
        if 0 < len(words) <= LONGEST_KEY and not _LISTS & set(words):
            return _key(words, name)
    if (found := _COPULA.fullmatch(text)) and not phrases.NEGATION & phrases.read(text, phrases.ALL):
        words = phrases.words(found["key"])
        if 0 < len(words) <= LONGEST_KEY and words[-1] in HEADS:
            return _key(words, name)
    if phrases.CJK.search(text) and (found := _CJK_COPULA.fullmatch(text)) and _CJK_HEADS.search(found["key"]):
        return f"={text_key(found['key'])}"
    return ""


def _key(words: tuple[str, ...], name: frozenset[str]) -> str:
    kept = [word for word in words if word not in _POSSESSIVES and word not in name and word != "s"]
    return f"={' '.join(kept)}" if kept else ""


def contradicted(text: str, name: str, standing: Iterable[tuple[int, str, str]]) -> list[int]:
    """Of the observations that stand, (number, text, slot) each, the numbers of those that `text` takes the place of.

    They fill the same slot with something else, or one denies what the other says.
    """
    own, key = slot(text, name), text_key(text)
    stems, denies = _matter(text)
    found = []
    for number, other, taken in standing:
        if text_key(other) == key:
            continue
        matter, denied = _matter(other)
        if (own and own == taken) or (denies != denied and _same_matter(stems, matter, denies)):
            found.append(number)
    return found


@lru_cache(maxsize=4096)
def _matter(text: str) -> tuple[frozenset[str], bool]:
    """(the stems of the words that carry a sentence, whether it denies)."""
    does = phrases.read(text, languages.within(languages.counts(text), phrases.ALL))
    return content(text), bool(does & phrases.NEGATION)


def _same_matter(new: frozenset[str], old: frozenset[str], denies: bool) -> bool:
    """Whether two sentences, of which one denies, speak of the same: the denial may have a word more (`no longer works there`)."""
    longer, shorter = (new, old) if denies else (old, new)
    return bool(shorter) and shorter <= longer and len(longer) - len(shorter) <= 1
