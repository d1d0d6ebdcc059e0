"""The floor: MQTT receive, one durable SQLite commit, MQTT publish, and nothing else. `python -m bench.floor PORT FILE`."""

import asyncio
import json
import socket
import sqlite3
import sys

import aiomqtt

NO_DELAY = ((socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),)


async def main(port: int, file: str) -> None:
    db = sqlite3.connect(file, isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.execute("CREATE TABLE inbox (id TEXT PRIMARY KEY, text TEXT)")
    async with aiomqtt.Client(
        "127.0.0.1", port, protocol=aiomqtt.ProtocolVersion.V5, identifier="floor", socket_options=NO_DELAY
    ) as client:
        await client.subscribe("chat/v1/clew/in/#", qos=1)
        print("floor is ready", flush=True)
        async for message in client.messages:
            said = json.loads(bytes(message.payload))
            db.execute("INSERT INTO inbox VALUES (?, ?)", (said["id"], said["text"]))
            user = str(message.topic).split("/")[4]
            await client.publish(f"chat/v1/clew/out/{user}", json.dumps({"in_reply_to": said["id"], "text": "ok"}), qos=1)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), sys.argv[2]))
