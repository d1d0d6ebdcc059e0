"""Telegram's Bot API as its documentation describes it, for one bot: updates that stay until they are confirmed, one poller at a time,
messages of at most 4096 UTF-16 units behind their markup, HTML that is checked, groups that become supergroups, people who block the bot.

What it can be told to do wrong: `next[method]`, a queue of faults, each for one call.
"""

import asyncio
import re
import time
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from html import unescape
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from aiohttp import web

from tests.emulators.listening import Fault, Listening
from tests.emulators.server import JsonObject

TOKEN = "4242:AA-the-token-of-the-tests"
BOT = {"id": 4242, "is_bot": True, "first_name": "Clew", "username": "ClewTestBot", "can_read_all_group_messages": False}
LIMIT = 4096

_TAG = re.compile(r"<(/?)([a-z-]+)((?:\s+[a-z-]+(?:=\"[^\"<>]*\")?)*)\s*>")
_ALONE = frozenset({"pre", "code"})
_TAGS = frozenset({"b", "strong", "i", "em", "u", "ins", "s", "strike", "del", "tg-spoiler", "a", "code", "pre", "blockquote"})
_ENTITY = re.compile(r"&(?!(?:lt|gt|amp|quot|#[0-9]+|#x[0-9a-fA-F]+);)")

AGAIN_S = 0.02
"""Seconds until an update is sent to the webhook again that was not taken. Telegram waits longer and longer."""


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


class TelegramEmulator(Listening):
    """Use as an async context manager.

    messages: what the bot has sent, in order, as the API returns it, with `html` as it came and all `versions`.
    drafts, actions: hints, in order.
    polls: offsets of the getUpdates that came. calls: (method, arguments) of all. webhook: where updates are sent, which `reaches` says
    how to get to. taken: statuses of the requests to the webhook, in order, 0 for one without an answer. unheard: how many answers of the
    webhook are lost on their way. local: a Bot API server of one's own, which calls any address.
    """

    def __init__(self) -> None:
        super().__init__()
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
        self.reaches = ""
        self.hook: JsonObject = {}
        self.taken: list[int] = []
        self.unheard = 0
        self.local = False
        self.echoes = False
        self.confirmed = 0
        self._updates: dict[int, JsonObject] = {}
        self._update_id = 870_000_000
        self._message_id: defaultdict[int, int] = defaultdict(lambda: 100)
        self._poller: asyncio.Future[None] | None = None
        self._failed: tuple[int, str] | None = None
        self._due = asyncio.Event()
        self._sending: asyncio.Task[None] | None = None

    def _routes(self) -> Sequence[web.RouteDef]:
        return [web.route("*", "/bot{token}/{method}", self._called), web.get("/file/bot{token}/{path:.*}", self._file)]

    async def up(self) -> None:
        await super().up()
        self._sending = asyncio.create_task(self._send_updates())

    async def down(self) -> None:
        if self._sending:
            self._sending.cancel()
            await asyncio.gather(self._sending, return_exceptions=True)
        await super().down()

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
            await super().until(condition, deadline)
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
        allowed = arguments.get("allowed_updates", ())
        self._updates = {number: each for number, each in self._updates.items() if not self._is_unasked(each, allowed)}
        return [self._updates[number] for number in sorted(self._updates)][: int(arguments.get("limit") or 100)]

    def _getMe(self, arguments: JsonObject) -> JsonObject:  # noqa: N802 - the API's name
        return dict(BOT)

    def _getWebhookInfo(self, arguments: JsonObject) -> JsonObject:  # noqa: N802
        info = {"url": self.webhook, "has_custom_certificate": False, "pending_update_count": len(self._updates)}
        return info | ({"last_error_date": self._failed[0], "last_error_message": self._failed[1]} if self._failed else {})

    def _setWebhook(self, arguments: JsonObject) -> bool:  # noqa: N802
        place = urlsplit(arguments["url"])
        if place.scheme != "https" and not self.local:
            raise No(400, "Bad Request: bad webhook: An HTTPS URL must be provided for webhook")
        if not self.local and (place.port or 443) not in (443, 80, 88, 8443):
            raise No(400, "Bad Request: bad webhook: Webhook can be set up only on ports 80, 88, 443 or 8443")
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,256}", arguments.get("secret_token", "-")):
            raise No(400, "Bad Request: secret token contains unallowed characters")
        if not 1 <= arguments.get("max_connections", 40) <= 100:
            raise No(400, "Bad Request: max_connections is out of range")
        self.webhook, self.hook, self._failed = arguments["url"], arguments, None
        return True

    def _deleteWebhook(self, arguments: JsonObject) -> bool:  # noqa: N802
        self.webhook, self.hook = "", {}
        if arguments.get("drop_pending_updates"):
            self._updates.clear()
        return True

    async def _send_updates(self) -> None:
        """To the webhook, one after the other, each until it is taken."""
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=30)) as http:
            while True:
                self._due.clear()
                if not (self.hook and self.reaches and self._updates):
                    await self._due.wait()
                    continue
                number = min(self._updates)
                if self._is_unasked(self._updates[number], self.hook["allowed_updates"]):
                    del self._updates[number]
                elif await self._is_taken(http, self._updates[number]):
                    self._updates.pop(number, None)
                    self.confirmed += 1
                else:
                    await asyncio.sleep(AGAIN_S)
                self._tell()

    async def _is_taken(self, http: aiohttp.ClientSession, update: JsonObject) -> bool:
        url = self.reaches + urlsplit(self.webhook).path
        headers = {"X-Telegram-Bot-Api-Secret-Token": self.hook["secret_token"]} if "secret_token" in self.hook else {}
        try:
            async with http.post(url, json=update, headers=headers) as response:
                status = response.status
        except aiohttp.ClientError:
            status = 0
        if status and self.unheard:
            self.unheard, status = self.unheard - 1, 0
        self.taken.append(status)
        if status == 0:
            self._failed = (int(time.time()) + 1, "Connection refused")
        elif status >= 300:
            self._failed = (int(time.time()) + 1, f"Wrong response from the webhook: {status}")
        return 200 <= status < 300

    @staticmethod
    def _is_unasked(update: JsonObject, allowed: Sequence[str]) -> bool:
        """Of some kinds bots are told nothing unless they ask for it."""
        return not {"message_reaction", "callback_query"}.difference(allowed).isdisjoint(update)

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
        self._due.set()


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
