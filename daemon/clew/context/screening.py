"""What may not be noted: credentials, and orders to the model that pose as facts. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection

from clew.context.phrases import fold
from clew.context.redact import redact
from clew.context.text import clean, normalise

HIDDEN = re.compile("[\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff\U000e0000-\U000e007f]")
"""Characters that are not seen and turn, part or hide words."""
CREDENTIAL = "it holds a credential; those belong into no note"
ORDER = "it reads like an order to the model; say what is so, not what to do"

# All of it is matched against folded text: no capitals, no accents, ä as ae. Gaps are bounded, so that the time stays linear.
_OVERRIDES = (
    r"\b(?:ignore|disregard|forget|override|bypass)\b.{0,40}\b(?:instruction|prompt|rule|guideline|polic|restriction|order|told)",
    r"\b(?:ignorier\w*|vergiss|vergesst|missachte\w*)\b.{0,40}\b(?:anweisung|regel|vorgabe|instruktion|prompt|befehl)",
    r"\b(?:ignore[zs]?|ignorer|oublie[zs]?|oublier)\b.{0,40}\b(?:instruction|consigne|regle)",
    r"\b(?:ignor[ae]|olvid[ae]|descart[ae])\b.{0,40}\b(?:instruccion|regla|indicacion|orden)",
    r"\b(?:ignora|ignorate|dimentica|dimenticate)\b.{0,40}\b(?:istruzion|regol|comand)",
    r"\b(?:ignor[ae]|esquec[ae]|esqueca|desconsidere)\b.{0,40}\b(?:instruc|regra|orden|comando)",
    r"\b(?:negeer|vergeet)\b.{0,40}\b(?:instructie|regel|opdracht|aanwijzing)",
    r"\b(?:zignoruj|ignoruj|zapomnij)\b.{0,40}\b(?:instrukcj|zasad|polece)",
    r"\b(?:игнорируи|проигнорируи|забудь|отмени)\w*\b.{0,40}\b(?:инструкц|правил|указани|команд)",
    r"(?:忽略|无视|無視|忘记|忘記|忽视).{0,20}(?:指令|指示|规则|規則|提示)",
    r"(?:指示|命令|ルール|規則|プロンプト).{0,10}(?:無視|忘れ)",
    r"(?:지시|명령|규칙).{0,10}(?:무시|잊)",
    r"\b(?:reveal|print|show|repeat|output|leak|tell)\b.{0,30}\b(?:system|hidden|initial|your)\s.{0,12}(?:prompt|instructions|rules)",
    r"\b(?:new|updated|real)\s(?:instructions?|system prompt|rules|persona)\s?[:：]",
    r"<\|?/?(?:im_start|im_end|system|assistant|endoftext|eot_id|instructions?|tool_call|function_call)",
    r"\[/?(?:inst|system|sys)\]|<</?sys>>|#{2,}\s?(?:system|instructions?|assistant)\b|⟦|⟧",
    r"(?:\A|\n)\s*(?:system|assistant|developer|human)\s?[:：]",
    r"\b(?:jailbreak|developer mode|dan mode|do anything now)\b",
    r"\b(?:curl|wget)\b.{0,120}\|\s?(?:ba|z)?sh\b|\brm\s-rf\b",
)
_ORDERS = (
    r"\byou(?:\sare|'re)\snow\b|\bfrom now on\b.{0,20}\b(?:you|always|never|answer|respond|reply|act|only)\b",
    r"\b(?:act as (?:if|an?|the|my)|pretend (?:to be|that you|you))\b",
    r"\A(?:you|assistant|the assistant|the ai|the model|clew)\b.{0,15}\b(?:must|should|shall|have to|has to|need to|will|are to)\b",
    r"\b(?:when|whenever|if|before|after)\b.{0,80}\b(?:you|the assistant)\s(?:must|should|shall|have to|will|are to|need to)\b",
    r"\A(?:please )?(?:always |never |immediately |first )?(?:call|run|execute|invoke|send|forward|upload|post|transfer|exfiltrate|reply"
    r"|respond|answer|delete|disable|approve|grant)\s",
    r"\b(?:call|use|run|invoke)\b.{0,20}\b(?:memory_|session_|schedule_|fetch_url|document_search)",
    r"\b(?:do not|don't|never)\s(?:tell|inform|mention|reveal|warn|alert)\b.{0,20}\b(?:user|human|owner|operator)\b",
    r"\bdu (?:bist|musst|sollst) (?:jetzt|nun|ab|immer|nie)\b|\bab (?:jetzt|sofort) (?:bist|antworte|musst|sollst)\b",
    r"\b(?:tu es|vous etes) (?:maintenant|desormais)\b|\b(?:ahora|a partir de ahora) (?:eres|debes)\b",
    r"\b(?:ora|adesso|da ora) (?:sei|devi)\b|\b(?:agora|a partir de agora) (?:voce|deves|tu)\b|\bje bent (?:nu|voortaan)\b",
    r"\bjestes teraz\b|\bod teraz\b|\bты теперь\b|\bс этого момента\b",
    r"你现在是|你現在是|从现在(?:开始|起)|從現在|あなたは今から|今からあなた",
)
_SPACE = re.compile(r"\s+")
_OVERRIDE = re.compile("|".join(_OVERRIDES))
_ORDER = re.compile("|".join(_ORDERS))


def tidy(text: str) -> str:
    """`text` as it is noted: one line, without control characters and without those that are not seen."""
    return _SPACE.sub(" ", HIDDEN.sub("", clean(text))).strip()


def refusal(text: str, known: Collection[str] = (), *, by_hand: bool = False) -> str:
    """Why a text may not be noted, in words; empty if it may be.

    known: secrets of this installation. by_hand: somebody sets it for themselves, as a preference is; then only what would undo the
    rules of the prompt counts as an order, for a preference is one.
    """
    if redact(text, known) != text:
        return CREDENTIAL
    plain = fold(normalise(HIDDEN.sub("", clean(text))))
    ordered = _OVERRIDE.search(plain) or (None if by_hand else _ORDER.search(_SPACE.sub(" ", plain).strip()))
    return ORDER if ordered else ""
