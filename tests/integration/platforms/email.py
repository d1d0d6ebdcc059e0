"""dovecot and an SMTP server, with people who write mails."""

import contextlib
import tempfile
from collections.abc import AsyncIterator
from email.message import EmailMessage
from pathlib import Path
from typing import Any, Self

import pytest

from tests import dovecot
from tests.dovecot import PASSWORD, Dovecot, Outbox
from tests.emulators.server import JsonObject
from tests.integration.platforms import Platform
from tests.integration.web_harness import Clew
from tests.integration.webhook_harness import until
from tests.servers import Mosquitto

OWN = "clew@example.org"


class Email(Platform):
    name = "email"
    groups = False
    marks_bots = repeats = True

    @classmethod
    @contextlib.asynccontextmanager
    async def standing(cls, broker: Mosquitto) -> AsyncIterator[Self]:
        if why := dovecot.missing():
            pytest.skip(why)
        with tempfile.TemporaryDirectory() as folder, Dovecot(Path(folder)) as server, Outbox() as outbox:
            yield cls(server, outbox)

    def __init__(self, server: Dovecot, outbox: Outbox) -> None:
        self.mailboxes, self.outbox = server, outbox
        self._number = 0

    def section(self) -> JsonObject:
        inward = {"imap_host": "127.0.0.1", "imap_port": self.mailboxes.port, "imap_tls": False}
        outward = {"smtp_host": "127.0.0.1", "smtp_port": self.outbox.port, "smtp_tls": "none", "smtp_login": False}
        return {"address": OWN, "password": PASSWORD, "authserv_id": "mx.example.org", **inward, **outward}

    def identity(self, who: str) -> str:
        return f"email:{address(who)}"

    async def say(self, clew: Clew, text: str, who: str = "ada", *, group: bool = False, called: bool = True) -> Any:
        self._number += 1
        raw = mail(text, address(who), f"<m{self._number}@example.net>", References=f"<first-of-{who}@example.net>").as_bytes()
        self.mailboxes.deliver(OWN, raw)
        return raw

    async def again(self, clew: Clew, said: Any) -> None:
        self.mailboxes.deliver(OWN, said)

    def heard(self, who: str = "ada", *, group: bool = False) -> list[str]:
        return self.outbox.bodies(address(who))

    async def down(self) -> None:
        self.outbox.next.extend(["451 try again later"] * 2)

    async def up(self, clew: Clew) -> None:
        await until(self.has_refused)

    def too_many(self) -> None:
        self.outbox.next.append("450 too many mails")

    def has_refused(self) -> bool:
        return not self.outbox.next

    def no_answer(self) -> None:
        self.outbox.next.append("drop")

    async def bot(self, clew: Clew, text: str) -> None:
        raw = mail(text, address("bob"), "<m0@example.net>", Auto_Submitted="auto-replied")
        self.mailboxes.deliver(OWN, raw.as_bytes())


def address(who: str) -> str:
    return f"{who}@example.net"


def mail(text: str, sender: str, number: str = "<m1@example.net>", **more: str) -> EmailMessage:
    """A mail as the own server delivers it, which vouches for its sender. more: other headers, - for _."""
    message = EmailMessage()
    domain = sender.rpartition("@")[2]
    headers = {
        "Authentication-Results": f"mx.example.org; spf=pass smtp.mailfrom={domain}; dmarc=pass (p=none) header.from={domain}",
        "From": sender,
        "To": OWN,
        "Message-ID": number,
        "Date": "Mon, 30 Nov 2026 10:00:00 +0000",
    } | {name.replace("_", "-"): value for name, value in more.items()}
    for name, value in headers.items():
        if value:
            message[name] = value
    message.set_content(text)
    return message
