"""Whose notes, documents or words an operator means by a person, a project or a session."""

from clew.assembly import owner_of, people_of
from clew.config import Config
from clew.context.notes import ScopeKind
from clew.errors import NotFound, UsageError
from clew.store.notes import Where
from clew.store.sql import SqlStore


async def whose(config: Config, store: SqlStore, kind: ScopeKind, *, person: str | None, project: str | None, session: str | None) -> Where:
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


async def within(
    config: Config, store: SqlStore, *, person: str | None, project: str | None, session: str | None = None, address: str | None = None
) -> Where | None:
    """Where documents are looked for: at one of these, or None, everywhere, where none is named. Raises NotFound or UsageError."""
    named = sum(each is not None for each in (person, project, session, address))
    if named > 1:
        raise UsageError("Name one of person, project, session and chat.")
    if not named:
        return None
    if address is not None:
        if not await store.sessions(address, 1):
            raise NotFound(f"There is no chat {address!r}.")
        return Where(address=address)
    return await whose(config, store, "project" if project else "user", person=person, project=project, session=session)


async def _check_project(config: Config, store: SqlStore, project: str) -> None:
    if project in config.projects or (":" in project and await store.sessions(project, 1)):
        return
    there = ", ".join(config.projects) or "none"
    raise NotFound(f"There is no project {project!r}.", hint=f"Projects of the config: {there}. The address of any chat is one too.")


async def _one(config: Config, store: SqlStore, person: str | None) -> str:
    if person is not None:
        return await known(config, store, person)
    return owner_of(config)


async def known(config: Config, store: SqlStore, person: str) -> str:
    """The id of a person by their id, name or identity. Raises NotFound unless they are in the config or were let in."""
    configured, local_owner = people_of(config)
    people = {*configured, *([local_owner.id] if local_owner else [])}
    if person in people:
        return person
    try:
        return (await store.known(person)).id
    except NotFound:
        people |= {each.id for each in await store.people()}
        raise NotFound(f"There is no person {person!r}.", hint=f"Known are: {', '.join(sorted(people))}.") from None
