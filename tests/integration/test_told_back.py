"""What a platform says back of what it was sent: no secret of it is shown."""

import json
from pathlib import Path

import pytest

from clew.cli.doctor.platforms import transports
from tests.emulators.telegram import TOKEN, TelegramEmulator, refuses
from tests.integration.web_harness import running, settings
from tests.integration.webhook_harness import until

pytestmark = pytest.mark.asyncio


async def test_an_error_that_quotes_the_token_shows_it_nowhere(tmp_path: Path) -> None:  # BO-099
    async with TelegramEmulator() as emulator:
        emulator.next["getMe"].extend([refuses(400, f"bad url /bot{TOKEN}/getMe")] * 50)
        config = settings(tmp_path / "clew", transports={"telegram": {"token": TOKEN, "base_url": emulator.url}})
        async with running(config) as clew:
            await until(lambda: "bad url" in clew.service.transports["telegram"].detail)
            for path in ("/readyz", "/api/v1/status"):
                async with clew.http.get(clew.url + path) as response:
                    text = await response.text()
                assert TOKEN not in text
                assert "bad url" in text
        [found] = [each for each in await transports(config) if each.of == "telegram"]
        assert "bad url" in found.text
        assert TOKEN not in json.dumps(found.text)
