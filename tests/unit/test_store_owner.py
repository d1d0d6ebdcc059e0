"""What was the owner's while the config named none is theirs whom it names then."""

from pathlib import Path

import pytest

from clew.store import Person
from tests.databases import BOTH, databases
from tests.unit.store_rows import NOW, opened

pytestmark = BOTH
LOCAL = ("terminal:root",)


@pytest.mark.asyncio
async def test_what_the_machines_owner_spent_is_on_the_account_of_the_one_the_config_names(tmp_path: Path) -> None:
    async with opened(tmp_path, people={}) as store:
        await store.sync({}, Person("owner", "owner", None, LOCAL), (), NOW)
        databases.altered(
            tmp_path, "INSERT INTO spending (kind, subject, period, calls, input) VALUES ('person', 'owner', '2027-01', 2, 700)"
        )
        for _ in range(2):
            await store.sync({"ada": Person("ada", "owner")}, Person("ada", "owner", None, LOCAL), (), NOW)
            keys = [("person", name, "2027-01") for name in ("owner", "ada")]
            owner, ada = (await store.spending.sums(keys)).values()
            assert (owner.tokens, ada.calls, ada.tokens) == (0, 2, 700)
