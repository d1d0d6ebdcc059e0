"""What `clew init` writes is read back as it was meant, whatever is answered."""

import tempfile
from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st

from clew.cli.init.draft import Draft, Secret, Section, rendered, typed, written
from clew.cli.options import models
from clew.config import load
from clew.config.yaml import List, Mapping, Scalar, parse

TEXT = st.text(st.characters(exclude_categories=["C"], exclude_characters="\ufeff"), max_size=60)
PLAIN = st.recursive(
    TEXT | st.integers(-(10**9), 10**9) | st.booleans(),
    lambda each: st.lists(each, max_size=3) | st.dictionaries(TEXT.filter(bool), each, max_size=3),
    max_leaves=6,
)
MQTT = models("transports")["mqtt"]


def expanded(value: object) -> object:
    """What the loader makes of `$${`."""
    if isinstance(value, str):
        return value.replace("$${", "${")
    if isinstance(value, list):
        return [expanded(each) for each in value]
    return {expanded(key): expanded(each) for key, each in value.items()} if isinstance(value, dict) else value


def plain(node: object) -> object:
    if isinstance(node, Mapping):
        return {key: plain(item) for key, item in node.items.items()}
    if isinstance(node, List):
        return [plain(item) for item in node.items]
    assert isinstance(node, Scalar)
    return node.value


@given(PLAIN)
def test_a_value_is_read_back_as_it_was(value: object) -> None:
    root, findings = parse(f"v: {written(value)}".encode(), "x.yaml")
    assert not findings
    assert expanded(plain(root.items["v"])) == value


@example(owner="Ada ${HOME}", username="${HOME} and $${HOME}", password="${HOME}")
@given(owner=TEXT.filter(lambda text: text.strip() and ":" not in text), username=TEXT.filter(bool), password=TEXT.filter(bool))
def test_any_answer_makes_a_config_that_loads(owner: str, username: str, password: str) -> None:
    section = Section("mqtt", "mqtt", {"username": username, "password": Secret(password)}, {"username": "its account"})
    draft = Draft(None, owner, "Europe/Berlin", ["mqtt:ada"], [section])
    with tempfile.TemporaryDirectory() as name:
        path, secret = Path(name) / "clew.yaml", Path(name) / "secret"
        secret.write_text(f"{password}\n", encoding="utf-8")
        path.write_text(rendered(draft, {"mqtt_password": "secret"}), encoding="utf-8")
        config = load(path, transports=models("transports"), providers=models("providers"), env={"HOME": name})
    settings = config.transports["mqtt"].settings
    assert isinstance(settings, MQTT)
    assert (settings.username, settings.password.get_secret_value()) == (username, password)  # type: ignore[attr-defined]
    assert config.people[owner].identities == ("mqtt:ada",)
    assert config.agent.timezone == "Europe/Berlin"


@given(st.lists(st.from_regex(r"#[a-z0-9-]{1,20}", fullmatch=True), max_size=5))
def test_a_list_is_answered_with_commas(channels: list[str]) -> None:
    assert typed(models("transports")["irc"], "channels", ", ".join(channels)) == channels
