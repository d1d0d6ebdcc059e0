"""The account's identity (cross-signing). With it clew's session counts as confirmed by its owner: some clients give keys to no other."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import vodozemac
from nio.api import Api as NioApi
from nio.crypto.sessions import derive_pickle_key

from clew_transports.matrix.api import Api, Refusal
from clew_transports.matrix.encryption import Encryption

FILE = "identity.keys"
KINDS = ("master", "self_signing", "user_signing")


class OtherIdentity(Exception):
    """The account has an identity whose keys another client has."""


async def confirm(api: Api, encryption: Encryption, folder: Path, password: str) -> None:
    """Make the account's identity if it has none, and sign clew's session with it, unless that is done.

    Raises OtherIdentity, Refusal, Unreached, Unanswered.
    """
    user = encryption.user
    answer = await api.call("POST", "keys", "query", body={"device_keys": {user: []}})
    known = _mapping(_mapping(answer.get("master_keys")).get(user))
    keys = _loaded(folder / FILE)
    if known and (keys is None or _public(keys["master"]) not in _mapping(known.get("keys")).values()):
        raise OtherIdentity
    if keys is None:
        keys = {kind: vodozemac.Account() for kind in KINDS}
        _save(folder / FILE, keys)  # before anybody knows of it
    if not known:
        await _upload(api, user, keys, password)
    told = _mapping(_mapping(_mapping(answer.get("device_keys")).get(user)).get(encryption.device))
    signer = f"ed25519:{_public(keys['self_signing'])}"
    if signer in _mapping(_mapping(told.get("signatures")).get(user)):
        return
    device = encryption.device_keys()
    device["signatures"] = {user: {**device["signatures"][user], signer: _signature(keys["self_signing"], device)}}
    await api.call("POST", "keys", "signatures", "upload", body={user: {encryption.device: device}})


async def _upload(api: Api, user: str, keys: Mapping[str, Any], password: str) -> None:
    body: dict[str, Any] = {f"{kind}_key": _told(user, kind, keys[kind]) for kind in KINDS}
    master = _public(keys["master"])
    for kind in KINDS[1:]:
        told = body[f"{kind}_key"]
        told["signatures"] = {user: {f"ed25519:{master}": _signature(keys["master"], told)}}
    try:
        await api.call("POST", "keys", "device_signing", "upload", body=body)
    except Refusal as refusal:
        if not (refusal.session and password):
            raise
        identifier = {"type": "m.id.user", "user": user}
        body["auth"] = {"type": "m.login.password", "identifier": identifier, "password": password, "session": refusal.session}
        await api.call("POST", "keys", "device_signing", "upload", body=body)


def _told(user: str, kind: str, key: Any) -> dict[str, Any]:
    return {"user_id": user, "usage": [kind], "keys": {f"ed25519:{_public(key)}": _public(key)}}


def _signature(key: Any, told: Mapping[str, Any]) -> str:
    bare = {name: value for name, value in told.items() if name not in ("signatures", "unsigned")}
    signed: str = key.sign(NioApi.to_canonical_json(bare).encode()).to_base64()
    return signed


def _public(key: Any) -> str:
    public: str = key.ed25519_key.to_base64()
    return public


def _loaded(path: Path) -> dict[str, Any] | None:
    try:
        pickles = json.loads(path.read_bytes())
        return {kind: vodozemac.Account.from_pickle(pickles[kind], derive_pickle_key("")) for kind in KINDS}
    except (OSError, ValueError, KeyError, vodozemac.PickleException):
        return None


def _save(path: Path, keys: Mapping[str, Any]) -> None:
    data = json.dumps({kind: keys[kind].pickle(derive_pickle_key("")) for kind in KINDS}).encode()
    beside = path.with_suffix(".new")
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
