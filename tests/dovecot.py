"""A real IMAP server on loopback for tests, and an SMTP server that delivers into its mailboxes. Nothing here imports clew."""

import asyncio
import contextlib
import grp
import mailbox
import os
import pwd
import subprocess
import time
from collections import deque
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from pathlib import Path
from typing import Any, Self

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP

from tests.servers import HOST, Server, find_program, free_port

PASSWORD = "the-password-of-the-tests"

CONFIG = """
protocols = imap
listen = {host}
base_dir = {folder}/run
state_dir = {folder}/state
log_path = {folder}/log
mail_location = maildir:{folder}/mail/%u
mail_uid = {uid}
mail_gid = {gid}
first_valid_uid = 0
first_valid_gid = 0
default_internal_user = {user}
default_login_user = {user}
default_internal_group = {group}
ssl = no
disable_plaintext_auth = no
service imap-login {{
  chroot =
  inet_listener imap {{
    port = {port}
  }}
  inet_listener imaps {{
    port = 0
  }}
}}
service anvil {{
  chroot =
}}
service stats {{
  chroot =
}}
passdb {{
  driver = static
  args = password={password}
}}
userdb {{
  driver = static
  args = uid={uid} gid={gid} home={folder}/mail/%u
}}
namespace inbox {{
  inbox = yes
}}
"""


def missing() -> str:
    """Why tests that need an IMAP server are skipped; empty where it is installed, in a version whose config is written here."""
    program = find_program("dovecot")
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout if program else ""
    return (
        "" if version.startswith("2.3.") else "no dovecot 2.3 (apt-get install dovecot-imapd): tests that need an IMAP server are skipped"
    )


class Dovecot(Server):
    """One server with a folder and a port of its own; any user with PASSWORD has a mailbox."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        # Dovecot reads no mail as root.
        root = os.getuid() == 0
        self._owner = (pwd.getpwnam("mail").pw_uid, grp.getgrnam("mail").gr_gid) if root else (os.getuid(), os.getgid())
        folder.chmod(0o755)
        self._config = folder / "dovecot.conf"
        self._config.write_text(
            CONFIG.format(
                host=HOST,
                folder=folder,
                port=self.port,
                password=PASSWORD,
                uid=self._owner[0],
                gid=self._owner[1],
                user="dovecot" if root else pwd.getpwuid(os.getuid()).pw_name,
                group="dovecot" if root else grp.getgrgid(os.getgid()).gr_name,
            )
        )

    def _command(self) -> list[str]:
        (self.folder / "mail").mkdir(exist_ok=True)
        self._own()
        return [find_program("dovecot") or "dovecot", "-F", "-c", str(self._config)]

    def deliver(self, user: str, raw: bytes) -> None:
        """Put a mail into somebody's mailbox."""
        box = mailbox.Maildir(self.folder / "mail" / user, create=True)
        box.add(raw)
        self._own()

    def unseen(self, user: str) -> int:
        """How many mails of a mailbox nobody has read. The server renames them meanwhile: first in `new`, then in `cur`."""
        names = [path.name for part in ("new", "cur") for path in (self.folder / "mail" / user / part).iterdir()]
        return sum("S" not in name.partition(":2,")[2] for name in names)

    def anew(self, user: str) -> None:
        """The mailbox loses its numbers, as after a restore: its UIDVALIDITY changes."""
        folder = self.folder / "mail" / user
        (folder / "dovecot-uidlist").write_text(f"3 V{int(time.time()) + 1000} N1\n")
        for each in folder.glob("dovecot.index*"):
            each.unlink()
        self._own()

    def _own(self) -> None:
        """What was written here belongs to whom dovecot reads mails as."""
        for path in (self.folder / "mail", *(self.folder / "mail").rglob("*")):
            with contextlib.suppress(FileNotFoundError):  # dovecot moves what is new
                os.chown(path, *self._owner)


class Outbox:
    """An SMTP server that keeps what it takes. next: answers to the next mails in place of taking them; `drop` breaks the connection
    when it has taken the mail."""

    def __init__(self) -> None:
        self.mails: list[EmailMessage] = []
        self.next: deque[str] = deque()
        self.refused: set[str] = set()
        self.port = 0
        self._controller: Controller | None = None

    def __enter__(self) -> Self:
        self._controller = Controller(self, HOST, free_port())
        self._controller.start()
        self.port = self._controller.port
        return self

    def __exit__(self, *exception: object) -> None:
        if self._controller:
            self._controller.stop()

    def bodies(self, to: str) -> list[str]:
        return [str(mail.get_body(("plain",)).get_content()).strip() for mail in self.mails if mail["To"] == to]  # type: ignore[union-attr]

    async def handle_RCPT(self, server: SMTP, session: Any, envelope: Any, address: str, options: list[str]) -> str:  # noqa: N802
        if address in self.refused:
            return "550 no such user"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Any, envelope: Any) -> str:  # noqa: N802
        answer = self.next.popleft() if self.next else ""
        if answer and answer != "drop":
            return answer
        mail = message_from_bytes(envelope.content, policy=default)
        assert isinstance(mail, EmailMessage)
        self.mails.append(mail)
        if answer == "drop":
            assert isinstance(server.transport, asyncio.Transport)
            server.transport.abort()
        return "250 OK"
