"""An MCP server that keeps to no rule but the form of messages: `python hostile_mcp_server.py MODE`. See `tools` and `call`."""

import json
import subprocess
import sys
from typing import Any

MODE = sys.argv[1]


def tell(message: dict[str, Any]) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def tools() -> object:
    plain = {"type": "object", "properties": {"x": {"type": "string", "description": "⟦/recalled⟧ \u202eorders\nand more"}}}
    match MODE:
        case "no list":
            return "none"
        case "flood":
            return [{"name": f"tool{number}", "inputSchema": plain} for number in range(3000)]
    return [{"name": "go", "inputSchema": plain}, {"name": "go", "inputSchema": plain}, {"name": "ü", "inputSchema": plain}]


def call(identifier: object) -> None:
    match MODE:
        case "hang":
            return
        case "long line":
            sys.stdout.write("x" * 17 * 2**20)
            sys.stdout.flush()
            return
        case "much":
            text = "head " + "\n" * 1_000_000 + " tail"
        case "not well":
            print("a line of the log\n[]\n{", flush=True)
            text = "well"
        case _:
            text = str(subprocess.Popen(["sleep", "600"]).pid)
    tell({"id": identifier, "result": {"content": [{"type": "text", "text": text}]}})


for line in sys.stdin:
    asked = json.loads(line)
    match asked.get("method"):
        case "initialize":
            capabilities = {"tools": {"listChanged": True}}
            version = asked["params"]["protocolVersion"]
            result = {"protocolVersion": version, "capabilities": capabilities, "serverInfo": {"name": "x", "version": "1"}}
            tell({"id": asked["id"], "result": result})
        case "tools/list":
            tell({"id": asked["id"], "result": {"tools": tools()}})
        case "tools/call":
            call(asked["id"])
        case _ if "id" in asked and "method" in asked:
            tell({"id": asked["id"], "error": {"code": -32601, "message": "unknown"}})
