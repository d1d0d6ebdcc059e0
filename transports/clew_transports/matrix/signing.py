"""Signing in to a homeserver: with the token of a session, or with a password to a session of clew's own."""

import importlib.util
import secrets
from dataclasses import replace
from pathlib import Path

from clew_transports.matrix.api import Api, Refusal
from clew_transports.matrix.events import Me, Place
from clew_transports.matrix.settings import NO_ACCOUNT, Settings
from clew_transports.reading import Malformed

SESSION_NAME = "clew"
"""As the session is called in the account's list of sessions."""
BAD_TOKEN = "the homeserver does not know the session any more: make a new token, or give clew the password"
BAD_PASSWORD = "the homeserver does not take this user and password"


def encrypts() -> bool:
    """Whether the extra `matrix` is installed."""
    return all(importlib.util.find_spec(name) for name in ("nio", "vodozemac", "peewee"))


def key_file(device: str) -> str:
    """The name of the file with the keys of a session."""
    return "".join(char if char.isalnum() else "_" for char in device)[:100] + ".keys"


def placed(place: Place, settings: Settings, folder: Path | None) -> Place:
    """`place` with the name of the session, where clew signs in by itself: it is stored before it is used, so that a restart is the same
    session, in which the homeserver knows repeats.

    folder: where the keys of sessions are. A session whose keys are lost is given up: others would go on using them.
    """
    if not settings.secret("password"):
        return place
    if place.user != settings.user:
        place = Place(settings.user)
    lost = folder is not None and place.since is not None and not (folder / key_file(place.device)).exists()
    return replace(place, device=f"CLEW{secrets.token_hex(4).upper()}") if lost or not place.device else place


async def sign_in(api: Api, settings: Settings, place: Place, answer_s: float) -> tuple[Me, Place]:
    """Who clew is, and the place from which it reads: another account's is none. Sets `api.token`.

    Raises Refusal, Unreached, Unanswered or Malformed.
    """
    if password := settings.secret("password"):
        if not api.token:
            api.token = await _token(api, settings.user, password, place.device, answer_s)
    else:
        api.token = settings.secret("token")
    if not api.token:
        raise Malformed(NO_ACCOUNT)
    answer = await api.call("GET", "account", "whoami", answer_s=answer_s)
    user, device = answer.get("user_id"), answer.get("device_id")
    if not isinstance(user, str) or not user.startswith("@"):
        raise Malformed("the homeserver's answer to /account/whoami is none")
    if place.user != user:
        place = replace(Place(user), device=place.device)
    return Me(user, await _name(api, user, answer_s), device if isinstance(device, str) else ""), place


async def _token(api: Api, user: str, password: str, device: str, answer_s: float) -> str:
    body = {
        "type": "m.login.password",
        "identifier": {"type": "m.id.user", "user": user},
        "password": password,
        "device_id": device,
        "initial_device_display_name": SESSION_NAME,
    }
    token = (await api.call("POST", "login", body=body, answer_s=answer_s)).get("access_token")
    if not isinstance(token, str) or not token:
        raise Malformed("the homeserver's answer to /login is none")
    return token


async def _name(api: Api, user: str, answer_s: float) -> str:
    try:
        name = (await api.call("GET", "profile", user, "displayname", answer_s=answer_s)).get("displayname")
    except Refusal:
        return ""
    return name[:200] if isinstance(name, str) else ""


def why(error: Exception) -> str:
    """What is wrong and what mends it."""
    if isinstance(error, Refusal):
        if error.kind in ("M_UNKNOWN_TOKEN", "M_MISSING_TOKEN"):
            return BAD_TOKEN
        if error.kind in ("M_FORBIDDEN", "M_USER_DEACTIVATED"):
            return BAD_PASSWORD
    return str(error)
