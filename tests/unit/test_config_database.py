"""`store` of the config: where a database is, and that its password is shown nowhere."""

from pathlib import Path

import pytest
import yaml

from clew.cli.options import read
from clew.config import Config, shown
from clew.config.database import fault, is_shared, passwords
from clew.config.database import shown as address
from clew.errors import ConfigError
from clew.store.backups import by_hand

SECRET = "rather-long-secret"


@pytest.mark.parametrize(
    "where",
    [
        "sqlite",
        "postgresql://clew@db/clew",
        "postgres://clew:pass%40word@db.example.org:6432/clew?sslmode=verify-full",
        "postgresql://clew@/clew?host=/var/run/postgresql",
        "postgresql:///clew",
        "postgresql://[::1]:5433/clew",
    ],
)
def test_a_file_and_addresses_are_taken(where: str) -> None:
    assert fault(where) is None
    assert is_shared(where) == (where != "sqlite")


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("mysql://db/clew", "must be sqlite, or postgresql://"),
        ("/var/lib/clew.db", "must be sqlite, or postgresql://"),
        (f"postgresql://clew:{SECRET}@db", "name of a database"),
        (f"postgresql://clew:{SECRET}@db/", "name of a database"),
        (f"postgresql://clew:{SECRET}@db/a/b", "name of a database"),
        (f"postgresql://clew:{SECRET}@db:port/clew", "cannot be read"),
        (f"postgresql://clew:a/{SECRET}@db/clew", "in the password"),
        (f"postgresql://clew:a#{SECRET}@db/clew", "in the password"),
        (f"postgresql://clew:a?{SECRET}@db/clew", "in the password"),
        (f"postgresql://clew@db/clew?password={SECRET}", "where it would be shown"),
    ],
)
def test_what_is_no_address_is_refused_without_its_password(tmp_path: Path, where: str, words: str) -> None:
    file = tmp_path / "clew.yaml"
    file.write_text(f"store: '{where}'\n")
    with pytest.raises(ConfigError) as raised:
        read(file)
    assert f"{file}:1:" in str(raised.value)
    assert words in str(raised.value)
    assert SECRET not in str(raised.value)


def loaded(tmp_path: Path, where: str) -> Config:
    file = tmp_path / "clew.yaml"
    file.write_text(f"store: '{where}'\n")
    return read(file)


def test_the_password_is_a_secret_of_the_config(tmp_path: Path) -> None:
    config = loaded(tmp_path, f"postgresql://clew:{SECRET}%21@db/clew")
    assert config.secrets() == {f"{SECRET}!", f"{SECRET}%21"}  # as it is, and as it stands in the file
    text = yaml.safe_dump(shown(config))
    assert "postgresql://clew:***@db/clew" in text
    assert SECRET not in text


def test_a_password_that_may_be_a_word_tears_no_texts_apart(tmp_path: Path) -> None:
    config = loaded(tmp_path, "postgresql://clew:clew@db/clew")
    assert not config.secrets()
    assert shown(config)["store"] == "postgresql://clew:***@db/clew"


def test_the_password_comes_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "password").write_text(f"{SECRET}\n")
    config = loaded(tmp_path, "postgresql://clew:${file:password}@db/clew")
    assert passwords(config.store) == {SECRET}
    assert SECRET in config.secrets()


@pytest.mark.parametrize("name", ["sslpassword", "ssl%70assword"])
def test_so_is_the_password_of_the_key_that_the_address_names(tmp_path: Path, name: str) -> None:
    where = f"postgresql://clew@db/clew?sslkey=/k&{name}={SECRET}%21&sslmode=require"
    config = loaded(tmp_path, where)
    assert config.secrets() == {f"{SECRET}!", f"{SECRET}%21"}
    assert shown(config)["store"] == f"postgresql://clew@db/clew?sslkey=/k&{name}=***&sslmode=require"
    assert SECRET not in address(where)
    assert by_hand(where, Path("/b/clew.dump")).endswith("'postgresql://clew@db/clew?sslkey=/k&sslmode=require'")
    short = loaded(tmp_path, "postgresql://clew@db/clew?sslpassword=clew&sslkey=/k")
    assert not short.secrets()
    assert shown(short)["store"] == "postgresql://clew@db/clew?sslpassword=***&sslkey=/k"


@pytest.mark.parametrize(
    ("where", "told"),
    [
        (f"postgresql://clew:{SECRET}@db:5433/clew?sslmode=require", "postgresql://clew@db:5433/clew"),
        ("postgresql:///clew", "postgresql:///clew"),
        ("postgresql://db/clew", "postgresql://db/clew"),
    ],
)
def test_people_are_told_an_address_without_password(where: str, told: str) -> None:
    assert address(where) == told


def test_the_command_of_a_backup_reaches_the_same_server() -> None:
    where = f"postgresql://clew:{SECRET}@/clew?host=/var/run/postgresql"
    assert by_hand(where, Path("/b/clew.dump")) == (
        "pg_dump --format=custom --file=/b/clew.dump 'postgresql://clew@/clew?host=/var/run/postgresql'"
    )
