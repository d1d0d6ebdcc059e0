"""A platform whose messages can be edited and deleted, with rates that it insists on."""

import asyncio
from dataclasses import dataclass, field

from clew.transport import Address, Capabilities, Delivery, Gone, Preview, PreviewRef, Retry, Sent, Typing
from tests.integration.engine import Desk


@dataclass
class Post:
    """A message on the board, and each text that it has had."""

    chat: str
    versions: list[str]
    id: str = ""
    deleted: bool = False

    @property
    def text(self) -> str:
        return self.versions[-1]


@dataclass
class Faults:
    """What goes wrong with the next previews of a chat. gate: they wait in front of it, done already where `late`."""

    raised: list[Exception] = field(default_factory=list)
    gate: asyncio.Event | None = None
    late: bool = False


class Board(Desk):
    """posts: in order. calls: what was asked of it, in order. hurried: calls that came before a wait was over, or closer than its rate.

    waits: seconds that it asks for from these calls (counted from 1) on.
    """

    def __init__(self, capabilities: Capabilities = Capabilities(stream="edit", edit_every_s=0.01)) -> None:  # noqa: B008 - frozen
        super().__init__(capabilities)
        self.posts: list[Post] = []
        self.calls: list[str] = []
        self.hurried: list[str] = []
        self.waits: dict[int, Retry] = {}
        self.previews: dict[str, Faults] = {}
        self._until: dict[str, float] = {}
        self._last = 0.0

    def texts(self, chat: str = "ada") -> list[str]:
        return [post.text for post in self.posts if post.chat == chat and not post.deleted]

    async def hint(self, to: Address, event: Typing | Preview) -> PreviewRef | None:
        if isinstance(event, Typing):
            return await super().hint(to, event)
        faults = self.previews.get(to.chat, Faults())
        if faults.gate and not faults.late:
            await self._waited(faults.gate)
        await self._paced(f"{'edit' if event.ref else 'post'} {to.chat}", to.chat)
        if faults.raised and not faults.late:
            raise faults.raised.pop(0)
        ref = self._edited(event.ref, event.text) if event.ref else self._posted(to.chat, event.text, event.id)
        await self._tell()
        if faults.gate and faults.late:
            await self._waited(faults.gate)
        if faults.raised and faults.late:
            raise faults.raised.pop(0)
        return ref

    async def send(self, delivery: Delivery) -> Sent:
        await self._paced(f"send {delivery.address.chat}", delivery.address.chat)
        return await super().send(delivery) if not delivery.preview_ref and not delivery.parts else await self._said(delivery)

    async def _said(self, delivery: Delivery) -> Sent:
        chat = delivery.address.chat
        if self.faults.get(str(delivery.address)):
            raise self.faults[str(delivery.address)].pop(0)
        if not delivery.parts:
            self.posts[int(delivery.preview_ref or 0)].deleted = True
            ref = ""
        elif delivery.preview_ref and delivery.sent == 0:
            ref = self._edited(delivery.preview_ref, delivery.parts[0].text)
        else:
            ref = self._posted(chat, delivery.parts[delivery.sent].text, "")
        if delivery.sent + 1 >= len(delivery.parts):
            self.sent.append(delivery)
        await self._tell()
        return Sent(ref, delivery.sent + 1)

    def _posted(self, chat: str, text: str, identifier: str) -> str:
        known = [number for number, post in enumerate(self.posts) if identifier and post.id == identifier]
        if known and self.capabilities.idempotent_send:
            return str(known[0])
        self.posts.append(Post(chat, [text], identifier))
        return str(len(self.posts) - 1)

    def _edited(self, ref: str, text: str) -> str:
        post = self.posts[int(ref)]
        if post.deleted:
            raise Gone("it was deleted")
        post.versions.append(text)
        return ref

    async def _waited(self, gate: asyncio.Event) -> None:
        self.calls.append("waiting")
        await self._tell()
        await gate.wait()

    async def _paced(self, call: str, chat: str) -> None:
        """Raises Retry where it asks to wait."""
        self.calls.append(call)
        now = asyncio.get_running_loop().time()
        apart = 1 / self.capabilities.per_second if self.capabilities.per_second else 0.0
        if now < max(self._until.get(chat, 0.0), self._until.get("", 0.0)) or now - self._last < apart * 0.9:
            self.hurried.append(call)
        self._last = now
        if asked := self.waits.pop(len(self.calls), None):
            self._until["" if asked.everywhere else chat] = now + (asked.after or 0.0)
            await self._tell()
            raise asked
