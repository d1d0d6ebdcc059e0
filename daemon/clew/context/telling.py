"""Credentials that are known by the word in front of them: `Passwort: …`, `api_key=…`, "the password is …". Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_PASSWORDS = (
    *_words(
        """
        password passwort kennwort passphrase passwd passcode pwd contraseña contrasena senha wachtwoord hasło haslo heslo lösenord losenord
        adgangskode salasana пароль şifre sifre 密码 密碼 口令 パスワード 비밀번호
        """
    ),
    "mot de passe",
    "wifi key",
    "wi-fi key",
    "wpa key",
    "wlan-schlüssel",
    "wlan key",
)
_LOOSE_PASSWORDS = ("mdp", "clave", "parola", "pass")
"""Words that mean other things too."""
_CODES = ("pin", "puk", "tan", "otp", "cvv", "cvc", "2fa code", "verification code", "security code", "bestätigungscode")
_SECRETS = _words(
    """
    token key secret apikey credential credentials schlüssel geheimnis zugangscode clé jeton llave secreto chave segredo chiave segreto
    sleutel klucz sekret ключ токен секрет 密钥 密鑰 令牌 キー トークン 토큰
    """
)
_SECRET_ALONE = ("token", "secret", "apikey", "api key", "api-key", "api_key", "access key", "auth_token", "jeton", "токен")
"""Words behind which a secret may stand without anything in between."""
_OTHER_KEYS = re.compile(
    r"(?:public|primary|foreign|partition|sort|cache|idempotency|deduplication|object|issue|project|routing|hash|dict(?:ionary)?)[\s_.-]?\Z",
    re.IGNORECASE,
)
"""What stands in front of a key that opens nothing."""

_FOR = "for|to|of|für|fürs|zum|zur|von|vom|pour|de|du|para|del|per|di|dla|do|voor|van|для|от|к"
_VERBS = "is|was|are|ist|war|lautet|wäre|est|es|é|è|to|jest|eh|—|–|-|->|→"
_COPULAS = "是|为|為|は|が|는|은|가|이"
_CHARS = r"(?:[^\s\"'`<>,;&，。；\\\[]|\\(?![\"'nrt])|\[(?!redacted))"
_VALUE = (
    r"(?:(?P<quote>\\?[\"'`])(?P<quoted>(?:(?!(?P=quote)|\[redacted)[^\n]){1,256})(?P=quote)"
    rf"|\\?[\"'`]?(?P<bare>{_CHARS}{{4,256}}))"
)
_BEHIND = re.compile(rf"\\?[\"'`]?(?:[^\S\n]{{0,4}}(?P<sign>:=|=>|[:=：＝])[^\S\n]{{0,4}}|>|[^\S\n]{{1,4}}value=){_VALUE}", re.IGNORECASE)
_SAID = re.compile(
    rf"(?:[^\S\n](?:{_FOR})(?:[^\S\n][^\s:=,.;]{{1,30}}){{1,5}}?)?(?:['’]s|[^\S\n]{{0,4}}:|[^\S\n]{{1,4}}(?:{_VERBS}):?)[^\S\n]{{1,4}}{_VALUE}",
    re.IGNORECASE,
)
_CJK = re.compile(
    rf"[^\S\n]{{0,2}}(?:{_COPULAS})[^\S\n]{{0,2}}[:：]?[^\S\n]{{0,2}}[\"'「『“]?(?P<bare>(?:[!-Z\\-~]|\[(?!redacted)){{4,256}})"
)
_NEXT = re.compile(rf"[^\S\n]{{1,4}}\\?[\"'`]?(?P<bare>{_CHARS}{{8,256}})")
_BELOW = re.compile(
    r"[\"'*_]{0,2}(?P<sign>[:：]?)[*_]{0,2}[^\S\n]{0,4}(?:[|>][+-]?)?[^\S\n]{0,4}\r?\n(?:[^\S\n]{0,4}\r?\n)?(?:```\w{0,10}\r?\n)?"
    rf"[ \t>]{{0,12}}[\"'`]{{0,3}}(?P<bare>{_CHARS}{{4,256}})[\"'`]{{0,3}}[^\S\n]{{0,4}}(?=\r?\n|\Z)"
)
_REST = re.compile(rf"{_CHARS}*(?:[,;](?!\w{{1,40}}\s?[=:]){_CHARS}+)*")
_LINE_ENDS = re.compile(r"[\"'`]?[.!]?[^\S\n]{0,4}(?:\Z|\r?\n|[\"'`})\],;])")

_PLACEHOLDER = re.compile(
    r"[$%{(<*.…•_-]|[A-Za-z_][\w.]*\(|(?:[~.]{0,2}/|[A-Za-z]:\\)[\w.~-]|(?:xxx+|none|null|true|false|undefined|os\.|env|process\.|config\."
    r"|settings\.|self\.|string|str|int|bool|bytes|optional|callable|secretstr|any)\b|[a-z][a-z0-9+.-]{1,20}://|0x[0-9a-f]{40}\b",
    re.IGNORECASE,
)
_ORDINARY = frozenset(
    _words(
        """
        required optional wrong incorrect invalid expired changed reset missing needed unknown empty unchanged enabled disabled forgotten
        same text field here below above later sent hidden protected rotation policy manager prompt only first please ask asked yes open
        must should will none falsch vergessen geändert unbekannt nein fehlt leer gleich siehe requis obligatoire oublié inconnu incorrecto
        requerido olvidada obligatoria wymagane błędne неверный забыл нужен keepass 1password bitwarden
        """
    )
)
_HASH = re.compile(r"(?:[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64})\Z|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z", re.IGNORECASE)

_ROUNDS = 3
"""What is taken out may leave a word in front of something that reads otherwise than before."""

_Judge = Callable[[str, str, bool], bool]
"""Told of (the value, how it stands behind the word, whether the line ends there)."""


def _password(value: str, how: str, ends: bool) -> bool:
    core = value.rstrip(".!?)")
    if _PLACEHOLDER.match(value) or len(core) < 4 or core.casefold() in _ORDINARY:
        return False
    if how in ("=", "quoted"):
        return True
    if how == "next":
        return _mixed(core) and _classes(core) >= 2 and len(core) >= 8
    if how == "alone":
        return _classes(core) >= 3
    return _classes(core) >= 2 or (core.isdigit() and len(core) <= 12) or (how == ":" and ends and " " not in core)


def _loose_password(value: str, how: str, ends: bool) -> bool:
    return _password(value, how, False) and how in ("=", ":", "quoted", "said") and (how != "=" or not value.isdigit())


def _code(value: str, how: str, ends: bool) -> bool:
    core = value.rstrip(".!?)")
    return core.isdigit() and 4 <= len(core) <= 12 and how in ("=", ":", "quoted", "said")


def _secret(value: str, how: str, ends: bool) -> bool:
    """Whether letters and digits are mixed as no name like customer_id_2024 mixes them."""
    core = value.rstrip(".!?)")
    if _PLACEHOLDER.match(value) or len(core) < 12 or " " in core or "://" in core:
        return False
    if how == "quoted" and sum(c in "!@#$%^&*=+" for c in core) >= 3:
        return True
    return sum(len(part) for part in re.split(r"[_.:-]", core) if _mixed(part)) >= 8 and how != "next"


def _secret_alone(value: str, how: str, ends: bool) -> bool:
    core = value.rstrip(".!?)")
    if how != "next":
        return _secret(value, how, ends)
    return len(core) >= 16 and _secret(value, "=", ends) and (not _HASH.match(core) or len(core) == 32)


def _mixed(text: str) -> bool:
    return any(map(str.isdigit, text)) and any(map(str.isalpha, text))


def _classes(value: str) -> int:
    inner_upper = any(c.isupper() for c in value[1:])
    symbol = any(not c.isalnum() for c in value[:-1])
    return any(c.islower() for c in value) + inner_upper + any(c.isdigit() for c in value) + symbol


@dataclass(frozen=True, slots=True)
class _Word:
    """A telling word. kind: of what stands behind it, judge: whether that is it. whole: with a letter in front it is another word."""

    kind: str
    judge: _Judge
    whole: bool = False


_WORDS: Mapping[str, _Word] = {
    **dict.fromkeys(_SECRETS, _Word("secret", _secret)),
    **dict.fromkeys(_SECRET_ALONE, _Word("secret", _secret_alone)),
    **dict.fromkeys(_PASSWORDS, _Word("password", _password)),
    **dict.fromkeys(_LOOSE_PASSWORDS, _Word("password", _loose_password, whole=True)),
    **dict.fromkeys(_CODES, _Word("code", _code, whole=True)),
}


def without_told(text: str) -> str:
    """`text` with `[redacted: kind]` in the place of every credential that a word in front of it tells."""
    for _ in range(_ROUNDS):
        before, text = text, _once(text)
        if text == before:
            break
    return text


def _once(text: str) -> str:
    pieces: list[str] = []
    done = 0
    for start, end, word in _places(text):
        if start < done or _is_other(text, start, word):
            continue
        found = _found(text, end, word)
        if found is not None:
            pieces += (text[done : found[0]], f"[redacted: {word.kind}]")
            done = found[1]
    return "".join([*pieces, text[done:]]) if pieces else text


def _places(text: str) -> list[tuple[int, int, _Word]]:
    """(start, end, word) of every telling word, in order; of two that begin at one place the longer."""
    low = text.lower()
    if len(low) != len(text):  # a few letters become two
        low = "".join(each if len(small := each.lower()) != 1 else small for each in text)
    found: dict[int, tuple[int, int, _Word]] = {}
    for name in filter(low.__contains__, _WORDS):
        at = low.find(name)
        while at >= 0:
            end = at + len(name)
            if at not in found or found[at][1] < end:
                found[at] = (at, end, _WORDS[name])
            at = low.find(name, end)
    return [found[at] for at in sorted(found)]


def _is_other(text: str, start: int, word: _Word) -> bool:
    """Whether the telling word is only the end of another one, as in monkey; dbPassword and DB_KEY are two words each."""
    if start == 0:
        return False
    before, first = text[start - 1], text[start]
    if word.whole and before.isalpha():
        return not (before.islower() and first.isupper())
    if first.islower() and "a" <= before.lower() <= "z":
        return True
    return word.kind == "secret" and _OTHER_KEYS.search(text, max(0, start - 16), start) is not None


def _found(text: str, end: int, word: _Word) -> tuple[int, int] | None:
    """Where the credential behind a word stands that ends at `end`."""
    for how, match in _readings(text, end):
        name = "quoted" if match.groupdict().get("quoted") is not None else "bare"
        start, stop = match.span(name)
        ends = _LINE_ENDS.match(text, match.end()) is not None
        if word.judge(match[name], "quoted" if name == "quoted" and how in ("=", ":") else how, ends):
            if name == "bare" and how != "copula" and (rest := _REST.match(text, stop)):
                stop = rest.end()
            return start, stop
    return None


def _readings(text: str, end: int) -> Iterator[tuple[str, re.Match[str]]]:
    if match := _BEHIND.match(text, end):
        yield (":" if match["sign"] in (":", "：") else "="), match
    if match := _SAID.match(text, end):
        yield "said", match
    if match := _CJK.match(text, end):
        yield "copula", match
    if match := _BELOW.match(text, end):
        yield ("below" if match["sign"] else "alone"), match
    if match := _NEXT.match(text, end):
        yield "next", match
