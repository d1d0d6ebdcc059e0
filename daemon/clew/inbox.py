"""What arrives: who may, what it is, and the commit that comes before every acknowledgement."""

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeVar

import structlog

from clew.access import LINKED
from clew.bus import Bus, Replied
from clew.clock import Time
from clew.commands import CONTROL
from clew.config import Limits
from clew.context.consent import QUESTION_CODE, Answer, read_answer, read_reaction
from clew.context.loops import IN_A_ROW, REST
from clew.context.sniffing import UNKNOWN
from clew.context.text import clean, first_word
from clew.metrics import Metrics
from clew.store import AccessRequest, Asked, Given, Offer, Sender, Verdict, links
from clew.store.sql import SqlStore
from clew.transport import Address, Attachment, Cursor, Inbound, Receipt

log = structlog.get_logger()

T = TypeVar("T", Inbound, Address)
Unknown = Literal["deny", "pair", "allow"]

OPEN_REQUESTS = 100
"""Access requests that may be open at once; strangers beyond it get no answer."""

MOST_FILES, LONGEST_NAME = 32, 200
LARGEST = 2**62
"""Bytes; what is told of a size can be anything."""
LAST_MOMENT = 253_402_300_800.0
"""Seconds since the epoch at which the year 10000 begins, where the calendar ends."""
"""Files of one message, and characters of a file's name."""
WAITING_LINES = 500
"""Lines of a group that may wait for a turn of it to end, where they are kept; those beyond it are not."""
STRANGER = "unknown sender"
LOOPS, RESTS = "its sender answers as no person does", "its sender is left alone for a while"
LOOPING = (
    "{} at {} answers me within moments or in my own words, {} times in a row. That looks like a bot, or like my own messages coming back."
    " I do not answer there for {} minutes, then try again. If it is a bot, take it out of the chat or out of `people`."
)
UNASKED = "it answers no question"
"""Why a reaction is let pass."""
_TYPE = re.compile(r"[a-z0-9.+-]{1,60}/[a-z0-9.+-]{1,100}", re.IGNORECASE)

Report = Callable[[bool, str], None]
Tell = Callable[[AccessRequest], Awaitable[None]]
"""Tells the owner that somebody asks to be let in."""
Warn = Callable[[str, str, Address | None], Awaitable[None]]
"""Tells the owner something once: (key, text, where it was said already)."""


def access_line(unknown: Unknown) -> str:
    """What becomes of unknown senders, in words: said at start, and true."""
    return {
        "deny": "unknown senders are ignored",
        "pair": "unknown senders get a code once; `clew access approve CODE` lets them in",
        "allow": "unknown senders are let in as guests",
    }[unknown]


def decider(unknown: Unknown, limits: Limits, code: Callable[[], str]) -> Callable[[Inbound, Sender], Verdict]:
    """The one policy: a pure function of an arrival and what is known of its sender (but for `code`, which makes pairing codes)."""

    def decide(item: Inbound, sender: Sender) -> Verdict:
        if item.kind == "reaction":
            return _reaction(item, sender)
        if sender.offer is not None:
            return _offered(item, sender, sender.offer, unknown)
        if item.kind != "message":
            return _aside(item, sender, unknown, limits)
        if sender.person is None and (unknown != "allow" or sender.request == "denied"):
            return _stranger(sender, unknown, code)
        if sender.loop and first_word(item.text)[0] not in CONTROL:
            return Verdict(refused=LOOPS if sender.loop == "begins" else RESTS)
        if item.refused:
            return _refusal(item.refused, "changed")
        return _known(item, sender, limits)

    return decide


def _stranger(sender: Sender, unknown: Unknown, code: Callable[[], str]) -> Verdict:
    if unknown == "pair" and sender.request is None and sender.open_requests < OPEN_REQUESTS:
        pairing = code()
        return Verdict(
            refused=STRANGER,
            pair=pairing,
            reply=f"I do not know you yet. Give this code to whoever runs me: {pairing}",
        )
    return Verdict(refused=STRANGER)


def _offered(item: Inbound, sender: Sender, offer: Offer, unknown: Unknown) -> Verdict:
    """What becomes of a link code. Whatever is wrong with its use closes it, and a stranger hears no more than of any other message."""
    again = "It is void now. For another one: /link."
    if not item.direct:
        seen = f"{item.identity} sent your code in {item.address}, where others read it. {again}"
        if sender.person is None:
            return Verdict(refused=STRANGER, spent=offer, confirm=seen)
        return Verdict(kind="control", spent=offer, reply=f"That code stood where others read it. {again}")
    if sender.person is not None:
        said = f"I know you here already, so that code makes nothing of it. {again} Send it from the account that I do not know."
        return Verdict(kind="control", spent=offer, reply=said)
    if unknown == "deny" or sender.request == "denied":
        return Verdict(refused=STRANGER)
    if sender.past:
        told = f"{item.identity} sent your code, and somebody else spoke with me from there before. {again}"
        hint = f" If it is yours, the owner can say so: clew access link {offer.person} {item.identity}"
        return Verdict(refused=STRANGER, spent=offer, confirm=told + hint)
    confirm = f"{item.identity} is you too now. If that was not you: /unlink {item.identity}"
    return Verdict(kind="control", spent=offer, links=True, reply=LINKED.format(offer.called), confirm=confirm)


def _aside(item: Inbound, sender: Sender, unknown: Unknown, limits: Limits) -> Verdict:
    """What nobody waits for an answer to: it is taken or let pass, without a word."""
    if item.kind == "delete":
        return Verdict(kind="delete")
    if sender.person is None and (unknown != "allow" or sender.request == "denied"):
        return Verdict(refused=STRANGER)
    if why := item.refused or _untakable(item, limits):
        return Verdict(refused=why)
    if item.kind == "edit":
        return Verdict(kind="edit")
    return Verdict(refused="too many lines wait") if sender.lines >= WAITING_LINES else Verdict(kind="notice")


def _untakable(item: Inbound, limits: Limits) -> str:
    """Why something cannot be taken as it is; empty where it can."""
    size = len(item.text.encode("utf-8"))
    if size > limits.message_bytes:
        return f"it has {size:,} bytes, and {limits.message_bytes:,} are the most I take"
    if not item.text.strip() and not item.attachments:
        return "it is empty"
    if len(item.attachments) > MOST_FILES:
        return f"it has {len(item.attachments)} files, and {MOST_FILES} are the most I take"
    if too_big := next((each for each in item.attachments if each.size > limits.attachment_bytes), None):
        return f"its attachment has {too_big.size:,} bytes, and {limits.attachment_bytes:,} are the most I take"
    return ""


def _known(item: Inbound, sender: Sender, limits: Limits) -> Verdict:
    if why := _untakable(item, limits):
        return _refusal(why, "changed")
    if first_word(item.text)[0] in CONTROL:
        return _stop(sender)
    if answered := _answer(item, sender):
        return answered
    if sender.queued >= limits.queued_per_chat:
        waiting = "one message" if sender.queued == 1 else f"{sender.queued} messages"
        return _refusal(f"{waiting} of this chat must be answered first; send it again then", "later")
    passed = tuple(Given(each.id, each.turn, yes=False, how="passed") for each in sender.asked if each.open)
    return Verdict(kind="command" if is_command(item.text) else "message", given=passed)


def _answer(item: Inbound, sender: Sender) -> Verdict | None:
    """A yes or no to a question, where one is asked; else None: it is a message like any other."""
    said = read_answer(item.text) if sender.asked and not item.attachments else None
    if said is None:
        return None
    if said.code:
        meant = [each for each in sender.asked if each.id[:QUESTION_CODE] == said.code]
    else:
        opened = [each for each in sender.asked if each.open]
        meant = [each for each in sender.asked if item.reply_to in each.refs] or opened
    if not meant:
        return None
    if len(meant) > 1:
        codes = " ".join(each.id[:QUESTION_CODE] for each in meant)
        return Verdict(
            kind="answer", reply=f"{len(meant)} questions are open here. Put the code of the one that you mean behind it: {codes}"
        )
    return _given(meant[0], said)


def _reaction(item: Inbound, sender: Sender) -> Verdict:
    """What an emoji on a message, or a button below it, comes to: the answer to the question in it, or nothing."""
    said = read_reaction(item.text)
    if said is None or not sender.asked:
        return Verdict(refused=UNASKED)
    asked = sender.asked[0]
    return Verdict(kind="answer", given=(Given(asked.id, asked.turn, yes=said != "no", always=said == "always"),))


def _given(asked: Asked, said: Answer) -> Verdict:
    if not asked.open:
        return Verdict(kind="answer", reply="That question is closed already.")
    yes = said.kind != "no"
    given = Given(asked.id, asked.turn, yes, always=said.kind == "always", joins=asked.joins)
    words = f"Good. {', '.join(asked.tools)} may run." if yes else f"Good. {', '.join(asked.tools)} will not run."
    return Verdict(kind="answer", given=(given,), reply="" if asked.joins else words)


def _refusal(reason: str, again: Literal["changed", "later"]) -> Verdict:
    return Verdict(refused=reason, again=again, reply=_sorry(reason))


def _sorry(reason: str) -> str:
    return f"I could not take that message: {reason.rstrip('.')}."


def _stop(sender: Sender) -> Verdict:
    if sender.running is None:
        return Verdict(kind="control", reply="There is nothing to stop.")
    return Verdict(kind="control", reply="Stopping.", stop=sender.running)


def is_command(text: str) -> bool:
    """A line that begins with one slash and a letter; paths such as /etc/hosts and comments are not commands."""
    word, _ = first_word(text)
    return len(word) > 1 and word[0] == "/" and word[1:].replace("_", "").isalpha()


def pairing_code() -> str:
    """8 characters of 32: 40 random bits."""
    return links.drawn()


class Door:
    """The host of one transport: what an adapter may ask of clew."""

    def __init__(
        self,
        transport: str,
        store: SqlStore,
        decide: Callable[[Inbound, Sender], Verdict],
        time: Time,
        metrics: Metrics,
        stop: Callable[[str], None],
        report: Report,
        bus: Bus,
        instant: bool,
        folder: Path,
        warn: Warn | None = None,
        public_url: str | None = None,
        asked: Tell | None = None,
    ) -> None:
        self._transport = transport
        self._public_url = public_url
        self._warn = warn
        self._asked = asked
        self._bus = bus
        self._instant = instant
        self._folder = folder
        self._store = store
        self._decide = decide
        self._time = time
        self._metrics = metrics
        self._stop = stop
        self._report = report

    async def accept(self, batch: Sequence[Inbound], cursor: Cursor | None = None) -> list[Receipt]:
        items = [_cleaned(item) for item in batch]
        receipts, verdicts = await self._store.accept(self._transport, items, cursor, self._time.wall(), self._decide, self._instant)
        for item, receipt, verdict in zip(items, receipts, verdicts, strict=True):
            self._tell(item, receipt, verdict)
            if verdict.refused == LOOPS and self._warn is not None:
                said = LOOPING.format(item.identity, item.address, IN_A_ROW, round(REST / 60))
                await self._warn(f"loop/{item.address}/{item.sender}", said, None)
            if verdict.pair and self._asked is not None:
                request = AccessRequest(item.identity, str(item.address), item.sender_name, verdict.pair, "open", 1, self._time.wall())
                await self._asked(request)
            if verdict.spent is not None and verdict.confirm:
                self._bus.publish(Address.parse(verdict.spent.address), Replied(""))
            if self._instant:
                self._bus.publish(item.address, Replied(""))
        return receipts

    async def cursor(self) -> str | None:
        return await self._store.cursor(self._transport)

    def folder(self) -> Path:
        own = self._folder / self._transport
        for each in (self._folder, own):
            each.mkdir(mode=0o700, exist_ok=True)
        return own

    async def known(self, sender: str) -> bool:
        return await self._store.is_known(f"{self._transport}:{sender}")

    def webhook(self) -> str:
        return f"{self._public_url.rstrip('/')}/webhooks/{self._transport}/" if self._public_url else ""

    def report(self, up: bool, detail: str = "") -> None:
        self._report(up, detail)

    def _tell(self, item: Inbound, receipt: Receipt, verdict: Verdict) -> None:
        if receipt.reason == UNASKED or (receipt.status == "refused" and item.kind != "message"):
            return
        about = {"transport": self._transport, "address": str(item.address)}
        if receipt.reason in (LOOPS, RESTS):
            log.warning("inbox.parked", identity=item.identity, reason=receipt.reason, **about)
        elif receipt.status == "duplicate":
            log.info("inbox.duplicate", id=item.external_id, **about)
        elif verdict.links:
            log.info("access.paired", identity=item.identity, how="linked", person=verdict.spent.person if verdict.spent else "", **about)
        elif verdict.pair or receipt.reason == STRANGER:
            log.warning("access.denied", identity=item.identity, pairing=bool(verdict.pair), **about)
        elif receipt.status == "refused":
            log.warning("inbox.rejected", reason=receipt.reason, **about)
        else:
            log.info("inbox.accepted", kind=verdict.kind, **about)
            self._metrics.messages.labels(self._transport, "in").inc()
        if receipt.status != "stored":
            return
        for given in verdict.given:
            answer = "always" if given.always else "yes" if given.yes else "no"
            log.info("approval.answered", answer=answer, how=given.how, turn=given.turn, **about)
        if verdict.stop:
            self._stop(verdict.stop)


def _cleaned(item: Inbound) -> Inbound:
    """Control characters and lone surrogates are taken out at the door, of every word that is stored; times are times."""
    address = item.address
    return _with(
        item,
        text=clean(item.text),
        sender=_exact(item.sender),
        sender_name=" ".join(clean(item.sender_name).split())[:200],
        address=_with(address, chat=_exact(address.chat), thread=address.thread and _exact(address.thread)),
        client_id=clean(item.client_id),
        external_id=clean(item.external_id),
        edits=clean(item.edits),
        reply_to=item.reply_to and clean(item.reply_to),
        refused=clean(item.refused),
        sent_at=_time(item.sent_at),
        expires_at=_time(item.expires_at),
        attachments=tuple(map(named, item.attachments)),
        context={clean(key): clean(value) for key, value in item.context.items()},
    )


def _with(one: T, **values: Any) -> T:
    """`one` with these values; itself where it has them, as nearly always."""
    new = {name: value for name, value in values.items() if getattr(one, name) != value}
    return replace(one, **new) if new else one


def _exact(name: str) -> str:
    """A name by which somebody or a place is known. One that has to be cleaned is marked, so that it is nobody else's."""
    cleaned = clean(name)
    return cleaned if cleaned == name else f"{cleaned}\ufffd"


def _time(stated: float | None) -> float | None:
    """Seconds since the epoch; None for what is no moment of the calendar."""
    return stated if stated is not None and 0.0 <= stated < LAST_MOMENT else None


def named(file: Attachment) -> Attachment:
    """A file by a name in one line, without a path, and a type that is one."""
    name = " ".join(clean(file.name).replace("\\", "/").rpartition("/")[2].split())[:LONGEST_NAME]
    mime = file.mime.partition(";")[0].strip().lower()
    return replace(
        file,
        name=name or "file",
        mime=mime if _TYPE.fullmatch(mime) else UNKNOWN,
        size=min(max(file.size, 0), LARGEST),
        ref=clean(file.ref),
    )
