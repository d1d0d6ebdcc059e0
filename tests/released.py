"""Writes a database as clew makes it, with something of everything in it: `python -m tests.released NAME`.

Run at each release, once: it puts `NAME.db.gz`, and `NAME.json` with what `clew session export` says of it then, into
tests/corpus/released. A test opens every one of them with the program of today.
"""

import gzip
import json
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

FOLDER = Path(__file__).parent / "corpus" / "released"
CLEW = [sys.executable, "-c", "from clew.cli import main; main()"]
CONFIG = """
data_dir: {data}
http: {{port: 0}}
providers: {{none: {{kind: offline}}}}
agent: {{compression: {{trigger_messages: 20, keep_recent: 4}}}}
people: {{ada: {{role: owner, timezone: Europe/Berlin, identities: ["mqtt:ada"]}}}}
projects: {{garden: ["mqtt:ada/garden"]}}
schedule: [{{name: morning, cron: "30 8 * * *", timezone: Europe/Berlin, prompt: good morning, deliver_to: "web:local"}}]
"""
DOCUMENT = "# The pump\n\nIt is primed with two litres before the first use of the year.\n\n# The hose\n\nTwelve metres, half an inch.\n"


def main(name: str) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "clew.yaml").write_text(CONFIG.format(data=folder / "data"))
        (folder / "pump.md").write_text(DOCUMENT)
        exported = _live(folder)
        with closing(sqlite3.connect(folder / "data" / "clew.db")) as database:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            database.execute("VACUUM")
            database.execute("PRAGMA journal_mode = DELETE")
        (FOLDER / f"{name}.db.gz").write_bytes(gzip.compress((folder / "data" / "clew.db").read_bytes(), mtime=0))
        (FOLDER / f"{name}.json").write_text(json.dumps(exported, ensure_ascii=False, indent=1) + "\n")


def _live(folder: Path) -> list[object]:
    """Weeks in a minute. Returns the exports of all sessions."""

    def clew(*args: str, said: str = "") -> str:
        command = [*CLEW, *args, "--config", str(folder / "clew.yaml")]
        return subprocess.run(command, input=said, stdout=subprocess.PIPE, text=True, check=True, cwd=folder).stdout

    def talk(*lines: str) -> str:
        shown = clew("chat", "--json", said="".join(f"{line}\n" for line in lines))
        return str(json.loads(shown.splitlines()[0])["session"])

    long = talk(*(f"Entry {number}: the meter in the cellar says {number * 17} kWh, do not round it" for number in range(14)))
    talk("We take the blue tiles, not the grey ones", "/undo", "The tiles are ordered: 42 m² at 19.90 €", "/new")
    other = talk("Wo liegt der Schlüssel? 🔑 Unter dem Stein.", "/pin", "/forget Stein")
    clew("session", "compact", long)
    message = json.loads(clew("session", "show", other, "--json"))["messages"][0]["id"]
    clew("session", "pin", other, message)
    clew("memory", "--action", "set", "--key", "units", "--value", "metric")
    clew("docs", "add", str(folder / "pump.md"))
    clew("cron", "add", "water?", "--name", "watering", "--cron", "0 19 * 5-9 *", "--timezone", "Europe/Berlin", "--to", "web:local")
    listed = json.loads(clew("session", "list", "--json"))
    return [json.loads(clew("session", "export", each["id"])) for each in listed]


if __name__ == "__main__":
    main(*sys.argv[1:])
