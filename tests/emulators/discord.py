"""Discord as its documentation describes it, for one bot: the HTTP API with its buckets, and a gateway. Private chats, a server with a
channel and a thread, messages of at most 2,000 characters, nonces, replies, who would be notified.

What it can be told to do wrong: `next[call]`, a queue of faults (`discord_faults`), each for one call such as "POST messages"; and the
gateway's own ways to break a connection (`gateway`).
"""

import re
import time
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from aiohttp import web

from tests.emulators.discord_gateway import GatewayEmulator
from tests.emulators.listening import Fault, Listening
from tests.emulators.server import JsonObject

TOKEN = "MTIzNDU2Nzg5MDEy.Gabcde.the-token-of-the-tests-0123456789"
BOT: JsonObject = {"id": "424242", "username": "Clew", "discriminator": "0", "bot": True}
SERVER, CHANNEL, THREAD, OTHER_CHANNEL, ROLE = "9000", "9100", "9200", "9300", "9500"
"""The role is the one that Discord made for the bot."""
LIMIT = 2000
EPOCH_MS = 1_420_070_400_000
EVERYONE = re.compile(r"@(?:everyone|here)|<@&?!?[0-9]+>")


class No(Exception):
    """A refusal: the HTTP status, Discord's code, the message."""

    def __init__(self, status: int, code: int, why: str) -> None:
        super().__init__(why)
        self.status, self.code = status, code

    @property
    def response(self) -> web.Response:
        return web.json_response({"message": str(self), "code": self.code}, status=self.status)


def person(number: int, name: str = "ada", **more: Any) -> JsonObject:
    return {"id": str(number), "username": name, "discriminator": "0", **more}


def private(number: int | str) -> str:
    """The private chat with the person of this id."""
    return str(5_000_000 + int(number))


class DiscordEmulator(Listening):
    """Use as an async context manager.

    messages: what was said, by channel. sent: what the bot has sent, in order, as it came. typing: channels, in order. pinged: texts of
    the bot that would have notified people. pressed: how presses of buttons were answered, in order, empty where the message was changed.
    calls: (call, body or query) of all. limits: by call, how often in how many seconds; refusals: how often one of them was broken.
    no_history: channels whose history the bot may not read. closed: those that it may not write to.
    """

    def __init__(self) -> None:
        super().__init__()
        self.next: defaultdict[str, deque[Fault]] = defaultdict(deque)
        self.messages: defaultdict[str, list[JsonObject]] = defaultdict(list)
        self.sent: list[JsonObject] = []
        self.typing: list[str] = []
        self.pinged: list[str] = []
        self.pressed: list[str] = []
        self.calls: list[tuple[str, Mapping[str, Any]]] = []
        self.limits: dict[str, tuple[int, float]] = {}
        self.refusals = 0
        self.no_history: set[str] = set()
        self.closed: set[str] = set()
        self.files: dict[str, bytes] = {}
        self.flags = 1 << 19
        self.permissions = 0b1 << 10 | 1 << 11 | 1 << 16 | 1 << 38
        self.sessions_left = 1000
        self.in_server = True
        self.gateway = GatewayEmulator(TOKEN, self._tell, self._greeting)
        self._used: dict[tuple[str, str], tuple[int, float]] = {}
        self._all: deque[float] = deque(maxlen=50)
        self._interactions: dict[str, JsonObject] = {}
        self._nonces: dict[str, JsonObject] = {}
        self._number = 0

    def _routes(self) -> Sequence[web.RouteDef]:
        return [
            web.route("*", "/api/v10/{path:.*}", self._called),
            web.get("/gateway/", self.gateway.handle),
            web.get("/resume", self.gateway.handle),
            web.get("/files/{name}", self._file),
        ]

    async def up(self) -> None:
        await super().up()
        self.gateway.url = self.url.replace("http", "ws", 1)

    async def down(self) -> None:
        """Sessions stay for a while."""
        self.gateway.drop()
        await super().down()

    @property
    def base(self) -> str:
        return f"{self.url}/api/v10"

    # What people do ----------------------------------------------------------------------------------------------

    def say(self, text: str, user: JsonObject | None = None, channel: str | None = None, **more: Any) -> JsonObject:
        """A message in private, or in a channel of the server. Returns it as its event tells it."""
        user = user or person(11)
        channel = private(user["id"]) if channel is None else channel
        message = self._message(channel, user, text, more)
        self.give(message)
        return message

    def give(self, message: JsonObject) -> None:
        """Tell of a message, again if it was told of before."""
        self.gateway.dispatch("MESSAGE_CREATE", message)

    def edit(self, message: JsonObject, text: str, at: str = "2027-01-15T08:00:01.766195+00:00") -> None:
        message |= {"content": text, "edited_timestamp": at, "mentions": _mentions(text)}
        self.gateway.dispatch("MESSAGE_UPDATE", dict(message))

    def update(self, **fields: Any) -> None:
        """An update by Discord itself."""
        self.gateway.dispatch("MESSAGE_UPDATE", fields)

    def delete(self, *messages: JsonObject) -> None:
        first = messages[0]
        place: JsonObject = {key: first[key] for key in ("channel_id", "guild_id") if key in first}
        for message in messages:
            self.messages[message["channel_id"]].remove(message)
        if len(messages) > 1:
            self.gateway.dispatch("MESSAGE_DELETE_BULK", {"ids": [each["id"] for each in messages], **place})
        else:
            self.gateway.dispatch("MESSAGE_DELETE", {"id": first["id"], **place})

    def react(self, number: str, name: str, user: JsonObject | None = None, channel: str | None = None, **more: Any) -> None:
        user = user or person(11)
        place = {"channel_id": channel or private(user["id"]), **({"guild_id": SERVER, "member": {"user": user}} if channel else {})}
        told = {"user_id": user["id"], "message_id": number, "emoji": {"id": None, "name": name}, "type": 0, "burst": False}
        self.gateway.dispatch("MESSAGE_REACTION_ADD", {**told, **place, **more})

    def press(self, message: JsonObject, data: str, user: JsonObject | None = None, *, late: bool = False) -> None:
        """Press a button below a message of the bot's. late: Discord has given up waiting when the bot answers."""
        user = user or person(11)
        self._number += 1
        number, channel = str(77_000_000 + self._number), message["channel_id"]
        token = f"aW50ZXJhY3Rpb24-{number}_{'x' * 30}"
        who = {"user": user} if int(channel) > 5_000_000 else {"member": {"user": user}, "guild_id": SERVER}
        if not late:
            self._interactions[token] = message
        told = {"id": number, "application_id": BOT["id"], "type": 3, "token": token, "version": 1, "channel_id": channel, **who}
        self.gateway.dispatch("INTERACTION_CREATE", {**told, "message": dict(message), "data": {"component_type": 2, "custom_id": data}})

    def forget_nonces(self) -> None:
        """As after some minutes."""
        self._nonces.clear()

    def forget(self) -> None:
        """Nothing was sent, and nobody is connected."""
        self.sent.clear()
        self.gateway.beats.clear()

    def texts(self, channel: str | None = None) -> list[str]:
        """What the bot has said, as it stands there now."""
        return [each["content"] for each in self.sent if channel is None or each["channel_id"] == channel]

    async def until(self, condition: Callable[[], bool], deadline: float = 60.0) -> None:
        try:
            await super().until(condition, deadline)
        except TimeoutError:
            last = [(call, str(arguments)[:200]) for call, arguments in self.calls[-8:]]
            raise AssertionError(f"sent {self.texts()}, beats {self.gateway.beats[-3:]}, last calls {last}") from None

    # What the bot asks -------------------------------------------------------------------------------------------

    async def _called(self, request: web.Request) -> web.StreamResponse:
        path = request.match_info["path"].split("/")
        name = f"{request.method} {path[-1] if path[0] != 'channels' else path[2]}"
        channel, last = "", path[-1]
        if path[0] == "channels":
            channel, name = path[1], name + (" one" if len(path) == 4 else "")
        elif path[0] == "interactions":
            last = path[2]
        body = await request.json() if request.can_read_body else dict(request.query)
        self.calls.append((name, body))
        self._tell()
        if request.headers.get("Authorization") != f"Bot {TOKEN}":
            return No(401, 0, "401: Unauthorized").response
        assert re.match(r"DiscordBot \(.+, .+\)", request.headers.get("User-Agent", ""))

        def carried_out() -> Any:
            handler = getattr(self, "_" + re.sub(r"\W+", "_", name).lower(), None)
            if handler is None:
                raise No(404, 0, "404: Not Found")
            return handler(channel, last, body)

        try:
            headers = self._counted(name, channel)
            if self.next[name]:
                return await self.next[name].popleft()(request, carried_out)
            found = carried_out()
            return web.json_response(found, headers=headers) if found is not None else web.Response(status=204, headers=headers)
        except No as no:
            return no.response
        except TooMany as much:
            self.refusals += 1
            return much.response
        finally:
            self._tell()

    def _counted(self, name: str, channel: str) -> dict[str, str]:
        """The headers of a call that is allowed. Raises TooMany."""
        now = time.monotonic()
        if len(self._all) == 50 and now - self._all[0] < 1.0:
            raise TooMany(1.0, everywhere=True)
        self._all.append(now)
        most, seconds = self.limits.get(name, (1000, 1.0))
        used, until = self._used.get((name, channel), (0, 0.0))
        if now >= until:
            used, until = 0, now + seconds
        if used >= most:
            raise TooMany(until - now)
        self._used[name, channel] = used + 1, until
        return {
            "X-RateLimit-Limit": str(most),
            "X-RateLimit-Remaining": str(most - used - 1),
            "X-RateLimit-Reset-After": f"{until - now:.3f}",
            "X-RateLimit-Bucket": f"b{abs(hash(name))}",
        }

    def _get_bot(self, channel: str, last: str, body: JsonObject) -> JsonObject:
        limit = {"total": 1000, "remaining": self.sessions_left, "reset_after": 14_400_000, "max_concurrency": 1}
        return {"url": f"{self.gateway.url}/gateway/", "shards": 1, "session_start_limit": limit}

    def _get_me(self, channel: str, last: str, body: JsonObject) -> JsonObject:
        return {**BOT, "flags": self.flags}  # of the user, and of the application, which is asked for by a like path

    def _get_guilds(self, channel: str, last: str, body: JsonObject) -> list[JsonObject]:
        return [{"id": SERVER, "name": "The Server", "permissions": str(self.permissions)}] if self.in_server else []

    def _get_messages(self, channel: str, last: str, body: JsonObject) -> list[JsonObject]:
        if channel in self.closed:
            raise No(403, 50001, "Missing Access")
        after, limit = int(body["after"]), int(body.get("limit", 50))
        assert 1 <= limit <= 100
        known = [] if channel in self.no_history else self.messages[channel]
        page = [each for each in known if int(each["id"]) > after][:limit]
        return [{key: value for key, value in each.items() if key not in ("guild_id", "member", "nonce")} for each in reversed(page)]

    def _get_messages_one(self, channel: str, last: str, body: JsonObject) -> JsonObject:
        return self._known(channel, last)

    def _post_typing(self, channel: str, last: str, body: JsonObject) -> None:
        self._may_write(channel)
        self.typing.append(channel)

    def _post_messages(self, channel: str, last: str, body: JsonObject) -> JsonObject:
        self._may_write(channel)
        text = _content(body)
        nonce = body.get("nonce")
        if nonce is not None and len(str(nonce)) > 25:
            raise No(400, 50035, "Invalid Form Body")
        if body.get("enforce_nonce") and str(nonce) in self._nonces:
            return self._nonces[str(nonce)]
        more: JsonObject = {"nonce": nonce, "flags": body.get("flags", 0), "components": _components(body)}
        if reference := body.get("message_reference"):
            if channel in self.no_history:
                raise No(400, 160002, "Cannot reply without permission to read message history")
            if not any(each["id"] == reference["message_id"] for each in self.messages[channel]):
                if reference.get("fail_if_not_exists", True):
                    raise No(400, 50035, "Invalid Form Body: Unknown message")
            else:
                more |= {"type": 19, "message_reference": {"message_id": reference["message_id"], "channel_id": channel}}
        if EVERYONE.search(text) and body.get("allowed_mentions", {"parse": ["everyone"]}) != {"parse": []}:
            self.pinged.append(text)
        message = self._message(channel, BOT, text, more)
        self.sent.append(message)
        if nonce is not None:
            self._nonces[str(nonce)] = message
        self.give(message)
        return message

    def _patch_messages_one(self, channel: str, last: str, body: JsonObject) -> JsonObject:
        message = self._own(channel, last)
        if "content" in body:
            if EVERYONE.search(_content(body)) and body.get("allowed_mentions") != {"parse": []}:
                self.pinged.append(body["content"])
            message |= {"content": _content(body), "edited_timestamp": _stamp()}
        if "components" in body:
            message["components"] = _components(body)
        self.gateway.dispatch("MESSAGE_UPDATE", dict(message))
        return message

    def _post_callback(self, channel: str, token: str, body: JsonObject) -> None:
        message = self._interactions.pop(token, None)
        if message is None:
            raise No(404, 10062, "Unknown interaction")
        if body["type"] == 7:
            message |= {key: body["data"][key] for key in ("content", "components") if key in body["data"]}
            self.pressed.append("")
        else:
            assert (body["type"], body["data"]["flags"]) == (4, 64)
            self.pressed.append(body["data"]["content"])

    def _delete_messages_one(self, channel: str, last: str, body: JsonObject) -> None:
        message = self._own(channel, last)
        self.sent.remove(message)
        self.delete(message)

    async def _file(self, request: web.Request) -> web.StreamResponse:
        assert "Authorization" not in request.headers
        return web.Response(body=self.files[request.match_info["name"]])

    def _known(self, channel: str, number: str) -> JsonObject:
        for message in self.messages[channel]:
            if message["id"] == number:
                return message
        raise No(404, 10008, "Unknown Message")

    def _own(self, channel: str, number: str) -> JsonObject:
        message = self._known(channel, number)
        if message["author"] is not BOT:
            raise No(403, 50005, "Cannot edit a message authored by another user")
        return message

    def _may_write(self, channel: str) -> None:
        if channel in self.closed:
            raise No(403, 50013, "Missing Permissions")
        if not (channel in (CHANNEL, THREAD, OTHER_CHANNEL) or int(channel) > 5_000_000):
            raise No(404, 10003, "Unknown Channel")

    def _message(self, channel: str, author: JsonObject, text: str, more: JsonObject) -> JsonObject:
        self._number += 1
        message: JsonObject = {
            "id": str((int(time.time() * 1000) - EPOCH_MS << 22) + self._number),
            "type": 0,
            "channel_id": channel,
            "author": author,
            "content": text,
            "timestamp": _stamp(),
            "edited_timestamp": None,
            "mentions": _mentions(text),
            "mention_roles": re.findall(r"<@&([0-9]+)>", text),
            "mention_everyone": "@everyone" in text or "@here" in text,
            "attachments": [],
            "embeds": [],
            "pinned": False,
        }
        if channel in (CHANNEL, THREAD, OTHER_CHANNEL):
            message |= {"guild_id": SERVER, "member": {"nick": None, "roles": []}, "channel_type": 11 if channel == THREAD else 0}
        message |= more
        self.messages[channel].append(message)
        return message

    def _greeting(self) -> tuple[JsonObject, list[JsonObject]]:
        channels = [{"id": each, "type": 0, "name": "talk", **self._last(each)} for each in (CHANNEL, OTHER_CHANNEL)]
        channels.append({"id": "9400", "type": 4, "name": "a category", "last_message_id": None})
        roles = [{"id": ROLE, "name": "Clew", "tags": {"bot_id": BOT["id"]}}, {"id": "9501", "name": "people"}]
        server = {
            "id": SERVER,
            "roles": roles,
            "channels": channels,
            "threads": [{"id": THREAD, "type": 11, "parent_id": CHANNEL, **self._last(THREAD)}],
        }
        servers = [server] if self.in_server else []
        return {"user": BOT, "guilds": [{"id": each["id"], "unavailable": True} for each in servers], "application": {"id": "1"}}, servers

    def _last(self, channel: str) -> JsonObject:
        return {"last_message_id": self.messages[channel][-1]["id"] if self.messages[channel] else None}

    def _tell(self) -> None:
        self._changed.set()


class TooMany(Exception):
    """A 429: seconds to wait, and whether that is for all calls."""

    def __init__(self, seconds: float, *, everywhere: bool = False) -> None:
        super().__init__()
        self.seconds, self.everywhere = seconds, everywhere

    @property
    def response(self) -> web.Response:
        body = {"message": "You are being rate limited.", "retry_after": round(self.seconds, 3), "global": self.everywhere}
        scope = {"X-RateLimit-Scope": "global", "X-RateLimit-Global": "true"} if self.everywhere else {"X-RateLimit-Scope": "user"}
        return web.json_response(body, status=429, headers={"Retry-After": str(int(self.seconds) + 1), **scope})


def _content(body: JsonObject) -> str:
    """What is said, trimmed as Discord does it."""
    text = str(body.get("content", ""))
    text.encode()
    if len(text) > LIMIT:
        raise No(400, 50035, "Invalid Form Body: Must be 2000 or fewer in length.")
    if not text.strip():
        raise No(400, 50006, "Cannot send an empty message")
    return text.strip()


def _components(body: JsonObject) -> list[JsonObject]:
    """The rows below a message: at most five, of at most five buttons each with an id of its own."""
    rows: list[JsonObject] = body.get("components", [])
    buttons = [button for row in rows for button in row["components"]]
    ids = [button["custom_id"] for button in buttons]
    fits = all(row["type"] == 1 and 1 <= len(row["components"]) <= 5 for row in rows) and len(rows) <= 5
    fits = fits and all(button["type"] == 2 and button["style"] in (1, 2, 3, 4) and 0 < len(button["label"]) <= 80 for button in buttons)
    if not fits or len(set(ids)) < len(ids) or any(not 0 < len(each) <= 100 for each in ids):
        raise No(400, 50035, "Invalid Form Body")
    return rows


def _mentions(text: str) -> list[JsonObject]:
    found = re.findall(r"<@!?([0-9]+)>", text)
    return [BOT if number == BOT["id"] else person(int(number), f"user{number}") for number in found]


def _stamp() -> str:
    return datetime.now(UTC).isoformat()
