"""Telegram's Bot API as its documentation describes it, for one bot: updates that stay until they are confirmed, one poller at a time,
messages of at most 4096 UTF-16 units behind their markup, HTML that is checked, groups that become supergroups, people who block the bot.

What it can be told to do wrong: `next[method]`, a queue of faults, each for one call.
"""

import asyncio
import json
import re
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Sequence
from html import unescape
from typing import Any, Self

from aiohttp import web

from tests.emulators.server import JsonObject

TOKEN = "4242:AA-the-token-of-the-tests"
BOT = {"id": 4242, "is_bot": True, "first_name": "Clew", "username": "ClewTestBot", "can_read_all_group_messages": False}
LIMIT = 4096

_TAG = re.compile(r"<(/?)([a-z-]+)((?:\s+[a-z-]+(?:=\"[^\"<>]*\")?)*)\s*>")
_ALONE = frozenset({"pre", "code"})
_TAGS = frozenset({"b", "strong", "i", "em", "u", "ins", "s", "strike", "del", "tg-spoiler", "a", "code", "pre", "blockquote"})
_ENTITY = re.compile(r"&(?!(?:lt|gt|amp|quot|#[0-9]+|#x[0-9a-fA-F]+);)")

Fault = Callable[[web.Request, Callable[[], JsonObject]], Awaitable[web.StreamResponse]]


class No(Exception):
    """A refusal: the HTTP status, the description, and the response parameters."""

    def __init__(self, code: int, why: str, **parameters: int) -> None:
        super().__init__(why)
        self.code, self.parameters = code, parameters

    @property
    def response(self) -> web.Response:
        body = {"ok": False, "error_code": self.code, "description": str(self)}
        return web.json_response(body | ({"parameters": self.parameters} if self.parameters else {}), status=self.code)


def parsed(html: str) -> str:
    """The text of a message in HTML. Raises No for what the API does not parse, and for nesting that it does not document."""
    opened: list[str] = []
    text, at = "", 0
    for match in _TAG.finditer(html):
        text, at = text + _words(html[at : match.start()]), match.end()
        closing, name = bool(match[1]), match[2]
        if name not in _TAGS:
            raise No(400, f'Bad Request: can\'t parse entities: Unsupported start tag "{name}"')
        if closing:
            if not opened or opened.pop() != name:
                raise No(400, f'Bad Request: can\'t parse entities: Unexpected end tag "{name}"')
            continue
        if any(each in _ALONE for each in opened) and not (opened[-1] == "pre" and name == "code"):
            raise No(400, "Bad Request: can't parse entities: an entity in pre or code")
        if (name in _ALONE and opened and opened not in (["pre"], ["blockquote"])) or name in opened:
            raise No(400, f"Bad Request: can't parse entities: {name} in {opened}")
        opened.append(name)
    if opened:
        raise No(400, f"Bad Request: can't parse entities: Can't find end tag corresponding to start tag \"{opened[-1]}\"")
    return unescape(text + _words(html[at:]))


def _words(text: str) -> str:
    if "<" in text or ">" in text or _ENTITY.search(text):
        raise No(400, "Bad Request: can't parse entities: a letter that is not escaped")
    return text


def units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def person(number: int, name: str = "Ada", **more: Any) -> JsonObject:
    return {"id": number, "is_bot": False, "first_name": name, **more}


class TelegramEmulator:
    """Use as an async context manager.

    messages: what the bot has sent, in order, as the API returns it, with `html` as it came and all `versions`.
    drafts, actions: hints, in order.
    polls: offsets of the getUpdates that came. calls: (method, arguments) of all.
    """

    def __init__(self) -> None:
        self.next: defaultdict[str, deque[Fault]] = defaultdict(deque)
        self.messages: list[JsonObject] = []
        self.pressed: list[tuple[str, str | None]] = []
        self.drafts: list[JsonObject] = []
        self.actions: list[JsonObject] = []
        self.polls: list[int | None] = []
        self.calls: list[tuple[str, JsonObject]] = []
        self.blocked: set[int] = set()
        self.moved: dict[int, int] = {}
        self.files: dict[str, bytes] = {}
        self.webhook = ""
        self.url = ""
        self.echoes = False
        self.confirmed = 0
        self._updates: dict[int, JsonObject] = {}
        self._update_id = 870_000_000
        self._message_id: defaultdict[int, int] = defaultdict(lambda: 100)
        self._poller: asyncio.Future[None] | None = None
        self._changed = asyncio.Event()
        self._runner: web.AppRunner | None = None
        self._port = 0

    async def __aenter__(self) -> Self:
        await self.up()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.down()

    async def up(self) -> None:
        app = web.Application(client_max_size=2**24)
        app.router.add_route("*", "/bot{token}/{method}", self._called)
        app.router.add_get("/file/bot{token}/{path:.*}", self._file)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.05, handler_cancellation=True)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self._port, reuse_address=True).start()
        self._port = self._runner.addresses[0][1]
        self.url = f"http://127.0.0.1:{self._port}"

    async def down(self) -> None:
        """Nobody listens at its port until `up`; the updates stay."""
        if self._runner:
            await self._runner.cleanup()
            self._runner = None

    # What people do ----------------------------------------------------------------------------------------------

    def say(self, text: str, user: JsonObject | None = None, chat: int | None = None, **more: Any) -> JsonObject:
        """A message to the bot: in private, or in a group, whose id is negative. Returns it."""
        user = user or person(11)
        chat = user["id"] if chat is None else chat
        message = {
            "message_id": self._number(chat),
            "from": user,
            "chat": _chat(chat),
            "date": 1_800_000_000,
            **({"text": text, "entities": _entities(text)} if text else {}),
            **more,
        }
        self.give({"message": message})
        return message

    def edit(self, message: JsonObject, text: str) -> None:
        self.give({"edited_message": {**message, "text": text, "entities": _entities(text), "edit_date": 1_800_000_009}})

    def react(
        self, message_id: int, *emoji: str, user: JsonObject | None = None, chat: int | None = None, before: Sequence[str] = ()
    ) -> None:
        """Put these emoji on a message in place of those `before`."""
        user = user or person(11)
        chat = user["id"] if chat is None else chat
        old, new = ([{"type": "emoji", "emoji": each} for each in given] for given in (before, emoji))
        reacted = {"chat": _chat(chat), "message_id": message_id, "user": user, "date": 1_800_000_010}
        self.give({"message_reaction": reacted | {"old_reaction": old, "new_reaction": new}})

    def press(self, message: JsonObject, data: str, user: JsonObject | None = None) -> None:
        """Press a button below a message of the bot's."""
        told = {key: value for key, value in message.items() if key not in ("html", "versions")}
        self.give({"callback_query": {"id": f"p{self._update_id}", "from": user or person(11), "message": told, "data": data}})

    def give(self, update: JsonObject) -> int:
        """Queue an update. Returns its id."""
        self._update_id += 1
        self._updates[self._update_id] = {"update_id": self._update_id, **update}
        self._tell()
        return self._update_id

    def jump(self, update_id: int) -> None:
        """After a week of silence ids begin anew anywhere."""
        self._update_id = update_id

    def forget(self) -> None:
        """Nothing waits, and nothing was sent."""
        self._updates.clear()
        self.messages.clear()

    def move(self, old: int, new: int) -> None:
        """A group becomes a supergroup; the message that says so is not among the updates yet."""
        self.moved[old] = new

    def texts(self, chat: int | None = None) -> list[str]:
        return [each["text"] for each in self.messages if chat is None or each["chat"]["id"] == chat]

    async def until(self, condition: Callable[[], bool], deadline: float = 60.0) -> None:
        try:
            async with asyncio.timeout(deadline):
                while not condition():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            last = [(method, str(arguments)[:200]) for method, arguments in self.calls[-8:]]
            raise AssertionError(f"{len(self.messages)} messages, waiting updates {list(self._updates)}, last calls {last}") from None

    # What the bot asks -------------------------------------------------------------------------------------------

    async def _called(self, request: web.Request) -> web.StreamResponse:
        method = request.match_info["method"]
        if request.match_info["token"] != TOKEN:
            return No(401, "Unauthorized").response
        arguments = await request.json() if request.can_read_body else dict(request.query)
        self.calls.append((method, arguments))
        self._tell()

        def carried_out() -> JsonObject:
            handler = getattr(self, f"_{method}", None)
            if handler is None:
                raise No(404, "Not Found")
            return {"ok": True, "result": handler(arguments)}

        try:
            if self.next[method]:
                return await self.next[method].popleft()(request, carried_out)
            if method == "getUpdates":
                return web.json_response({"ok": True, "result": await self._polled(arguments)})
            return web.json_response(carried_out())
        except No as no:
            return no.response
        finally:
            self._tell()

    async def _polled(self, arguments: JsonObject) -> list[JsonObject]:
        self.polls.append(arguments.get("offset"))
        if self.webhook:
            raise No(409, "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first")
        if self._poller and not self._poller.done():
            self._poller.set_result(None)
        self._poller = mine = asyncio.get_running_loop().create_future()
        offset = arguments.get("offset") or 0
        # A bound of the server: an offset far away from its ids is one of another server, and counts as none.
        if offset and offset - self._update_id <= 10:
            for number in [each for each in self._updates if each < offset]:
                del self._updates[number]
                self.confirmed += 1
        ends = asyncio.get_running_loop().time() + float(arguments.get("timeout") or 0)
        while not self._updates and (left := ends - asyncio.get_running_loop().time()) > 0 and not mine.done():
            await asyncio.wait((mine,), timeout=min(left, 0.02))
        if mine.done():
            raise No(409, "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running")
        mine.set_result(None)
        unasked = {"message_reaction", "callback_query"}.difference(arguments.get("allowed_updates", ()))
        self._updates = {number: each for number, each in self._updates.items() if unasked.isdisjoint(each)}
        return [self._updates[number] for number in sorted(self._updates)][: int(arguments.get("limit") or 100)]

    def _getMe(self, arguments: JsonObject) -> JsonObject:  # noqa: N802 - the API's name
        return dict(BOT)

    def _getWebhookInfo(self, arguments: JsonObject) -> JsonObject:  # noqa: N802
        return {"url": self.webhook, "has_custom_certificate": False, "pending_update_count": len(self._updates)}

    def _getFile(self, arguments: JsonObject) -> JsonObject:  # noqa: N802
        if arguments["file_id"] not in self.files:
            raise No(400, "Bad Request: wrong file_id or the file is temporarily unavailable")
        return {"file_id": arguments["file_id"], "file_path": f"documents/{arguments['file_id']}"}

    async def _file(self, request: web.Request) -> web.StreamResponse:
        return web.Response(body=self.files[request.match_info["path"].removeprefix("documents/")])

    def _sendChatAction(self, arguments: JsonObject) -> bool:  # noqa: N802
        self._reachable(arguments)
        self.actions.append(arguments)
        return True

    def _sendMessageDraft(self, arguments: JsonObject) -> bool:  # noqa: N802
        if self._reachable(arguments) < 0 or not arguments["draft_id"]:
            raise No(400, "Bad Request: drafts are for private chats")
        self._text(arguments, least=0)
        self.drafts.append(arguments)
        return True

    def _sendMessage(self, arguments: JsonObject) -> JsonObject:  # noqa: N802
        chat = self._reachable(arguments)
        text = self._text(arguments, least=1)
        message: JsonObject = {
            "message_id": self._number(chat),
            "from": {key: BOT[key] for key in ("id", "is_bot", "first_name", "username")},
            "chat": _chat(chat),
            "date": 1_800_000_001,
            "text": text,
        }
        if "message_thread_id" in arguments:
            message |= {"message_thread_id": arguments["message_thread_id"], "is_topic_message": True}
        if "reply_markup" in arguments:
            message["reply_markup"] = arguments["reply_markup"]
        if reply := arguments.get("reply_parameters"):
            message["reply_to_message"] = {"message_id": reply["message_id"]}
        self.messages.append({**message, "html": arguments["text"] if arguments.get("parse_mode") else None, "versions": [text]})
        if self.echoes:
            self.give({"message": message})
        return message

    def _editMessageText(self, arguments: JsonObject) -> JsonObject:  # noqa: N802
        message = self._standing(arguments)
        text = self._text(arguments, least=1)
        if text == message["text"]:
            raise No(400, "Bad Request: message is not modified: specified new message content and reply markup are exactly the same")
        message |= {"text": text, "html": arguments["text"] if arguments.get("parse_mode") else None}
        message["reply_markup"] = arguments.get("reply_markup")
        message["versions"].append(text)
        return {key: value for key, value in message.items() if key not in ("html", "versions")}

    def _editMessageReplyMarkup(self, arguments: JsonObject) -> JsonObject:  # noqa: N802
        message = self._standing(arguments)
        message["reply_markup"] = arguments.get("reply_markup")
        return {key: value for key, value in message.items() if key not in ("html", "versions")}

    def _answerCallbackQuery(self, arguments: JsonObject) -> bool:  # noqa: N802
        self.pressed.append((arguments["callback_query_id"], arguments.get("text")))
        return True

    def _deleteMessage(self, arguments: JsonObject) -> bool:  # noqa: N802
        self.messages.remove(self._standing(arguments, "delete"))
        return True

    def _standing(self, arguments: JsonObject, to: str = "edit") -> JsonObject:
        """A message of the bot that is still there."""
        chat, number = self._reachable(arguments), int(arguments["message_id"])
        found = [each for each in self.messages if (each["chat"]["id"], each["message_id"]) == (chat, number)]
        if not found:
            raise No(400, f"Bad Request: message to {to} not found")
        return found[0]

    def _reachable(self, arguments: JsonObject) -> int:
        chat = int(arguments["chat_id"])
        if chat in self.moved:
            raise No(400, "Bad Request: group chat was upgraded to a supergroup chat", migrate_to_chat_id=self.moved[chat])
        if chat in self.blocked:
            raise No(403, "Forbidden: bot was blocked by the user")
        return chat

    def _text(self, arguments: JsonObject, least: int) -> str:
        """The text behind its markup, trimmed as the API does it."""
        text = parsed(arguments["text"]) if arguments.get("parse_mode") == "HTML" else arguments["text"]
        text.encode()
        if units(text) > LIMIT:
            raise No(400, "Bad Request: message is too long")
        if len(text.strip()) < least:
            raise No(400, "Bad Request: message text is empty")
        return str(text).strip()

    def _number(self, chat: int) -> int:
        self._message_id[chat] += 1
        return self._message_id[chat]

    def _tell(self) -> None:
        self._changed.set()


def _chat(chat: int) -> JsonObject:
    kind = "private" if chat > 0 else "supergroup" if chat < -1_000_000 else "group"
    return {"id": chat, "type": kind}


def _entities(text: str) -> list[JsonObject]:
    """Mentions and commands, with offsets in UTF-16 units."""
    kinds = (("mention", r"(?<!\w)@[A-Za-z0-9_]{4,32}"), ("bot_command", r"(?<!\S)/[A-Za-z0-9_]+(?:@[A-Za-z0-9_]+)?"))
    return [
        {"type": kind, "offset": units(text[: match.start()]), "length": units(match[0])}
        for kind, pattern in kinds
        for match in re.finditer(pattern, text)
    ]


# Faults ----------------------------------------------------------------------------------------------------------


def refuses(code: int, why: str, **parameters: int) -> Fault:
    """Answers with an error of the API and does nothing."""

    async def behave(request: web.Request, carry_out: Callable[[], JsonObject]) -> web.StreamResponse:
        return No(code, why, **parameters).response

    return behave


def too_many(seconds: int) -> Fault:
    return refuses(429, f"Too Many Requests: retry after {seconds}", retry_after=seconds)


def answers(status: int, body: str = "<html>Bad Gateway</html>") -> Fault:
    """What something in front of the API says."""

    async def behave(request: web.Request, carry_out: Callable[[], JsonObject]) -> web.StreamResponse:
        return web.Response(status=status, text=body, content_type="text/html")

    return behave


async def drops(request: web.Request, carry_out: Callable[[], JsonObject]) -> web.StreamResponse:
    """Breaks the connection, nothing done."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


async def does_and_drops(request: web.Request, carry_out: Callable[[], JsonObject]) -> web.StreamResponse:
    """Does what it was asked, and breaks the connection before the answer."""
    carry_out()
    return await drops(request, carry_out)


async def hangs(request: web.Request, carry_out: Callable[[], JsonObject]) -> web.StreamResponse:
    await asyncio.Event().wait()
    return web.Response()


def after(gate: asyncio.Event) -> Fault:
    """Does it once `gate` is open."""

    async def behave(request: web.Request, carry_out: Callable[[], JsonObject]) -> web.StreamResponse:
        await gate.wait()
        return web.Response(text=json.dumps(carry_out()), content_type="application/json")

    return behave
