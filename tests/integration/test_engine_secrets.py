"""With the real log, at its chattiest, no configured secret leaves the process."""

import asyncio
import subprocess
import sys
from functools import partial
from pathlib import Path
from urllib.parse import quote

import pytest

from clew.context.redact import redact
from clew.logging import setup
from tests.emulators.scripts import say
from tests.emulators.server import DropAfter, Fault
from tests.integration.engine import engine, openai_section

ROOT = Path(__file__).parents[2]
KEY = "k3y/with+odd=signs&Zx9Qw7Er5Ty3Ui1Op8"


@pytest.mark.parametrize("level", ["info", "debug"])
def test_no_secret_is_logged(tmp_path: Path, level: str) -> None:  # P19, BO-099
    command = [sys.executable, "-m", "tests.integration.test_engine_secrets", str(tmp_path), level]
    paths = {"PYTHONPATH": f"{ROOT}:{ROOT}/daemon:{ROOT}/transports"}
    ended = subprocess.run(command, cwd=ROOT, env=paths, capture_output=True, text=True, timeout=100, check=False)
    written = ended.stdout + ended.stderr
    assert ended.returncode == 0, written
    assert written.count("turn.finished") == 11
    assert "provider.retry" in written
    stored = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    for form in (KEY, quote(KEY, safe=""), quote(KEY)):
        assert form not in written
        assert form.encode() not in stored


async def talk(folder: Path, level: str) -> None:
    """Ten turns with a key that the model's server repeats in its errors."""
    async with engine(folder, lambda body: say("ok"), api_key=KEY) as world:
        world.config = world.config.model_copy(update={"providers": {"local": openai_section(world.model, key=KEY)}})  # type: ignore[arg-type]
        setup(level, "json", partial(redact, known=world.config.secrets()))
        async with world.running():
            for n in range(10):
                if n == 3:
                    world.model.faults.append(Fault(503, "api_error", f"no room for {KEY} at /v1?key={quote(KEY)}", {"retry-after": "0"}))
                if n == 6:
                    world.model.faults.append(DropAfter(0))
                await world.desk.ask(f"turn {n}")
            world.model.faults.append(Fault(400, "invalid_request_error", f"Bearer {KEY} is odd: {quote(KEY, safe='')}"))
            await world.desk.ask("the last turn")
            await world.idle()


if __name__ == "__main__":
    asyncio.run(talk(Path(sys.argv[1]), sys.argv[2]))
