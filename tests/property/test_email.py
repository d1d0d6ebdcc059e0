"""Mails of any kind are read or refused; what is new in them is never lost."""

import contextlib

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from clew.transport import Inbound
from clew_transports.email import replies
from clew_transports.email.messages import Reader, Trust, new_words, vouches, without_tags
from clew_transports.reading import Malformed

READER = Reader("email", "clew@example.org", Trust(anybody=True))
WORDS = st.lists(st.sampled_from([*"ab >-\n:_", "\nOn Monday x wrote:\n", "\n-- \n", "\n> "]), max_size=60).map("".join)


@given(st.binary(max_size=400))
@example(b"From: a@b.c\r\nContent-Type: text/plain; charset=nonsense\r\n\r\nhello")
@example(b"From: a@b.c\r\nContent-Type: multipart/mixed; boundary=x\r\n\r\n--x")
@example(b"From: a@b.c\r\nDate: never\r\nSubject: =?utf-8?q?=ff?=\r\n\r\nhello")
@example(b"From: =?x?b?!!?= <a@b.c>\r\nReferences: <\r\n\r\n")
def test_any_mail_is_read_or_refused(raw: bytes) -> None:
    for each in (raw, b"From: a@b.c\r\n" + raw, b"From: a@b.c\r\n\r\n" + raw):
        with contextlib.suppress(Malformed):
            READER.read(each, "1.1")


@given(WORDS)
def test_new_words_are_words_of_the_mail(text: str) -> None:
    found = new_words(text)
    assert found in text.replace("\r\n", "\n")
    assert bool(found) == bool(text.strip())


@given(st.text(max_size=200))
def test_html_of_any_kind_becomes_words(html: str) -> None:
    without_tags(html)
    assert without_tags(f"<style>{'x' * len(html)}</style><p>a &amp; b</p><script>alert(1)</script><p>c</p>") == "a & b\n\nc"


@given(st.text(max_size=60), st.text(max_size=100), st.text(alphabet="abc<>@. \t", max_size=40))
def test_a_reply_is_one_mail_whatever_is_in_it(subject: str, text: str, number: str) -> None:
    said = b"From: a@b.c\r\nMessage-ID: " + number.encode() + b"\r\n\r\nhello"
    read = READER.read(said, "1.1")
    assert isinstance(read, Inbound)
    context = {**read.context, "subject": " ".join(subject.split())}
    with contextlib.suppress(UnicodeEncodeError):
        mail = replies.mail(text, own="c@d.e", reply_to="c@d.e", to="a@b.c", number="<n@d.e>", context=context, ts=1.0)
        assert mail.as_bytes().count(b"\nTo: ") == 1
        assert mail["Bcc"] is None


RESULTS = [
    ("mx.example.org; dmarc=pass header.from=example.net", True),
    ("mx.example.org 1; spf=pass smtp.mailfrom=x; dmarc=pass (p=none (dis=none)) header.from=example.net", True),
    ('mx.example.org; dmarc = pass reason="good; really" header.from=EXAMPLE.net', True),
    ("mx.example.org; dmarc=fail header.from=example.net", False),
    ("mx.example.org; dmarc=pass header.from=example.net.evil.com", False),
    ("mx.example.org; dmarc=pass header.from=example.net-evil.com", False),
    ("mx.example.org; dmarc=pass header.from=evil.com", False),
    ("mx.example.org; dmarc=pass", False),
    ("mx.evil.org; dmarc=pass header.from=example.net", False),
    ("mx.example.org.evil.org; dmarc=pass header.from=example.net", False),
    ("mx.example.org; spf=pass smtp.mailfrom=dmarc=pass/header.from=example.net@evil.com; dmarc=fail header.from=example.net", False),
    ('mx.example.org; spf=pass smtp.mailfrom="; dmarc=pass header.from=example.net"@evil.com; dmarc=fail header.from=evil.com', False),
    ("mx.example.org; spf=pass smtp.helo=dmarc=pass-header.from=example.net", False),
    ("mx.example.org; spf=none (a (x) dmarc=pass header.from=example.net)", False),
    ("mx.example.org; spf=none (a (x) ; dmarc=pass header.from=example.net)", False),
    ("mx.example.org; dmarc=pass header.from=evil.com header.from=example.net", False),
    ("mx.example.org; dmarc=fail header.from=example.net; dmarc=pass header.from=example.net", False),
]


@pytest.mark.parametrize(("results", "expected"), RESULTS)
def test_only_the_own_server_and_the_whole_word_vouch(results: str, expected: bool) -> None:  # P46, BO-101
    assert vouches(results, "mx.example.org", "example.net") is expected


@given(
    st.lists(st.sampled_from(["a", " ", '"', "\\", "(", ")", ";", "=", "; dmarc=pass", " header.from=example.net"]), max_size=12).map(
        "".join
    )
)
def test_what_a_sender_chose_vouches_for_nothing(chosen: str) -> None:  # P46, BO-101
    quoted = chosen.replace("\\", "\\\\").replace('"', '\\"')
    assert not vouches(
        f'mx.example.org; spf=pass smtp.mailfrom="{quoted}"; dmarc=fail header.from=example.net', "mx.example.org", "example.net"
    )
