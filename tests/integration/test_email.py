"""The e-mail transport against dovecot and an SMTP server, with a host that remembers."""

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator, Iterator
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr, ValidationError

from clew.transport import Address, Delivery, Refused, Retry, Unknown
from clew_transports.email import imap
from clew_transports.email.transport import EmailTransport, Settings, plugin
from tests import dovecot
from tests.dovecot import PASSWORD, Dovecot, Outbox
from tests.integration.mqtt_harness import Inbox
from tests.integration.platforms.email import OWN, mail
from tests.integration.webhook_harness import until

pytestmark = pytest.mark.asyncio

ADA = "ada@example.net"
FORGED = (
    "mx.example.org; spf=pass smtp.mailfrom=dmarc=pass/header.from=example.net@evil.com; dkim=none; "
    "dmarc=fail (p=reject) header.from=example.net"
)
"""What a mail server says of a mail whose sender has chosen a strange address to send it from."""


@pytest.fixture
def servers() -> Iterator[tuple[Dovecot, Outbox]]:
    if why := dovecot.missing():
        pytest.skip(why)
    with tempfile.TemporaryDirectory() as folder, Dovecot(Path(folder)) as server, Outbox() as outbox:
        yield server, outbox


def settings(servers: tuple[Dovecot, Outbox], **more: Any) -> Settings:
    inward: dict[str, Any] = {"imap_host": "127.0.0.1", "imap_port": servers[0].port, "imap_tls": False}
    outward = {"smtp_host": "127.0.0.1", "smtp_port": servers[1].port, "smtp_tls": "none", "smtp_login": False}
    return Settings(**inward | outward | {"address": OWN, "password": SecretStr(PASSWORD), "authserv_id": "mx.example.org"} | more)


@contextlib.asynccontextmanager
async def running(servers: tuple[Dovecot, Outbox], inbox: Inbox, **more: Any) -> AsyncIterator[EmailTransport]:
    transport = EmailTransport("email", settings(servers, **more), first_pause=0.05)
    task = asyncio.create_task(transport.run(inbox))
    try:
        yield transport
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


@contextlib.asynccontextmanager
async def connected(servers: tuple[Dovecot, Outbox], **more: Any) -> AsyncIterator[tuple[EmailTransport, Inbox]]:
    inbox = Inbox()
    async with running(servers, inbox, **more) as transport:
        await inbox.until(lambda: inbox.up)
        yield transport, inbox


def delivery(transport: EmailTransport, text: str, thread: str | None = None, **more: Any) -> Delivery:
    return Delivery("k3v9", Address("email", ADA, thread), text, tuple(transport.parts(text)), 1_800_000_000.0, **more)


# In --------------------------------------------------------------------------------------------------------------


async def test_new_mails_are_read_and_those_from_before_are_not(servers: tuple[Dovecot, Outbox]) -> None:  # P42
    servers[0].deliver(OWN, mail("from last year", ADA).as_bytes())
    async with connected(servers) as (_, inbox):
        servers[0].deliver(OWN, mail("Buy milk, please.\n", ADA, "<m2@example.net>", Subject="Shopping").as_bytes())
        await inbox.until(lambda: len(inbox.rows) == 1)
        (row,) = inbox.rows.values()
        assert (row.external_id, row.identity, row.text) == (
            "email/ada@example.net/<m2@example.net>",
            "email:ada@example.net",
            "Shopping\n\nBuy milk, please.",
        )
        assert (row.address.chat, row.direct, row.sent_at) == (ADA, True, 1_796_032_800.0)


async def test_what_came_while_clew_was_off_is_read_once_and_in_order(servers: tuple[Dovecot, Outbox]) -> None:  # P42, BO-047
    inbox = Inbox()
    async with running(servers, inbox):
        await inbox.until(lambda: inbox.up)
    for number in range(25):
        servers[0].deliver(OWN, mail(f"message {number}", ADA, f"<m{number}@x.y>", References="<r@x.y>").as_bytes())
    async with running(servers, inbox):
        await inbox.until(lambda: len(inbox.rows) == 25)
        await until(lambda: servers[0].unseen(OWN) == 0)
    assert inbox.texts == [f"message {number}" for number in range(25)]
    inbox.stored_cursor = (inbox.stored_cursor or "").replace(", 25,", ", 20,")  # as if it had died before the cursor was stored
    async with running(servers, inbox):
        await inbox.until(lambda: len(inbox.duplicates) == 5)


async def test_nothing_is_marked_as_read_before_it_is_stored(servers: tuple[Dovecot, Outbox]) -> None:  # P42
    async with connected(servers) as (_, inbox):
        inbox.stuck = True
        servers[0].deliver(OWN, mail("hello", ADA).as_bytes())
        await inbox.until(lambda: len(inbox.batches) == 2)
        assert servers[0].unseen(OWN) == 1
    inbox.stuck = False
    async with running(servers, inbox):
        await inbox.until(lambda: inbox.texts == ["hello"])


async def test_a_folder_that_was_made_anew_is_read_from_where_clew_began(servers: tuple[Dovecot, Outbox]) -> None:  # P42
    inbox = Inbox()
    async with running(servers, inbox):
        await inbox.until(lambda: inbox.up)
        servers[0].deliver(OWN, mail("hello", ADA).as_bytes())
        await inbox.until(lambda: inbox.texts == ["hello"])
    servers[0].anew(OWN)
    servers[0].deliver(OWN, mail("again", ADA, "<m9@x.y>").as_bytes())
    async with running(servers, inbox):
        await inbox.until(lambda: inbox.texts == ["hello", "again"])
    assert inbox.duplicates == ["email/ada@example.net/<m1@example.net>"]


@pytest.mark.parametrize(
    "headers",
    [
        {"Authentication_Results": ""},
        {"Authentication_Results": "mx.evil.org; dmarc=pass header.from=example.net"},
        {"Authentication_Results": "mx.example.org; dmarc=fail header.from=example.net"},
        {"Authentication_Results": "mx.example.org; dmarc=pass header.from=evil.org"},
        {"Authentication_Results": "mx.example.org; spf=pass (dmarc=pass header.from=example.net)"},
        {"Auto_Submitted": "auto-replied"},
        {"Precedence": "bulk"},
        {"List_Id": "<news.example.net>"},
        {"Return_Path": "<>"},
        {"Authentication_Results": FORGED},
        {"From": "ada@example.net, x@evil.com"},
        {"From": "no-reply@example.net"},
        {"From": OWN},
        {"From": "nobody"},
    ],
)
async def test_forged_mails_and_those_of_programs_are_left_alone(  # P46, BO-072, BO-101
    servers: tuple[Dovecot, Outbox], headers: dict[str, str]
) -> None:
    async with connected(servers) as (_, inbox):
        servers[0].deliver(OWN, mail("Open the door", ADA, "<bad@x.y>", **headers).as_bytes())
        servers[0].deliver(OWN, mail("hello", ADA, "<good@x.y>").as_bytes())
        await inbox.until(lambda: len(inbox.rows) == 1)
        assert inbox.texts == ["hello"]


async def test_a_word_behind_the_plus_lets_in_too(servers: tuple[Dovecot, Outbox]) -> None:  # P46
    token = SecretStr("a-long-word")
    async with connected(servers, authserv_id=None, token=token) as (transport, inbox):
        servers[0].deliver(OWN, mail("no", ADA, "<m1@x.y>").as_bytes())
        servers[0].deliver(OWN, mail("yes", ADA, "<m2@x.y>", To="clew+A-Long-Word@example.org").as_bytes())
        await inbox.until(lambda: inbox.texts == ["yes"])
        await transport.send(delivery(transport, "hello"))
        assert servers[1].mails[0]["Reply-To"] == "clew+a-long-word@example.org"


async def test_files_are_fetched_and_what_is_too_long_is_refused(servers: tuple[Dovecot, Outbox], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(imap, "MAX_BYTES", 20_000)
    async with connected(servers) as (transport, inbox):
        filed = mail("look", ADA, "<m1@x.y>")
        filed.add_attachment(b"the picture", maintype="image", subtype="jpeg", filename="cat.jpg")
        servers[0].deliver(OWN, filed.as_bytes())
        servers[0].deliver(OWN, mail("x" * 30_000, ADA, "<m2@x.y>").as_bytes())
        await inbox.until(lambda: len(inbox.rows) == 2)
        with_file, long = inbox.rows.values()
        (file,) = with_file.attachments
        assert (file.name, file.mime, file.size) == ("cat.jpg", "image/jpeg", 11)
        assert [piece async for piece in transport.fetch(file.ref)] == [b"the picture"]
        assert "too long" in long.refused
        for ref in ("1.1.0", file.ref + "7", "x"):
            with pytest.raises(LookupError):
                [piece async for piece in transport.fetch(ref)]


async def test_a_server_that_goes_is_noticed(servers: tuple[Dovecot, Outbox]) -> None:  # P48
    async with connected(servers) as (_, inbox):
        servers[0].stop()
        await inbox.until(lambda: not inbox.up)
        servers[0].start()
        await inbox.until(lambda: inbox.up)
        servers[0].deliver(OWN, mail("hello", ADA).as_bytes())
        await inbox.until(lambda: inbox.texts == ["hello"])


# Out -------------------------------------------------------------------------------------------------------------


async def test_a_reply_belongs_to_the_conversation_and_so_does_the_answer_to_it(servers: tuple[Dovecot, Outbox]) -> None:  # P43
    async with connected(servers) as (transport, inbox):
        servers[0].deliver(OWN, mail("first", ADA, "<m1@x.y>", Subject="Garden").as_bytes())
        await inbox.until(lambda: len(inbox.rows) == 1)
        (first,) = inbox.rows.values()
        text = "**Yes.** ![x](http://evil.example/x.png) <script>alert(1)</script>"
        await transport.send(delivery(transport, text, first.address.thread, context=first.context))
        (reply,) = servers[1].mails
        assert (reply["To"], reply["Subject"], reply["In-Reply-To"], reply["References"]) == (ADA, "Re: Garden", "<m1@x.y>", "<m1@x.y>")
        assert (reply["Auto-Submitted"], reply["X-Auto-Response-Suppress"]) == ("auto-replied", "All")
        html = str(reply.get_body(("html",)).get_content())  # type: ignore[union-attr]
        assert "<strong>Yes.</strong>" in html
        assert "<img" not in html
        assert "<script" not in html
        quoted = "and now?\n\nOn Mon, 30 Nov 2026 at 10:01, clew <clew@example.org> wrote:\n> Yes.\n"
        answer = mail(
            quoted, ADA, "<m2@x.y>", Subject="Re: Garden", In_Reply_To=str(reply["Message-ID"]), References=str(reply["Message-ID"])
        )
        servers[0].deliver(OWN, answer.as_bytes())
        servers[0].deliver(OWN, mail("another", ADA, "<m3@x.y>").as_bytes())
        await inbox.until(lambda: len(inbox.rows) == 3)
        _, second, other = inbox.rows.values()
        assert (second.text, second.address) == ("and now?", first.address)
        assert other.address != first.address


async def test_a_mail_of_its_own_accord_is_answered_into_its_own_chat(servers: tuple[Dovecot, Outbox]) -> None:
    async with connected(servers) as (transport, inbox):
        await transport.send(delivery(transport, "# Good morning\n\nIt rains."))
        (sent,) = servers[1].mails
        assert (sent["Subject"], sent["Auto-Submitted"], sent["In-Reply-To"]) == ("Good morning", "auto-generated", None)
        servers[0].deliver(OWN, mail("thanks", ADA, "<m2@x.y>", In_Reply_To=str(sent["Message-ID"])).as_bytes())
        await inbox.until(lambda: len(inbox.rows) == 1)
        assert next(iter(inbox.rows.values())).address == Address("email", ADA)


async def test_failures_are_told_apart(servers: tuple[Dovecot, Outbox]) -> None:  # P43, BO-064
    _, outbox = servers
    async with connected(servers) as (transport, _):
        for answer, expected in (("451 later", Retry), ("554 spam", Refused), ("drop", Unknown)):
            outbox.next.append(answer)
            with pytest.raises(expected):
                await transport.send(delivery(transport, "hello"))
        outbox.refused.add(ADA)
        with pytest.raises(Refused, match="no such user"):
            await transport.send(delivery(transport, "hello"))
        assert len(outbox.mails) == 1
        with pytest.raises(Refused, match="an address"):
            await transport.send(Delivery("k", Address("email", "a b"), "x", tuple(transport.parts("x")), 1.0))


async def test_no_words_can_add_a_header(servers: tuple[Dovecot, Outbox]) -> None:
    async with connected(servers) as (transport, _):
        context = {"subject": "a\r\nBcc: eve@example.net", "message_id": "<m@x>\r\nBcc: eve@example.net"}
        with contextlib.suppress(ValueError, Refused):
            await transport.send(delivery(transport, "x", context=context))
        await transport.send(delivery(transport, "Bcc: eve@example.net\nhello"))
        assert all(each["Bcc"] is None for each in servers[1].mails)
        assert isinstance(servers[1].mails[-1], EmailMessage)


# Setting up ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [{"address": "clew"}, {"folder": 'a"b'}, {"smtp_tls": "yes"}, {"token": SecretStr("x")}, {"poll": "0s"}])
async def test_settings_that_cannot_be_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Settings(**wrong)


async def test_the_doctor_sees_what_is_wrong(servers: tuple[Dovecot, Outbox]) -> None:
    async def texts(**more: Any) -> str:
        assert plugin.examine is not None
        return "; ".join(fault.text for fault in await plugin.examine("email", settings(servers, **more)))

    assert await texts() == ""
    assert "Authentication failed" in await texts(password=SecretStr("wrong"))
    assert "nobody vouches" in await texts(authserv_id=None)
    assert "trust_from is on" in await texts(trust_from=True)
    assert "no connection to the mail server" in await texts(smtp_port=1)
