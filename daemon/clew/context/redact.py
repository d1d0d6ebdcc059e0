"""The one redactor: credentials are replaced before a text goes into a summary, a note, the search index or a log."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from urllib.parse import quote, quote_plus

MIN_KNOWN = 4
"""Known secrets shorter than this many characters are not searched for: they would tear ordinary words apart."""

_START = r"(?<![A-Za-z0-9_-])"
_DIGIT_AHEAD = r"(?=[A-Za-z_-]{0,64}[0-9])"

# Every quantifier is bounded or followed by nothing that could fail, so that a hostile text costs linear time. The patterns are tried
# only where one of their hints stands in the text, which most texts lack.
_PRIVATE_KEY = re.compile(
    r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----"
    r"(?:(?:[^-]|-(?!----))*-----END (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----"
    r"|(?:(?:\s|\\n|\\r)*[A-Za-z0-9+/=]{16,})*)"
)
_FORMATS: tuple[tuple[str, str, str], ...] = (  # kind, hint, pattern
    ("api key", "sk-", rf"{_START}sk-(?:ant-|{_DIGIT_AHEAD})[A-Za-z0-9_-]{{20,}}"),
    ("api key", "_live_", rf"{_START}(?:sk|rk|pk)_live_[A-Za-z0-9]{{16,}}"),
    ("api key", "_test_", rf"{_START}(?:sk|rk|pk)_test_[A-Za-z0-9]{{16,}}"),
    ("api key", "AKIA", rf"{_START}AKIA[0-9A-Z]{{16}}(?![A-Za-z0-9])"),
    ("api key", "ASIA", rf"{_START}ASIA[0-9A-Z]{{16}}(?![A-Za-z0-9])"),
    ("api key", "AIza", rf"{_START}AIza[A-Za-z0-9_-]{{35}}"),
    ("api key", "gsk_", rf"{_START}gsk_[A-Za-z0-9]{{24,}}"),
    ("api key", "xai-", rf"{_START}xai-[A-Za-z0-9]{{24,}}"),
    ("api key", "nvapi-", rf"{_START}nvapi-[A-Za-z0-9_-]{{24,}}"),
    ("api key", "SG.", rf"{_START}SG\.[A-Za-z0-9_-]{{16,}}\.[A-Za-z0-9_-]{{16,}}"),
    ("token", "hf_", rf"{_START}hf_[A-Za-z0-9]{{24,}}"),
    ("token", "npm_", rf"{_START}npm_[A-Za-z0-9]{{24,}}"),
    ("token", "dop_v1_", rf"{_START}dop_v1_[a-f0-9]{{24,}}"),
    ("token", "shpat_", rf"{_START}shpat_[A-Za-z0-9]{{24,}}"),
    ("token", "gh", rf"{_START}gh[pousr]_[A-Za-z0-9]{{20,}}"),
    ("token", "github_pat_", rf"{_START}github_pat_[A-Za-z0-9_]{{20,}}"),
    ("token", "gl", rf"{_START}gl(?:pat|dt|rt)-[A-Za-z0-9_-]{{16,}}"),
    ("token", "pypi-", rf"{_START}pypi-[A-Za-z0-9_-]{{40,}}"),
    ("token", "xox", rf"{_START}xox[abceoprs]-[A-Za-z0-9-]{{10,}}"),
    ("token", "xapp-", rf"{_START}xapp-[0-9]-[A-Za-z0-9-]{{16,}}"),
    ("token", "syt_", rf"{_START}syt_[A-Za-z0-9+/=]{{1,64}}_[A-Za-z0-9]{{12,}}_[A-Za-z0-9]{{4,}}"),
    ("token", "ya29.", rf"{_START}ya29\.[A-Za-z0-9_-]{{20,}}"),
    ("token", "eyJ", rf"{_START}eyJ[A-Za-z0-9_-]{{8,}}\.[A-Za-z0-9_-]{{8,}}\.[A-Za-z0-9_-]*"),
    ("token", ":AA", r"[0-9]{8,10}:AA[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-])"),
    ("token", ".", rf"{_START}[MNO][A-Za-z0-9_-]{{23,25}}\.[A-Za-z0-9_-]{{6}}\.[A-Za-z0-9_-]{{27,}}"),
    ("webhook", "hooks.slack.com", r"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9/_-]{8,}"),
    ("webhook", "/api/webhooks/", r"discord(?:app)?\.com/api/webhooks/[0-9]{5,25}/[A-Za-z0-9_-]{20,}"),
    ("private key", "AGE-SECRET-KEY-1", rf"{_START}AGE-SECRET-KEY-1[0-9A-Z]{{50,}}"),
)
_FORMAT = tuple((f"[redacted: {kind}]", hint, re.compile(pattern)) for kind, hint, pattern in _FORMATS)

_URL = re.compile(
    r"(?P<head>://[^\s/@:?#]{0,100}:)(?P<value>(?!\[redacted)[^\s/@]{1,256})(?=@)",
)
_SCHEMES = "bearer|basic|token|digest|bot"
_HEADER = re.compile(
    r"(?P<head>(?:authorization|cookie|x-api-key|x-auth-token)[\"']?[^\S\n]{0,4}[:=][^\S\n]{0,4}[\"']?"
    rf"(?:(?:{_SCHEMES})[^\S\n]{{1,4}})?)(?P<value>(?!\[redacted|[\"']|(?:{_SCHEMES})\b)[^\s\"',]{{6,}})",
    re.IGNORECASE,
)
_BEARER = re.compile(
    r"(?P<head>\b(?:bearer|basic)[^\S\n]{1,4})(?P<value>(?=[A-Za-z+/_.~-]{0,64}[0-9=])[A-Za-z0-9+/_.~=-]{16,})",
    re.IGNORECASE,
)

_PASSWORD_WORDS = (
    "password|passwort|kennwort|passphrase|passwd|passcode|pwd|mot de passe|mdp|contraseña|contrasena|clave|senha|parola"
    "|wachtwoord|hasło|haslo|heslo|lösenord|losenord|adgangskode|salasana|пароль|şifre|sifre|密码|密碼|口令|パスワード|비밀번호|pin"
)
_SECRET_WORDS = (
    "token|key|secret|api-?key|auth-?token|access-?token|bot-?token|access-?key|client-?secret|credential|credentials|schlüssel|geheimnis|zugangscode|clé|jeton|llave|secreto|chave|segredo"
    "|chiave|segreto|sleutel|klucz|sekret|ключ|токен|секрет|密钥|密鑰|令牌|キー|トークン|토큰"
)
_VERBS = "is|was|are|ist|war|lautet|est|es|é|è"
_ASSIGN = rf"[\"'`]?[^\S\n]{{0,4}}(?P<sign>:=|=>|[:=：＝]|(?<=\s)(?:{_VERBS}):?(?=\s))[^\S\n]{{0,4}}[\"'`]?"
_VALUE = r"(?P<value>(?!\[redacted)[^\s\"'`<>,;&，。；]{4,})"
_PASSWORD = re.compile(rf"(?P<head>(?:{_PASSWORD_WORDS}){_ASSIGN}){_VALUE}", re.IGNORECASE)
_SECRET = re.compile(rf"(?P<head>(?:{_SECRET_WORDS}){_ASSIGN}){_VALUE}", re.IGNORECASE)
_PASSWORD_HINTS = tuple(word.casefold() for word in _PASSWORD_WORDS.split("|"))
_SECRET_HINTS = tuple(word.casefold() for word in _SECRET_WORDS.split("|") if "-" not in word)
_PLACEHOLDER = re.compile(
    r"[$%{(*.…•_-]|(?:xxx+|none|null|true|false|undefined|os\.|env|process\.|config\.|settings\.|self\.|string|str|int)\b",
    re.IGNORECASE,
)


def redact(text: str, known: Collection[str] = ()) -> str:
    """`text` with every credential in it replaced by `[redacted]` or `[redacted: kind]`.

    `known` are secrets of this installation; they are replaced wherever they stand, also when URL-encoded. Ordinary ids, hashes,
    UUIDs, versions and numbers are left alone. Never fails; the time is linear in the length of the text.
    """
    text = _without_known(text, known)
    if "PRIVATE KEY" in text:
        text = _PRIVATE_KEY.sub("[redacted: private key]", text)
    for replacement, hint, pattern in _FORMAT:
        if hint in text:
            text = pattern.sub(replacement, text)
    if "://" in text:
        text = _URL.sub(_valued("password", _any), text)
    low = text.casefold()
    if "authorization" in low or "cookie" in low or "x-a" in low:
        text = _HEADER.sub(_valued("credentials", _any), text)
    if "bearer" in low or "basic" in low:
        text = _BEARER.sub(_valued("credentials", _any), text)
    if any(word in low for word in _PASSWORD_HINTS):
        text = _PASSWORD.sub(_valued("password", _like_password), text)
    if any(word in low for word in _SECRET_HINTS):
        text = _SECRET.sub(_valued("secret", _like_secret), text)
    return text


def _without_known(text: str, known: Iterable[str]) -> str:
    forms = {form for secret in known if len(secret) >= MIN_KNOWN for form in _spellings(secret)}
    for form in sorted(forms, key=lambda form: (-len(form), form)):
        text = text.replace(form, "[redacted]")
    return text


def _spellings(secret: str) -> Iterable[str]:
    raw = secret.encode("utf-8", "surrogatepass")
    return secret, quote(raw, safe=""), quote(raw), quote_plus(raw)


def _valued(kind: str, judge: Callable[[str, str], bool]) -> Callable[[re.Match[str]], str]:
    def replacement(match: re.Match[str]) -> str:
        sign = match.groupdict().get("sign") or "="
        if _inside_word(match) or not judge(match["value"], sign):
            return match[0]
        return f"{match['head']}[redacted: {kind}]"

    return replacement


def _inside_word(match: re.Match[str]) -> bool:
    """Whether the telling word is only the end of another one, as in monkey; dbPassword and DB_KEY are two words each."""
    start = match.start()
    return start > 0 and match.string[start].islower() and "a" <= match.string[start - 1].lower() <= "z"


def _any(value: str, sign: str) -> bool:
    return True


def _like_password(value: str, sign: str) -> bool:
    if _PLACEHOLDER.match(value):
        return False
    core = value.rstrip(".!?)")
    if sign == "=":
        return len(core) >= 4
    return (len(core) >= 4 and _classes(core) >= 2) or (core.isdigit() and 4 <= len(core) <= 12)


def _like_secret(value: str, sign: str) -> bool:
    """Whether letters and digits are mixed as no name like customer_id_2024 mixes them."""
    core = value.rstrip(".!?)")
    if _PLACEHOLDER.match(value) or len(core) < 12 or "://" in core:
        return False
    parts = re.split(r"[_.-]", core)
    return sum(len(part) for part in parts if any(map(str.isdigit, part)) and any(map(str.isalpha, part))) >= 8


def _classes(value: str) -> int:
    inner_upper = any(c.isupper() for c in value[1:])
    symbol = any(not c.isalnum() for c in value[:-1])
    return any(c.islower() for c in value) + inner_upper + any(c.isdigit() for c in value) + symbol
