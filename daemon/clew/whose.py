"""Whose notes, or whose words, an operator means by a person, a project or a session."""

from clew.assembly import people_of
from clew.config import Config
from clew.context.notes import ScopeKind
from clew.errors import NotFound, UsageError
from clew.store.notes import Where
from clew.store.sqlite import SqliteStore


async def whose(
    config: Config, store: SqliteStore, kind: ScopeKind, *, person: str | None, project: str | None, session: str | None
) -> Where:
    """The notes that are meant; a person who is not named is the owner.

    Raises NotFound for somebody or something that is not there, and UsageError where nothing says which project is meant.
    """
    if session is not None:
        if person is not None or project is not None:
            raise UsageError("A session says whose notes are meant: name no person and no project beside it.")
        return Where(address=(await store.find_session(session)).address)
    if project is not None:
        await _check_project(config, store, project)
    if kind == "project":
        if project is None:
            raise UsageError("Which project?", hint="Name one of the config, the address of a chat, or a session.")
        return Where(person=await _one(config, store, person) if person else None, project=project)
    return Where(person=await _one(config, store, person), project=project)


async def _check_project(config: Config, store: SqliteStore, project: str) -> None:
    if project in config.projects or (":" in project and await store.sessions(project, 1)):
        return
    there = ", ".join(config.projects) or "none"
    raise NotFound(f"There is no project {project!r}.", hint=f"Projects of the config: {there}. The address of any chat is one too.")


async def _one(config: Config, store: SqliteStore, person: str | None) -> str:
    if person is not None:
        return await known(config, store, person)
    configured, local_owner = people_of(config)
    return local_owner.id if local_owner else next(each.id for each in configured.values() if each.role == "owner")


async def known(config: Config, store: SqliteStore, person: str) -> str:
    """Raises NotFound unless `person` is in the config or was let in."""
    configured, local_owner = people_of(config)
    people = {*configured, *([local_owner.id] if local_owner else [])}
    people |= {each.identity for each in await store.access_requests("approved")}
    if person not in people:
        raise NotFound(f"There is no person {person!r}.", hint=f"Known are: {', '.join(sorted(people))}.")
    return person
