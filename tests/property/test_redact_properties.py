"""The redactor on any text."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from clew.context.redact import MIN_KNOWN, redact

WORDS = st.text(alphabet="abcdefghijklmnopqrstuvwxyz ,.", max_size=60)
PIECES = st.sampled_from(
    [
        *("password", "Passwort", "pass", "token", "api_key", "key", "PIN", "密码", "是", " is ", " for the router", "'s ", ":", "=", " "),
        *("\n", '"', "'", "\\", ";", ",", "://a:", "@", "?token=", "&sig=", "Authorization: ", "Bearer ", "Digest ", "Cookie: a="),
        *("curl -u a:", " mysql -p", "docker login -p ", "-----BEGIN PRIVATE KEY-----", "ghp_", "sk-", "eyJ", "Hunter2!", "swordfish"),
        *("aB3dE5fG7hI9jK1lM2nO4p", "[redacted", ": token]", "4711"),
    ]
)
TEXTS = st.one_of(st.text(max_size=300), st.lists(PIECES, max_size=20).map("".join))
TOKENS = st.text(alphabet="ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnpqrstuvwxyz23456789", min_size=32, max_size=60)


# P19
@settings(max_examples=1000)
@given(TEXTS)
def test_redacting_twice_changes_nothing_more(text: str) -> None:
    once = redact(text)
    assert redact(once) == once


# P19
@given(TEXTS, st.lists(st.text(alphabet="0123456789#äß%&", min_size=MIN_KNOWN, max_size=20), max_size=3))
def test_no_known_secret_survives(text: str, known: list[str]) -> None:
    redacted = redact("".join([text, *known]), known)
    assert not any(secret in redacted for secret in known)


# P19
@given(WORDS, TOKENS, WORDS)
def test_a_provider_key_never_survives_whatever_stands_around_it(before: str, token: str, after: str) -> None:
    assert token not in redact(f"{before} ghp_{token} {after}")
    assert token not in redact(f"{before} Bearer 7{token} {after}")


# P17
@given(WORDS)
def test_plain_lower_case_prose_stays(text: str) -> None:
    assert redact(text) == text


PLACES = [
    "password={}",
    "DB_PASSWORD='{}'\nOTHER=1",
    'export API_TOKEN="{}"; run',
    '{{"user": "ada", "password": "{}", "port": 5432}}',
    '{{\\"client_secret\\": \\"{}\\"}}',
    "db:\n  password: {}\n  port: 5432",
    "token:\n  {}\n",
    "<secret>{}</secret>",
    "the password for the wifi is {}.",
    "Das Passwort lautet {}, bitte nicht weitersagen",
    "el token es {}",
    "le mot de passe : {}",
    "hasło to {}",
    "пароль: {}",
    "密码是{}。",
    "パスワード：{}",
    "https://ada:{}@example.org/x",
    "https://example.org/?access_token={}&page=2",
    "curl -H 'Authorization: Bearer {}' https://example.org",
    "curl -u ada:{} https://example.org",
    "Cookie: sid={}; theme=dark",
]
SECRETS = st.text(alphabet="ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnpqrstuvwxyz23456789", min_size=16, max_size=60).filter(
    lambda text: any(map(str.isdigit, text)) and any(map(str.islower, text)) and any(map(str.isupper, text))
)
SHAS = st.text(alphabet="0123456789abcdef", min_size=40, max_size=40)
IDENTIFIERS = st.one_of(
    SHAS,
    SHAS.map(lambda text: text[:12]),
    SHAS.map(lambda text: f"sha256:{text}{text[:24]}"),
    st.uuids().map(str),
    st.lists(st.text(alphabet="abcdefxyz0123456789_.-", min_size=1, max_size=12), min_size=2, max_size=6).map(
        lambda parts: "/" + "/".join(parts)
    ),
    st.tuples(*[st.integers(0, 99)] * 3).map(lambda parts: "v" + ".".join(map(str, parts))),
    st.datetimes().map(str),
    st.integers(0, 10**12).map(lambda number: f"INV-2026-{number}"),
    st.emails(domains=st.just("example.org")).filter(lambda text: text.isascii()),
)


# P19
@given(st.sampled_from(PLACES), SECRETS)
def test_no_secret_survives_in_any_notation(place: str, secret: str) -> None:
    redacted = redact(place.format(secret))
    assert not any(secret[at : at + 8] in redacted for at in range(len(secret) - 7))


# P17, P19
@given(st.sampled_from(["see {}", "commit {}, please", "it is at {} now", "{}: failed", '{{"id": "{}"}}', "order={}\nnext"]), IDENTIFIERS)
def test_identifiers_stay_where_no_word_tells_of_a_secret(place: str, identifier: str) -> None:
    text = place.format(identifier)
    assert redact(text) == text
