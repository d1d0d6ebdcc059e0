"""The one redactor: credentials are replaced before a text goes into a summary, a note, the search index or a log."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from urllib.parse import quote, quote_plus

MIN_KNOWN = 4
"""Known secrets shorter than this many characters are not searched for: they would tear ordinary words apart."""

_START = r"(?<![A-Za-z0-9_-])"
_DIGIT_AHEAD = r"(?=[A-Za-z_-]{0,64}[0-9])"

# Every quantifier is bounded or followed by nothing that could fail, so that a hostile text costs linear time.
_PRIVATE_KEY = re.compile(
    r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----"
    r"(?:(?:[^-]|-(?!----))*-----END (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----"
    r"|(?:(?:\s|\\n|\\r)*[A-Za-z0-9+/=]{16,})*)"
)
_FORMATS: tuple[tuple[str, str], ...] = (
    ("api key", rf"{_START}sk-ant-[A-Za-z0-9_-]{{16,}}"),
    ("api key", rf"{_START}sk-{_DIGIT_AHEAD}[A-Za-z0-9_-]{{20,}}"),
    ("api key", rf"{_START}(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{{16,}}"),
    ("api key", rf"{_START}(?:AKIA|ASIA)[0-9A-Z]{{16}}(?![A-Za-z0-9])"),
    ("api key", rf"{_START}AIza[A-Za-z0-9_-]{{35}}"),
    ("api key", rf"{_START}(?:gsk_|xai-|hf_|npm_|dop_v1_|shpat_|nvapi-|r8_)[A-Za-z0-9_-]{{24,}}"),
    ("api key", rf"{_START}SG\.[A-Za-z0-9_-]{{16,}}\.[A-Za-z0-9_-]{{16,}}"),
    ("token", rf"{_START}gh[pousr]_[A-Za-z0-9]{{20,}}"),
    ("token", rf"{_START}github_pat_[A-Za-z0-9_]{{20,}}"),
    ("token", rf"{_START}gl(?:pat|dt|rt)-[A-Za-z0-9_-]{{16,}}"),
    ("token", rf"{_START}pypi-[A-Za-z0-9_-]{{40,}}"),
    ("token", rf"{_START}xox[abceoprs]-[A-Za-z0-9-]{{10,}}"),
    ("token", rf"{_START}xapp-[0-9]-[A-Za-z0-9-]{{16,}}"),
    ("token", rf"{_START}syt_[A-Za-z0-9+/=]{{1,64}}_[A-Za-z0-9]{{12,}}_[A-Za-z0-9]{{4,}}"),
    ("token", rf"{_START}ya29\.[A-Za-z0-9_-]{{20,}}"),
    ("token", rf"{_START}eyJ[A-Za-z0-9_-]{{8,}}\.[A-Za-z0-9_-]{{8,}}\.[A-Za-z0-9_-]*"),
    ("token", r"(?<![0-9])[0-9]{8,10}:[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])"),
    ("token", rf"{_START}[MNO][A-Za-z0-9_-]{{23,25}}\.[A-Za-z0-9_-]{{6}}\.[A-Za-z0-9_-]{{27,}}"),
    ("webhook", r"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9/_-]{8,}"),
    ("webhook", r"discord(?:app)?\.com/api/webhooks/[0-9]{5,25}/[A-Za-z0-9_-]{20,}"),
    ("private key", rf"{_START}AGE-SECRET-KEY-1[0-9A-Z]{{50,}}"),
)
_FORMAT = re.compile("|".join(f"({pattern})" for _, pattern in _FORMATS))

_URL = re.compile(r"(?P<head>[A-Za-z][A-Za-z0-9+.-]{0,20}://[^\s/@:?#]{0,100}:)(?P<value>(?!\[redacted)[^\s/@]{1,256})(?=@)")
_HEADER = re.compile(
    r"(?P<head>(?<![A-Za-z0-9])(?:(?:proxy-)?authorization|(?:set-)?cookie|x-api-key|x-auth-token)"
    r"[\"']?[^\S\n]{0,4}[:=][^\S\n]{0,4}[\"']?(?:(?:bearer|basic|token|digest|bot)[^\S\n]{1,4})?)"
    r"(?P<value>(?!\[redacted|[\"']|(?:bearer|basic|token|digest|bot)\b)[^\s\"',]{6,})",
    re.IGNORECASE,
)
_BEARER = re.compile(
    r"(?P<head>(?<![A-Za-z0-9])(?:bearer|basic)[^\S\n]{1,4})(?P<value>(?=[A-Za-z+/_.~-]{0,64}[0-9=])[A-Za-z0-9+/_.~=-]{16,})", re.IGNORECASE
)

_PASSWORD_WORDS = (
    "password|passwort|kennwort|passphrase|passwd|pwd|mot de passe|mdp|contraseña|contrasena|clave|senha|parola"
    "|wachtwoord|hasło|haslo|heslo|lösenord|losenord|adgangskode|salasana|пароль|пароля|şifre|sifre|密码|密碼|口令|パスワード|비밀번호"
)
_SECRET_WORDS = (
    "api[_ -]?key|apikey|api[_ -]?schlüssel|secret(?:[_ -]?(?:access[_ -]?)?key)?|client[_ -]?secret|access[_ -]?key|private[_ -]?key"
    "|(?:access|auth|refresh|bot|bearer|id|session)?[_ -]?token|key|geheimnis|schlüssel|zugangsschlüssel|zugangscode|credentials?"
    "|clé|jeton|llave|secreto|chave|segredo|chiave|segreto|sleutel|geheim|klucz|sekret|ключ|токен|секрет|密钥|密鑰|令牌|キー|トークン|토큰"
)
_ASSIGN = (
    r"[\"'`]?[^\S\n]{0,4}(?P<sign>:=|=>|[:=：＝]|\b(?:is|was|ist|war|lautet|est|es|é|è|is:|ist:|lautet:)(?![^\W_]))[^\S\n]{0,4}[\"'`]?"
)
_VALUE = r"(?P<value>(?!\[redacted)[^\s\"'`<>,;&，。；]{4,})"
_AFTER_PASSWORD = re.compile(rf"(?P<head>(?:{_PASSWORD_WORDS}|(?-i:\bPIN))[^\S\n]{{0,4}}{_ASSIGN}){_VALUE}", re.IGNORECASE)
_AFTER_SECRET = re.compile(rf"(?P<head>(?:{_SECRET_WORDS})[^\S\n]{{0,4}}{_ASSIGN}){_VALUE}", re.IGNORECASE)
_PLACEHOLDER = re.compile(
    r"[$%{(*.…xX•_-]|(?:none|null|true|false|undefined|os\.|env|process\.|config\.|self\.|string|str|int)\b", re.IGNORECASE
)


def redact(text: str, known: Collection[str] = ()) -> str:
    """`text` with every credential in it replaced by `[redacted]` or `[redacted: kind]`.

    `known` are secrets of this installation; they are replaced wherever they stand, also when URL-encoded. Ordinary ids, hashes,
    UUIDs, versions and numbers are left alone. Never fails; the time is linear in the length of the text.
    """
    text = _without_known(text, known)
    if "PRIVATE KEY" in text:
        text = _PRIVATE_KEY.sub("[redacted: private key]", text)
    text = _FORMAT.sub(_named, text)
    if "://" in text:
        text = _URL.sub(_valued("password", _any), text)
    text = _HEADER.sub(_valued("credentials", _any), text)
    text = _BEARER.sub(_valued("credentials", _any), text)
    text = _AFTER_PASSWORD.sub(_valued("password", _like_password), text)
    return _AFTER_SECRET.sub(_valued("secret", _like_secret), text)


def _without_known(text: str, known: Iterable[str]) -> str:
    forms = {form for secret in known if len(secret) >= MIN_KNOWN for form in _spellings(secret)}
    for form in sorted(forms, key=lambda form: (-len(form), form)):
        text = text.replace(form, "[redacted]")
    return text


def _spellings(secret: str) -> Iterable[str]:
    raw = secret.encode("utf-8", "surrogatepass")
    return secret, quote(raw, safe=""), quote(raw), quote_plus(raw)


def _named(match: re.Match[str]) -> str:
    return f"[redacted: {_FORMATS[(match.lastindex or 1) - 1][0]}]"


def _valued(kind: str, judge: Callable[[str, str], bool]) -> Callable[[re.Match[str]], str]:
    def replacement(match: re.Match[str]) -> str:
        sign = match.groupdict().get("sign") or "="
        value = match["value"]
        return f"{match['head']}[redacted: {kind}]" if judge(value, sign) else match[0]

    return replacement


def _any(value: str, sign: str) -> bool:
    return True


def _like_password(value: str, sign: str) -> bool:
    if _PLACEHOLDER.match(value):
        return False
    core = value.rstrip(".!?)")
    if sign == "=":
        return len(core) >= 4
    return len(core) >= 4 and _classes(core) >= 2 or (core.isdigit() and 4 <= len(core) <= 12)


def _like_secret(value: str, sign: str) -> bool:
    if _PLACEHOLDER.match(value):
        return False
    core = value.rstrip(".!?)")
    return len(core) >= 12 and any(c.isdigit() for c in core) and any(c.isalpha() for c in core) and "://" not in core


def _classes(value: str) -> int:
    inner_upper = any(c.isupper() for c in value[1:])
    symbol = any(not c.isalnum() for c in value[:-1])
    return any(c.islower() for c in value) + inner_upper + any(c.isdigit() for c in value) + symbol
