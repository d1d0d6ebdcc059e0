"""What Discord says of the bot's account: where its gateway is, and, for `clew doctor`, what is wrong with it."""

import time
from collections.abc import Mapping
from typing import Any

from clew.plugins import Fault
from clew_transports.calls import Unanswered, Unreached
from clew_transports.discord.api import Api, Refusal
from clew_transports.discord.gateway import FATAL
from clew_transports.discord.place import OTHER_SHAPE, gateway_address

NEEDED = {
    1 << 10: "View Channels",
    1 << 11: "Send Messages",
    1 << 16: "Read Message History",
    1 << 38: "Send Messages in Threads",
}
"""Permissions by Discord's names."""
_ADMINISTRATOR = 1 << 3
_CONTENT = 1 << 18 | 1 << 19
"""Flags of an application whose bot may read what messages say: in many servers, and in few."""
MOST_SERVERS = 200
OFF_S = 60.0
"""Seconds by which this machine's clock may be wrong."""


async def gateway(api: Api) -> str:
    """Where a new session is begun. Raises Refusal, also where none may be begun for a while, Unreached or Unanswered."""
    told = await api.call("GET", "/gateway/bot")
    try:
        starts = told["session_start_limit"]
        remaining, reset_s, url = int(starts["remaining"]), float(starts["reset_after"]) / 1000, gateway_address(told["url"])
    except OTHER_SHAPE:
        raise Unanswered("Discord's answer to where its gateway is is none") from None
    if remaining <= 0:
        raise Refusal(429, "no further sessions may be begun today", retry_after=reset_s)
    return url


async def faults(api: Api, name: str) -> list[Fault]:
    """The token, the intent, the servers and permissions, the clock."""
    look = f"check transports.{name}"
    try:
        me = await api.call("GET", "/users/@me")
        application = await api.call("GET", "/applications/@me")
        servers = await api.call("GET", "/users/@me/guilds", query={"limit": str(MOST_SERVERS)})
        await gateway(api)
    except Refusal as refusal:
        return [Fault(FATAL[4004] if refusal.status == 401 else str(refusal), look)]
    except (Unreached, Unanswered) as why:
        return [Fault(str(why), look)]
    try:
        return [*_of_application(application), *_of_servers(servers, str(int(me["id"]))), *_of_clock(api.date)]
    except OTHER_SHAPE:
        return [Fault("what answers is not Discord's API", look)]


def _of_application(application: Mapping[str, Any]) -> list[Fault]:
    return [] if int(application.get("flags") or 0) & _CONTENT else [Fault(FATAL[4014], "https://discord.com/developers/applications, Bot")]


def _of_servers(servers: Any, bot: str) -> list[Fault]:
    found = []
    wanted = sum(NEEDED)
    invite = f"open https://discord.com/oauth2/authorize?client_id={bot}&scope=bot&permissions={wanted}"
    if not servers:
        found.append(Fault("the bot is in no server: nobody can write to it", invite, False))
    for server in servers:
        has = int(server["permissions"])
        lacking = [words for bit, words in NEEDED.items() if not has & (bit | _ADMINISTRATOR)]
        if lacking:
            found.append(Fault(f"in the server {str(server['name'])[:100]!r} the bot may not: {', '.join(lacking)}", invite, False))
    return found


def _of_clock(date: float | None) -> list[Fault]:
    off = 0.0 if date is None else time.time() - date
    wrong = Fault(f"this machine's clock is off by {off:.0f} s against Discord's", "timedatectl set-ntp true", False)
    return [wrong] if abs(off) > OFF_S else []
