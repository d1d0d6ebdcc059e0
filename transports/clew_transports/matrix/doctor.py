"""What `clew doctor` asks a homeserver."""

from typing import Any

from clew.plugins import Fault
from clew_transports.calls import ANSWER_S, Unanswered, Unreached
from clew_transports.matrix.api import Api, Refusal
from clew_transports.matrix.events import Place
from clew_transports.matrix.rooms import Rooms
from clew_transports.matrix.settings import NO_ACCOUNT, Settings
from clew_transports.matrix.signing import encrypts, sign_in, why
from clew_transports.reading import Malformed

NO_PASSWORDS = "the homeserver takes no passwords"
LOOKED_INTO = 20
"""Rooms that are looked into."""


async def examine(name: str, settings: Settings) -> list[Fault]:
    """Whether the homeserver knows the account, and whether clew can speak in its rooms.

    Signing in with a password would make a session, so it is not tried.
    """
    api = Api(settings.base_url, settings.secret("token"))
    faults = []
    try:
        async with api:
            flows = (await api.call("GET", "login")).get("flows")
            if settings.secret("password") and not any(_is_password(flow) for flow in (flows if isinstance(flows, list) else ())):
                faults.append(Fault(NO_PASSWORDS, f"give transports.{name} a token"))
            if not api.token:
                return faults if settings.secret("password") else [Fault(NO_ACCOUNT, f"set transports.{name}.user and password, or token")]
            await sign_in(api, settings, Place(), ANSWER_S)
            if not encrypts() and (room := await _encrypted_room(api)):
                faults.append(Fault(f"the room {room} is encrypted, and clew cannot read it", "pip install 'clew[matrix]'", False))
    except (Refusal, Unreached, Unanswered, Malformed) as error:
        faults.append(Fault(why(error), "check transports." + name))
    return faults


def _is_password(flow: Any) -> bool:
    return isinstance(flow, dict) and flow.get("type") == "m.login.password"


async def _encrypted_room(api: Api) -> str:
    """One of the account's rooms that is encrypted, among the first LOOKED_INTO; empty for none."""
    joined = (await api.call("GET", "joined_rooms")).get("joined_rooms")
    rooms = Rooms(api, "")
    for room in (joined if isinstance(joined, list) else [])[:LOOKED_INTO]:
        if await rooms.is_encrypted(str(room)):
            return str(room)
    return ""
