"""The PostgreSQL server, where the store is in one."""

from collections.abc import Mapping, Sequence

from clew.cli.doctor.findings import Bounded, Finding
from clew.config import Config
from clew.config.database import is_shared, shown
from clew.errors import StoreError

SLOW_S = 0.01
"""Seconds that one question may take: a turn asks a dozen."""
TIGHT = 10
"""Connections that should be free: each daemon holds up to six, each command that reads three."""


async def postgresql(config: Config) -> Sequence[Finding]:
    if not is_shared(config.store):
        return []
    try:
        from clew.store.postgresql.looking import looked  # an extra, which a store in a file does without
    except ModuleNotFoundError as missing:
        return [Finding("problem", f"a store in PostgreSQL needs the package {missing.name}", "pip install 'clew[postgresql]'")]
    try:
        found = await looked(config.store)
    except StoreError as error:
        return [Finding("problem", error.message, f"psql {shown(config.store)}")]
    where = shown(config.store)
    faults = []
    if found.old:
        faults.append(Finding("problem", f"{where} is PostgreSQL {found.version}, and 15 is the oldest that clew works with"))
    if found.encoding != "UTF8":
        faults.append(Finding("problem", f"the encoding of {where} is {found.encoding}", "createdb --encoding=UTF8 --template=template0 …"))
    if not found.creates:
        text = f"clew's user may not make tables in {where}"
        faults.append(Finding("problem", text, "ALTER DATABASE … OWNER TO …, as PostgreSQL's superuser (docs/postgresql.md)"))
    if found.away > SLOW_S:
        text = f"{where} is {found.away * 1000:.0f} ms away, and a reply waits for it a dozen times"
        faults.append(Finding("warning", text, "put clew and PostgreSQL next to each other"))
    if found.room < TIGHT:
        text = f"{where} has {max(found.room, 0)} connections left"
        faults.append(Finding("warning", text, "raise max_connections in postgresql.conf, then restart PostgreSQL"))
    return faults or [Finding("ok", f"{where} is PostgreSQL {found.version}, {found.away * 1000:.1f} ms away")]


CHECKS: Mapping[str, Bounded] = {"PostgreSQL": Bounded(postgresql, 30)}
