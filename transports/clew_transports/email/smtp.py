"""Sending a mail by SMTP. Blocking: to be called in a thread."""

import contextlib
import smtplib
import ssl
from dataclasses import dataclass
from email.message import EmailMessage
from email.policy import SMTP, SMTPUTF8
from typing import Literal

from clew.transport import Refused, Retry, Unknown

CONNECT_S = 30.0
"""Seconds for a connection and for each answer."""

Tls = Literal["tls", "starttls", "none"]


@dataclass(frozen=True, slots=True)
class Server:
    """Where mails go out."""

    host: str
    port: int
    tls: Tls
    username: str
    password: str


def send(server: Server, mail: EmailMessage, sender: str, receiver: str) -> None:
    """Raises Retry, Refused or Unknown."""
    try:
        smtp = _connected(server)
    except (OSError, smtplib.SMTPException) as error:
        raise Retry(_why(error)) from None
    try:
        _handed_over(smtp, mail, sender, receiver)
    finally:
        with contextlib.suppress(OSError, smtplib.SMTPException):
            smtp.close()


def check(server: Server) -> str:
    """Why nothing can be sent; empty where it can."""
    try:
        smtp = _connected(server)
    except (OSError, smtplib.SMTPException) as error:
        return _why(error)
    smtp.close()
    return ""


def _connected(server: Server) -> smtplib.SMTP:
    if server.tls == "tls":
        smtp: smtplib.SMTP = smtplib.SMTP_SSL(server.host, server.port, timeout=CONNECT_S, context=ssl.create_default_context())
    else:
        smtp = smtplib.SMTP(server.host, server.port, timeout=CONNECT_S)
    try:
        smtp.ehlo_or_helo_if_needed()
        if server.tls == "starttls":
            smtp.starttls(context=ssl.create_default_context())
            smtp.ehlo()
        if server.username:
            smtp.login(server.username, server.password)
    except BaseException:
        smtp.close()
        raise
    return smtp


def _handed_over(smtp: smtplib.SMTP, mail: EmailMessage, sender: str, receiver: str) -> None:
    try:
        utf8 = smtp.has_extn("smtputf8")
        for code, said in (smtp.mail(sender, ["SMTPUTF8"] if utf8 and not receiver.isascii() else []), smtp.rcpt(receiver)):
            _complain(code, said)
        raw = mail.as_bytes(policy=SMTPUTF8 if utf8 and not receiver.isascii() else SMTP)
    except (OSError, smtplib.SMTPException) as error:
        raise Retry(_why(error)) from None
    try:
        code, said = smtp.data(raw)
    except smtplib.SMTPDataError as error:
        code, said = error.smtp_code, error.smtp_error if isinstance(error.smtp_error, bytes) else error.smtp_error.encode()
    except (OSError, smtplib.SMTPException) as error:
        raise Unknown(_why(error)) from None
    _complain(code, said)


def _complain(code: int, said: bytes) -> None:
    """Raises Retry for what a server takes later (4xx), Refused for what it never takes (5xx)."""
    if code >= 400:
        reason = f"the mail server answered {code}: {said.decode('utf-8', 'replace')[:200]}"
        raise Retry(reason) if code < 500 else Refused(reason)


def _why(error: Exception) -> str:
    if isinstance(error, smtplib.SMTPAuthenticationError):
        return "the mail server does not know the account or its password"
    return f"no connection to the mail server ({getattr(error, 'strerror', None) or str(error)[:200] or type(error).__name__})"
