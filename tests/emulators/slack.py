"""Slack as its documentation describes it, for one app in one workspace: the Web API by forms, Socket Mode with envelopes that come again
until they are acknowledged, the Events API with its signatures, histories that hold what was said.

What it can be told to do wrong: `next[method]`, a queue of faults, each for one call.
"""

import asyncio
import json
import re
import time
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from typing import Any

from aiohttp import web

from tests.emulators.listening import Fault, Listening
from tests.emulators.server import JsonObject
from tests.emulators.slack_wire import No, check_buttons, shown

BOT_TOKEN, APP_TOKEN = "xoxb-1-the-bot", "xapp-1-the-app"
TEAM, BOT, BOT_ID = "T0WORK", "U0CLEW", "B0CLEW"
MENTION = f"<@{BOT}>"
LIMIT, BURST = 4000, 3.0
SCOPES = frozenset(
    {"chat:write", "app_mentions:read", "users:read", "files:read", "reactions:read"}
    | {f"{kind}:{what}" for kind in ("im", "mpim", "channels", "groups") for what in ("history", "read")}
)
_KINDS = {"D": ("im", "im"), "G": ("groups", "private_channel"), "C": ("channels", "public_channel")}


class SlackEmulator(Listening):
    """Use as an async context manager.

    messages: what the bot has said, in order, as it stands now, with `shown`. edits: (ts, text) of each, in order.
    whispered: (user, text) of what one person alone was shown.
    calls: (method, arguments) of all. acknowledged: ids of envelopes.
    history: of each conversation, all that was said in it. sockets: the ones that are open.
    gives_up: what was not acknowledged when its socket closed is not told again.
    """

    def __init__(self) -> None:
        super().__init__()
        self.next: defaultdict[str, deque[Fault]] = defaultdict(deque)
        self.messages: list[JsonObject] = []
        self.edits: list[tuple[str, str]] = []
        self.whispered: list[tuple[str, str]] = []
        self.calls: list[tuple[str, JsonObject]] = []
        self.acknowledged: list[str] = []
        self.history: defaultdict[str, list[JsonObject]] = defaultdict(list)
        self.members: set[str] = set()
        self.names: dict[str, str] = {}
        self.files: dict[str, JsonObject] = {}
        self.contents: dict[str, bytes] = {}
        self.scopes = SCOPES
        self.bot_token = BOT_TOKEN
        self.sockets: list[web.WebSocketResponse] = []
        self.opened = 0
        self.greets = True
        self.echoes = False
        self.gives_up = False
        self.page = 200
        self._told = 0
        self._waiting: dict[str, JsonObject] = {}
        self._out: dict[str, web.WebSocketResponse] = {}
        self._tickets: set[str] = set()
        self._credit: dict[str, tuple[float, float]] = {}
        self._ts = int(time.time()) * 1_000_000

    def _routes(self) -> Sequence[web.RouteDef]:
        return [web.post("/api/{method}", self._called), web.get("/link", self._linked), web.get("/files/{id}", self._file)]

    async def up(self) -> None:
        await super().up()
        self.url += "/api"

    # What people do ----------------------------------------------------------------------------------------------

    def ts(self) -> str:
        """The next moment: later than any before."""
        self._ts += 1_000_100
        return f"{self._ts // 1_000_000}.{self._ts % 1_000_000:06}"

    def say(
        self, text: str, user: str = "U0ADA", channel: str = "D0ADA", thread: str | None = None, *, told: bool = True, **more: Any
    ) -> str:
        """Somebody writes; Slack tells of it unless not `told`. Returns the message's ts."""
        message = {"type": "message", "user": user, "text": text, "ts": self.ts(), "team": TEAM, **more}
        if thread:
            message["thread_ts"] = thread
            root = self._message(channel, thread)
            root["reply_count"] = root.get("reply_count", 0) + 1
            root["thread_ts"] = thread
            message["parent_user_id"] = root.get("user")
        self.members.add(channel)
        self.history[channel].append(message)
        if told:
            self.again(channel, str(message["ts"]))
        return str(message["ts"])

    def again(self, channel: str, ts: str) -> None:
        """Tell of a message, as one that mentions the bot is told: under two types, each with an id of its own."""
        message = self._message(channel, ts)
        kind = {"D": "im", "G": "group"}.get(channel[0], "channel")
        event = {**message, "channel": channel, "event_ts": ts, "channel_type": kind}
        if MENTION in str(message.get("text")) and channel[0] != "D":
            self.tell({**event, "type": "app_mention"})
        self.tell(event)

    def edit(self, channel: str, ts: str, text: str | None = None, **more: Any) -> None:
        """Change a message; without `text` Slack itself adds something, such as the preview of a link."""
        message = self._message(channel, ts)
        before, now = dict(message), self.ts()
        message.update(more)
        if text is not None:
            message |= {"text": text, "edited": {"user": message["user"], "ts": now}}
        changed = {"message": dict(message), "previous_message": before}
        self.tell(
            {"type": "message", "subtype": "message_changed", "hidden": True, "channel": channel, "ts": now, "event_ts": now, **changed}
        )

    def delete(self, channel: str, ts: str) -> None:
        message, now = self._message(channel, ts), self.ts()
        self.history[channel].remove(message)
        gone = {"deleted_ts": ts, "previous_message": message}
        self.tell({"type": "message", "subtype": "message_deleted", "hidden": True, "channel": channel, "ts": now, "event_ts": now, **gone})

    def react(self, channel: str, ts: str, emoji: str, user: str = "U0ADA") -> None:
        item = {"type": "message", "channel": channel, "ts": ts}
        self.tell({"type": "reaction_added", "user": user, "reaction": emoji, "item": item, "event_ts": self.ts()})

    def press(self, message: JsonObject, value: str, user: str = "U0ADA") -> JsonObject:
        """Press a button below a message of the bot's. Returns the payload, which is told by socket."""
        buttons = message["attachments"][0]["blocks"][0]["elements"]
        (button,) = [each for each in buttons if each["value"] == value]
        told = {key: message[key] for key in ("type", "user", "bot_id", "text", "ts", "thread_ts", "attachments") if key in message}
        payload = {
            "type": "block_actions",
            "team": {"id": TEAM, "domain": "work"},
            "user": {"id": user, "team_id": TEAM},
            "api_app_id": "A0APP",
            "container": {"type": "message_attachment", "message_ts": message["ts"], "channel_id": message["channel"]},
            "channel": {"id": message["channel"], "name": "here"},
            "message": told,
            "actions": [{"type": "button", "action_id": button["action_id"], "value": value, "action_ts": self.ts()}],
        }
        self.give({"type": "interactive", "payload": payload, "accepts_response_payload": False})
        return payload

    def payload(self, event: JsonObject, event_id: str = "") -> JsonObject:
        """An event as the Events API wraps it, each time under another id."""
        self._told += 1
        return {
            "token": "gone",
            "team_id": TEAM,
            "api_app_id": "A0APP",
            "event": event,
            "type": "event_callback",
            "event_id": event_id or f"Ev{self._told:08}",
            "event_time": int(self._ts / 1e6),
            "authorizations": [{"enterprise_id": None, "team_id": TEAM, "user_id": BOT, "is_bot": True, "is_enterprise_install": False}],
        }

    def tell(self, event: JsonObject) -> None:
        self.give({"type": "events_api", "payload": self.payload(event), "accepts_response_payload": False})

    def give(self, frame: JsonObject) -> str:
        """Put an envelope on its way. Returns its id."""
        self._told += 1
        envelope = f"{self._told:08}-e"
        self._waiting[envelope] = {**frame, "envelope_id": envelope, "retry_attempt": 0, "retry_reason": ""}
        self._send()
        return envelope

    async def warn(self, reason: str = "warning") -> None:
        """Say on each socket that it is to be replaced; it stays open."""
        for socket in self.sockets:
            await socket.send_json({"type": "disconnect", "reason": reason, "debug_info": {"host": "emulated"}})

    async def cut(self, count: int | None = None) -> None:
        """Close the sockets, the oldest first. What was not acknowledged comes again on the next one."""
        for socket in self.sockets[:count]:
            await socket.close()

    def forget(self) -> None:
        """Nothing waits, and nothing was said."""
        self._waiting.clear()
        self.history.clear()
        self.messages.clear()

    def texts(self, channel: str, thread: str | None = None) -> list[str]:
        """What the bot has said there, as it is read."""
        return [
            each["shown"] for each in self.messages if each["channel"] == channel and (thread is None or each.get("thread_ts") == thread)
        ]

    async def until(self, condition: Callable[[], bool], deadline: float = 60.0) -> None:
        try:
            await super().until(condition, deadline)
        except TimeoutError:
            last = [(method, str(arguments)[:200]) for method, arguments in self.calls[-8:]]
            raise AssertionError(f"{len(self.messages)} messages, waiting {list(self._waiting.values())}, last calls {last}") from None

    # Sockets -----------------------------------------------------------------------------------------------------

    async def _linked(self, request: web.Request) -> web.StreamResponse:
        ticket = request.query["ticket"]
        if ticket not in self._tickets:
            return web.Response(status=403)
        self._tickets.discard(ticket)
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        if not self.greets:
            await asyncio.Event().wait()
        await socket.send_json({"type": "hello", "num_connections": len(self.sockets) + 1, "connection_info": {"app_id": "A0APP"}})
        self.sockets.append(socket)
        self._send()
        self._tell()
        try:
            async for message in socket:
                envelope = json.loads(message.data)["envelope_id"]
                assert set(json.loads(message.data)) <= {"envelope_id", "payload"}
                self.acknowledged.append(envelope)
                self._waiting.pop(envelope, None)
                self._tell()
        finally:
            self.sockets.remove(socket)
            for envelope in [each for each, where in self._out.items() if where is socket and each in self._waiting]:
                del self._out[envelope]
                if self.gives_up:
                    del self._waiting[envelope]
                    continue
                self._waiting[envelope] |= {"retry_attempt": self._waiting[envelope]["retry_attempt"] + 1, "retry_reason": "timeout"}
            self._send()
            self._tell()
        return socket

    def _send(self) -> None:
        """Put what waits on one of the sockets."""
        for number, (envelope, frame) in enumerate(self._waiting.items()):
            if self.sockets and envelope not in self._out:
                socket = self.sockets[number % len(self.sockets)]
                self._out[envelope] = socket
                task = asyncio.ensure_future(socket.send_json(frame))
                task.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._tell()

    # What the app asks -------------------------------------------------------------------------------------------

    async def _called(self, request: web.Request) -> web.StreamResponse:
        method = request.match_info["method"]
        form = dict(await request.post())
        arguments = {key: value for key, value in form.items() if isinstance(value, str)}
        self.calls.append((method, arguments))
        self._tell()

        def carried_out() -> JsonObject:
            token = request.headers.get("Authorization", "").removeprefix("Bearer ")
            if token != (APP_TOKEN if method == "apps.connections.open" else self.bot_token):
                raise No("invalid_auth")
            handler = getattr(self, "_" + re.sub(r"\W", "_", method), None)
            if handler is None:
                raise No("unknown_method")
            return {"ok": True, **handler(arguments)}

        try:
            if self.next[method]:
                return await self.next[method].popleft()(request, carried_out)
            return web.json_response(carried_out(), headers={"x-oauth-scopes": ",".join(sorted(self.scopes))})
        except No as no:
            return no.response
        finally:
            self._tell()

    def _auth_test(self, arguments: JsonObject) -> JsonObject:
        return {"url": "https://work.slack.com/", "team": "Work", "user": "clew", "team_id": TEAM, "user_id": BOT, "bot_id": BOT_ID}

    def _apps_connections_open(self, arguments: JsonObject) -> JsonObject:
        self.opened += 1
        ticket = f"t{self.opened}"
        self._tickets.add(ticket)
        return {"url": f"ws://127.0.0.1:{self._port}/link?ticket={ticket}&app_id=A0APP"}

    def _users_info(self, arguments: JsonObject) -> JsonObject:
        self._may("users:read")
        if arguments["user"] not in self.names:
            raise No("user_not_found")
        return {"user": {"id": arguments["user"], "name": "x", "profile": {"display_name": self.names[arguments["user"]]}}}

    def _users_conversations(self, arguments: JsonObject) -> JsonObject:
        kinds = {kind: scope for scope, kind in _KINDS.values()} | {"mpim": "mpim"}
        self._may(f"{kinds[arguments['types']]}:read")
        found = [each for each in sorted(self.members) if _KINDS[each[0]][1] == arguments["types"]]
        return self._paged("channels", [{"id": each} for each in found], arguments)

    def _conversations_history(self, arguments: JsonObject) -> JsonObject:
        self._may_read(arguments["channel"])
        said = [each for each in self.history[arguments["channel"]] if _is_top(each)]
        return self._paged("messages", [self._seen(each, arguments) for each in reversed(_since(said, arguments))], arguments)

    def _conversations_replies(self, arguments: JsonObject) -> JsonObject:
        self._may_read(arguments["channel"])
        root = self._message(arguments["channel"], arguments["ts"], "thread_not_found")
        replies = [each for each in self.history[arguments["channel"]] if each.get("thread_ts") == arguments["ts"] and each is not root]
        return self._paged("messages", [self._seen(each, arguments) for each in (root, *_since(replies, arguments))], arguments)

    def _chat_postMessage(self, arguments: JsonObject) -> JsonObject:  # noqa: N802 - the method's name
        self._may("chat:write")
        channel = arguments["channel"]
        if channel not in self.members:
            raise No("not_in_channel" if channel in self.history else "channel_not_found")
        self._spend(channel)
        message = self._said(arguments)
        if thread := arguments.get("thread_ts"):
            root = self._message(channel, thread, "thread_not_found")
            root["reply_count"] = root.get("reply_count", 0) + 1
            message |= {"thread_ts": thread, "parent_user_id": root.get("user")}
        self.history[channel].append(message)
        self.messages.append({**message, "channel": channel, "shown": shown(message["text"])})
        if self.echoes:
            self.again(channel, message["ts"])
        return {"channel": channel, "ts": message["ts"], "message": message}

    def _spend(self, channel: str) -> None:
        """One message a second in a channel, and short bursts."""
        now = time.monotonic()
        credit, at = self._credit.get(channel, (BURST, now))
        credit = min(credit + now - at, BURST)
        if credit < 1:
            raise No("ratelimited", 429, {"Retry-After": "1"})
        self._credit[channel] = (credit - 1, now)

    def _chat_postEphemeral(self, arguments: JsonObject) -> JsonObject:  # noqa: N802 - the API's name
        self._may("chat:write")
        self.whispered.append((arguments["user"], arguments["text"]))
        return {"message_ts": self.ts()}

    def _chat_update(self, arguments: JsonObject) -> JsonObject:
        self._may("chat:write")
        message = self._message(arguments["channel"], arguments["ts"])
        if message.get("user") != BOT:
            raise No("cant_update_message")
        changed = self._said(arguments)
        kept = ("text", "metadata", "attachments")
        message |= {key: changed[key] for key in kept if key in changed} | {"edited": {"user": BOT, "ts": changed["ts"]}}
        for each in self.messages:
            if (each["channel"], each["ts"]) == (arguments["channel"], arguments["ts"]):
                each |= {key: message[key] for key in kept if key in message} | {"shown": shown(message["text"])}
        self.edits.append((arguments["ts"], message["text"]))
        return {"channel": arguments["channel"], "ts": arguments["ts"], "text": message["text"]}

    def _chat_delete(self, arguments: JsonObject) -> JsonObject:
        self._may("chat:write")
        message = self._message(arguments["channel"], arguments["ts"])
        self.history[arguments["channel"]].remove(message)
        self.messages = [each for each in self.messages if (each["channel"], each["ts"]) != (arguments["channel"], arguments["ts"])]
        return {"channel": arguments["channel"], "ts": arguments["ts"]}

    def _files_info(self, arguments: JsonObject) -> JsonObject:
        self._may("files:read")
        if arguments["file"] not in self.files:
            raise No("file_not_found")
        here = {"url_private_download": f"http://127.0.0.1:{self._port}/files/{arguments['file']}"}
        return {"file": {**here, **self.files[arguments["file"]]}}

    async def _file(self, request: web.Request) -> web.StreamResponse:
        if request.headers.get("Authorization") != f"Bearer {self.bot_token}":
            return web.Response(status=302, headers={"Location": "/login"})
        return web.Response(body=self.contents[request.match_info["id"]])

    def _said(self, arguments: JsonObject) -> JsonObject:
        """The bot's message as it is stored. Raises No for what Slack does not take."""
        text = arguments.get("text", "")
        if not text:
            raise No("no_text")
        if len(text) > LIMIT:
            raise No("msg_too_long")
        ts = self.ts()
        message = {"type": "message", "user": BOT, "bot_id": BOT_ID, "app_id": "A0APP", "text": text, "ts": ts, "team": TEAM}
        if "metadata" in arguments:
            metadata = json.loads(arguments["metadata"])
            if set(metadata) != {"event_type", "event_payload"} or not isinstance(metadata["event_payload"], dict):
                raise No("invalid_metadata_format")
            message["metadata"] = metadata
        if "attachments" in arguments:
            message["attachments"] = json.loads(arguments["attachments"])
            check_buttons(message["attachments"])
        return message

    def _seen(self, message: JsonObject, arguments: JsonObject) -> JsonObject:
        whole = arguments.get("include_all_metadata") == "true"
        return message if whole else {key: value for key, value in message.items() if key != "metadata"}

    def _paged(self, name: str, found: list[JsonObject], arguments: JsonObject) -> JsonObject:
        start = int(arguments.get("cursor") or 0)
        end = start + min(int(arguments.get("limit") or 100), self.page)
        following = str(end) if end < len(found) else ""
        return {name: found[start:end], "has_more": bool(following), "response_metadata": {"next_cursor": following}}

    def _may(self, scope: str) -> None:
        if scope not in self.scopes:
            raise No("missing_scope", needed=scope, provided=",".join(sorted(self.scopes)))

    def _may_read(self, channel: str) -> None:
        self._may(f"{_KINDS[channel[0]][0]}:history")
        if channel not in self.members:
            raise No("not_in_channel" if channel in self.history else "channel_not_found")

    def _message(self, channel: str, ts: str, missing: str = "message_not_found") -> JsonObject:
        for each in self.history[channel]:
            if each["ts"] == ts:
                return each
        raise No(missing)

    def _tell(self) -> None:
        self._changed.set()


def _is_top(message: JsonObject) -> bool:
    return message.get("thread_ts") in (None, message["ts"]) or message.get("subtype") == "thread_broadcast"


def _since(messages: list[JsonObject], arguments: JsonObject) -> list[JsonObject]:
    return [each for each in messages if float(each["ts"]) > float(arguments.get("oldest") or 0)]
