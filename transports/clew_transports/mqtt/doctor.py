"""What is wrong with the broker, as far as a client can see: its limits, clew's rights, those of strangers, whether it keeps sessions."""

import asyncio
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import replace

from clew.plugins import Fault, Remark
from clew_transports.mqtt.connection import SESSION_EXPIRY_S, Broker, Connection, Disconnected, NotAccepted, Packed
from clew_transports.mqtt.payload import Topics

HEARD_S = 2.0
"""Seconds after which what was published is taken for not let through."""
OWN_SESSION_S = 60
"""How long the broker keeps the session of this look, should it break off."""
EXPIRY_S = 10
ACL = "give the broker an access list: docs/transports/mqtt.md, Who may write"
SETTINGS = "docs/transports/mqtt.md, The broker's settings"
VERSION = "$SYS/broker/version"
UNSEEN = "whether one account can write as another, and whether messages outlive a restart of the broker, cannot be seen from here"


async def examine(broker: Broker, topics: Topics, where: str) -> list[Fault | Remark]:
    """A look at the broker by clew's account, under another client id, and by nobody's. where: the section of the config.

    What is published for it goes to a name that nobody can have, which clew and its clients let pass.
    """
    own = replace(broker, client_id=f"{broker.client_id}-doctor", status="", clean=True, session_s=OWN_SESSION_S)
    try:
        async with Connection(own) as connection:
            found = [*limits(connection.told), *await _rights(connection, topics, broker.username)]
            remarks = await _version(connection)
        async with Connection(replace(own, clean=False)) as again:
            found += session(again.session_present, connection.told)
        async with Connection(replace(own, session_s=0)) as last:
            found += await _strangers(last, replace(own, username=None, password=None, session_s=0), topics, broker.username)
    except (Disconnected, TimeoutError) as why:
        return [Fault(str(why) or "the broker does not answer in time", f"check {where}: host, port, tls, username and password")]
    return [*found, *remarks, Remark(f"{UNSEEN} (docs/transports/mqtt.md)")]


def limits(told: Mapping[str, int]) -> Iterator[Fault]:
    """What the broker says, when it takes a connection, that it does not do."""
    if told.get("MaximumQoS", 2) < 1:
        yield Fault("the broker takes no QoS 1: messages may be lost", SETTINGS)
    if not told.get("WildcardSubscriptionAvailable", 1):
        yield Fault("the broker takes no subscription with #: no message can arrive", SETTINGS)
    if not told.get("RetainAvailable", 1):
        yield Fault("the broker keeps no retained messages: nobody sees in the status topic whether clew is there", SETTINGS, False)


def session(present: bool, told: Mapping[str, int]) -> Iterator[Fault]:
    """Whether the broker keeps what comes while clew is off. present: it knew this client again."""
    if not present:
        yield Fault("the broker keeps no sessions: what is sent while clew is off is lost", SETTINGS, False)
    elif told.get("SessionExpiryInterval", OWN_SESSION_S) < OWN_SESSION_S:
        days, kept = SESSION_EXPIRY_S // 86400, told["SessionExpiryInterval"]
        yield Fault(f"the broker keeps sessions for {kept} s, and clew asks for {days} days", SETTINGS, False)


async def _rights(connection: Connection, topics: Topics, username: str | None) -> list[Fault]:
    """What clew's account may not do and should, and the other way round, as the broker tells it."""
    found = []
    try:
        await connection.listen(topics.inbox)
    except NotAccepted:
        found.append(Fault(f"clew's account may not read {topics.inbox}: no message can arrive", ACL))
    if not await _may_write(connection, f"{topics.base}/out/{_nobody()}"):
        found.append(Fault(f"clew's account may not write {topics.base}/out/…: no reply can be sent", ACL))
    if not await _may_write(connection, f"{topics.base}/ev/{_nobody()}"):
        found.append(Fault(f"clew's account may not write {topics.base}/ev/…: nobody sees that it is typing", ACL, False))
    if username and await _may_write(connection, f"{topics.base}/in/{_nobody()}"):
        found.append(Fault("clew's account may write as anybody: if there is no access list, so may every other account", ACL, False))
    return found


async def _strangers(own: Connection, stranger: Broker, topics: Topics, username: str | None) -> list[Fault]:
    """What somebody without an account may do."""
    try:
        async with Connection(replace(stranger, client_id=f"{stranger.client_id}-{secrets.token_hex(4)}")) as nobody:
            reads = await _is_heard(own, nobody, f"{topics.base}/out/{_nobody()}")
            writes = await _may_write(nobody, f"{topics.base}/in/{_nobody()}")
    except Disconnected:
        return []
    who = "whoever reaches the broker" if username else "whoever reaches the broker (clew has no account there either)"
    can = [words for may, words in ((writes, "write to clew as anybody"), (reads, "read all its replies")) if may]
    return [Fault(f"{who} can {' and '.join(can)}", ACL, False)] if can else []


async def _may_write(connection: Connection, topic: str) -> bool:
    """Whether the broker takes a message. It is never kept."""
    try:
        await connection.deliver(topic, b"", properties=_short_lived())
    except NotAccepted:
        return False
    return True


async def _is_heard(speaker: Connection, listener: Connection, topic: str) -> bool:
    """Whether what one says reaches the other. mosquitto grants a subscription that its access list forbids, and then passes nothing."""
    try:
        await listener.listen(topic)
        await speaker.deliver(topic, b"?", properties=_short_lived())
        async with asyncio.timeout(HEARD_S):
            await listener.receive()
    except (NotAccepted, TimeoutError):
        return False
    return True


async def _version(connection: Connection) -> list[Remark]:
    """What the broker calls itself, where it tells."""
    try:
        await connection.subscribe(VERSION)
        async with asyncio.timeout(HEARD_S):
            while True:
                for packet in await connection.receive():
                    if packet.topic == VERSION:
                        return [Remark(f"the broker is {packet.payload.decode('utf-8', 'replace')[:100]}")]
    except TimeoutError:
        return []


def _short_lived() -> Packed:
    """Nothing of it waits for a clew that is off."""
    return Packed(MessageExpiryInterval=EXPIRY_S)


def _nobody() -> str:
    """A level that is no user's name, another each time."""
    return f"~doctor-{secrets.token_hex(4)}"
