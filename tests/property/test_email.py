"""Mails of any kind are read or refused; what is new in them is never lost."""

import contextlib

from hypothesis import example, given
from hypothesis import strategies as st

from clew.transport import Inbound
from clew_transports.email import replies
from clew_transports.email.messages import Reader, Trust, new_words, without_tags
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
def test_html_becomes_words(html: str) -> None:
    assert "<script" not in without_tags(f"<p>{html}</p><script>alert(1)</script>").split("alert(1)")[-1]


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
