"""What the redactor takes out and what it leaves."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from clew.context.redact import redact

# Put together at run time, so that no secret scanner takes this file for a leak.
LONG = "aB3dE5fG7hI9jK1lM2nO4pQ6rS8tU0vW"
CREDENTIALS = [
    "sk-" + "ant-api03-" + LONG,
    "sk-" + "proj-" + LONG,
    "sk-" + LONG,
    "ghp_" + LONG + "abcd",
    "github" + "_pat_11ABC_" + LONG,
    "glpat-" + LONG[:20],
    "xox" + "b-123456789012-" + LONG,
    "AKIA" + "IOSFODNN7EXAMPLE",
    "AIza" + "SyA-" + LONG[:31],
    "eyJ" + "hbGciOiJIUzI1NiJ9." + "eyJ" + "zdWIiOiIxMjM0NTY3ODkwIn0." + LONG,
    "123456789:" + "AA" + LONG + "x",
    "hf_" + LONG,
    "sk_" + "live_" + LONG,
    "https://hooks." + "slack.com/services/T00000000/B00000000/" + LONG[:24],
]
SENTENCES = [  # text, what must be gone
    ("Mein Passwort: Hunter2!x", "Hunter2!x"),
    ("the password is correct7horse", "correct7horse"),
    ("DB_PASSWORD=swordfish", "swordfish"),
    ('{"password": "s3cr3t-Pa55"}', "s3cr3t-Pa55"),
    ("пароль: Qwerty123", "Qwerty123"),
    ("contraseña: Gato2024!", "Gato2024!"),
    ("密码：abc12345", "abc12345"),
    ("PIN: 4711", "4711"),
    ("api_key = 9f8e7d6c5b4a39281706", "9f8e7d6c5b4a39281706"),
    ("client_secret: " + LONG, LONG),
    ("accessToken: '" + LONG + "'", LONG),
    ("token=550e8400-e29b-41d4-a716-446655440000", "550e8400"),
    ("postgres://clew:pa55w0rd@db.local/clew", "pa55w0rd"),
    ("Authorization: Bearer " + LONG, LONG),
    ("Authorization: Basic dXNlcjpwYXNzd29yZA==", "dXNlcjpwYXNzd29yZA=="),
    ("curl -H 'X-Api-Key: 0123456789abcdef'", "0123456789abcdef"),
    ("-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7\nabc+/=\n-----END RSA PRIVATE KEY-----", "MIIEpAIBAAKCAQEA7"),
    ("-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEF", "MIIEvQIBADANBgkqhkiG9w0BAQEF"),
]
ORDINARY = [
    "the token limit is 4000",
    "token: 4000 per request",
    "the key is under the mat",
    "the key is important here",
    "commit 9f8e7d6c5b4a39281706f5e4d3c2b1a098765432",
    "id 550e8400-e29b-41d4-a716-446655440000",
    "version 3.11.7-rc1, price 1299.00 EUR, order 2026-11-30/4711",
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "the password is wrong",
    "Passwort: ${DB_PASSWORD}",
    "primary_key=customer_id_2024x",
    "monkey: a1b2c3d4e5f6g7h8",
    "see https://example.org/a:b/c?page=2 and mail ada@example.org",
    "sk-learn is a library, task-runner-2 too",
    "Call me at 030 1234567 at 12:30:45",
    "basic understanding of authorization is needed",
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
]


# P19
@pytest.mark.parametrize("secret", CREDENTIALS)
def test_well_known_credentials_are_replaced(secret: str) -> None:
    redacted = redact(f"here: {secret}, take care")
    assert secret not in redacted
    assert "[redacted" in redacted
    assert redacted.endswith(", take care")


# P19
@pytest.mark.parametrize(("text", "secret"), SENTENCES)
def test_what_stands_after_a_telling_word_is_replaced(text: str, secret: str) -> None:
    redacted = redact(text)
    assert secret not in redacted
    assert "[redacted" in redacted


# P17, P19
@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_identifiers_stay(text: str) -> None:
    assert redact(text) == text


# P19
def test_known_secrets_are_replaced_also_when_encoded() -> None:
    secret = "pä ss/wört+1"
    text = f"a {secret} b {quote(secret, safe='')} c"
    assert redact(text, [secret]) == "a [redacted] b [redacted] c"


def test_hostile_texts_end() -> None:
    for piece in ("password=", "sk-", "eyJ", "-----BEGIN PRIVATE KEY-----", "://a:", "authorization: bearer ", "token is ", "a:", " ", "1"):
        redact(piece * (200_000 // len(piece)))
