"""`clew init`: what it finds, what it writes, and that it writes nothing by halves."""

import io
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from clew.cli.init import models, talking
from clew.cli.init.draft import Draft, Secret, Section, Variable, fault, rendered, typed
from clew.cli.init.models import found
from clew.cli.init.staging import staging
from clew.cli.options import models as kinds
from clew.errors import ClewError
from clew.plugins import registry
from tests.unit.test_cli import called


@pytest.fixture(autouse=True)
def nothing_local(monkeypatch: pytest.MonkeyPatch, free_port: int, tmp_path: Path) -> None:
    """No model server answers, no key is set and no `claude` is installed, whatever runs on this machine."""
    for name in ("ENDPOINT", "OLLAMA"):
        monkeypatch.setattr(models, name, f"http://127.0.0.1:{free_port}")
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY", "TELEGRAM_TOKEN", "CLEW_CONFIG", "STATE_DIRECTORY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def nothing_but(folder: Path, *names: str) -> bool:
    return sorted(os.listdir(folder)) == sorted(names)


def test_init_writes_a_file_that_loads_and_says_what_is_next(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out, _ = called(capsys, "init", "--yes")
    assert code == 0
    assert "no key is set" in out
    assert "clew chat " in out
    assert "http://127.0.0.1:8130/" in out
    assert nothing_but(tmp_path, "clew.yaml")
    assert mode(tmp_path / "clew.yaml") == 0o600
    assert called(capsys, "config", "check")[:2] == (0, "ok: clew.yaml\n")


def test_a_config_that_is_there_is_never_written_over(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "clew.yaml").write_text("# mine\n")
    code, _, err = called(capsys, "init", "--yes")
    assert (code, "is there already" in err) == (2, True)
    assert (tmp_path / "clew.yaml").read_text() == "# mine\n"
    assert nothing_but(tmp_path, "clew.yaml")


@pytest.mark.parametrize("given", [None, "", "5\n", "nine\n", "5\nada\nMars/Olympus\n", "5\nada\n\ncarrier-pigeon\n", "5\nada\n\n\n"])
def test_answers_that_end_early_or_cannot_be_write_nothing(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str | None
) -> None:
    monkeypatch.setattr("sys.stdin", None if given is None else io.StringIO(given))
    code, _, err = called(capsys, "init")
    assert code == 2
    assert "--yes" in err or "Nothing was written" in err
    assert nothing_but(tmp_path)


def test_answers_come_through_a_pipe(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("5\nAda Lovelace\nEurope/London\nwebhook\n\nhooks.example.org\ny\n"))
    assert called(capsys, "init", "--config", "deep/down/x.yaml")[0] == 0
    shown = called(capsys, "config", "show", "--config", "deep/down/x.yaml")[1]
    assert "  Ada Lovelace:\n    role: owner\n" in shown
    assert "timezone: Europe/London" in shown
    assert "    reply_hosts:\n    - hooks.example.org\n" in shown
    secret = tmp_path / "deep" / "down" / "x.secrets" / "webhook_secret"
    assert (mode(secret), mode(secret.parent), len(secret.read_text())) == (0o600, 0o700, 49)
    assert secret.read_text().strip() not in (tmp_path / "deep" / "down" / "x.yaml").read_text()


def test_flags_say_all_that_is_asked(capsys: pytest.CaptureFixture[str], tmp_path: Path, free_port: int) -> None:
    (tmp_path / "token").write_text("hush-0123456789\n")
    settings = ["mqtt.host=127.0.0.1", f"mqtt.port={free_port}", "mqtt.username=clew", "mqtt.password=@token"]
    sets = [word for each in settings for word in ("--set", each)]
    me = ("--owner", "ada", "--identity", "mqtt:ada", "--timezone", "Europe/Berlin")
    code, out, _ = called(capsys, "init", "--yes", "--provider", "none", "--transport", "mqtt", *me, *sets)
    assert code == 0
    assert f"problem  transport mqtt: nobody answers at 127.0.0.1:{free_port}" in out
    assert f"-p {free_port} -u ACCOUNT -P PASSWORD -q 1 -t chat/v1/clew/in/ada -m 'Good morning!'" in out
    text = (tmp_path / "clew.yaml").read_text()
    assert f"    port: {free_port} " in text
    assert "    username: clew " in text
    assert '    password: "${file:clew.secrets/mqtt_password}"' in text
    assert 'identities: ["mqtt:ada"]' in text
    assert "hush" not in text + out
    assert (tmp_path / "clew.secrets" / "mqtt_password").read_text() == "hush-0123456789\n"
    assert nothing_but(tmp_path, "clew.secrets", "clew.yaml", "token")


@pytest.mark.parametrize(
    ("flags", "code", "said"),
    [
        (["--transport", "pigeon"], 2, "there is no pigeon"),
        (["--transport", "telegram"], 2, "--set telegram.token=@FILE, or set TELEGRAM_TOKEN"),
        (["--transport", "telegram", "--set", "telegram.token=wrong"], 78, "transports.telegram.token: must look like"),
        (["--transport", "mqtt", "--set", "mqtt.port=many"], 2, "--set mqtt.port: must be a whole number"),
        (["--transport", "mqtt", "--set", "mqtt.prot=1"], 2, "--set mqtt.prot: unknown key; did you mean port?"),
        (["--set", "mqtt.host=broker.lan"], 2, "--set mqtt.host: there is no mqtt in this config.\nChoose it with --transport mqtt."),
        (["--set", "claude.api_key=k"], 2, "Choose it with --provider claude."),
        (["--provider", "none", "--set", "pigeon.speed=fast"], 2, "--set pigeon.speed: there is no pigeon in this config"),
        (["--set", "mqtt"], 2, "must be SECTION.KEY=VALUE"),
        (["--set", "webhook.secret=@gone"], 2, "gone: No such file"),
        (["--identity", "telegran:1"], 78, "did you mean telegram?"),
        (["--timezone", "Mars/Olympus"], 2, "is not a time zone"),
        (["--owner", ""], 2, "--owner: must have 1 to 64 characters"),
        (["--provider", "claude"], 2, "--set claude.api_key=@FILE, or set ANTHROPIC_API_KEY"),
    ],
)
def test_what_cannot_be_is_told_and_nothing_written(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, flags: list[str], code: int, said: str
) -> None:
    found_code, _, err = called(capsys, "init", "--yes", *flags)
    assert found_code == code
    assert said in err
    assert ".clew-init" not in err
    assert nothing_but(tmp_path)


@pytest.mark.parametrize(
    ("key", "provider", "kind"),
    [
        ("ANTHROPIC_API_KEY", "claude", "anthropic"),
        ("OPENAI_API_KEY", "openai", "openai"),
        ("OPENROUTER_API_KEY", "openrouter", "openai"),
    ],
)
def test_a_key_in_the_environment_chooses(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free_port: int, key: str, provider: str, kind: str
) -> None:
    monkeypatch.setenv(key, "sk-test-0123456789")
    address = f"http://127.0.0.1:{free_port}/v1"
    code, out, _ = called(capsys, "init", "--yes", "--config", "x.yaml", "--set", f"{provider}.base_url={address}")
    assert code == 0
    assert f"problem  provider {provider}: does not answer" in out
    assert "--config x.yaml" in out
    assert "sk-test" not in (tmp_path / "x.yaml").read_text()  # the file names the variable
    assert nothing_but(tmp_path, "x.yaml")
    shown = called(capsys, "config", "show", "--config", "x.yaml")[1]
    assert f"  provider: {provider}\n" in shown
    assert f"  {provider}:\n    kind: {kind}\n" in shown


class Models(BaseHTTPRequestHandler):
    """Lists one model as llama.cpp does, and as Ollama does."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"data": [{"id": "qwen3:8b"}], "models": [{"name": "gemma3"}]}')

    def log_message(self, *args: object) -> None:
        pass


@contextmanager
def serving() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Models) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_model_servers_and_the_claude_program_are_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert found({}) == []
    with serving() as url:
        monkeypatch.setattr(models, "ENDPOINT", url)
        assert [(each.name, each.section.values) for each in found({})] == [("local", {"base_url": url, "model": "qwen3:8b"})]
        monkeypatch.setattr(models, "OLLAMA", url)
        (tmp_path / "claude").touch(0o700)
        every = found({"ANTHROPIC_API_KEY": "x", "PATH": str(tmp_path)})
    assert [each.name for each in every] == ["claude", "local", "home", "sub"]
    assert every[2].section == Section("home", "ollama", {"model": "gemma3"})


def test_every_transport_that_is_set_up_asks_for_keys_that_there_are() -> None:
    for name, plugin in registry("clew.transports").items():
        if plugin.setup:
            assert {ask.key for ask in plugin.setup.asks} <= set(plugin.Config.model_fields), name
            assert plugin.setup.what
            assert plugin.setup.first(plugin.Config(), "")
    assert {name for name, plugin in registry("clew.transports").items() if not plugin.setup} == {"web", "terminal"}


@pytest.mark.parametrize(
    ("kind", "key", "answer", "value"),
    [
        ("mqtt", "port", "1884", 1884),
        ("mqtt", "tls", "true", True),
        ("mqtt", "username", "1884", "1884"),
        ("irc", "channels", "#garden, #club", ["#garden", "#club"]),
        ("ntfy", "topics", "asks: hears", {"asks": "hears"}),
        ("telegram", "token", "1:a", "1:a"),
    ],
)
def test_an_answer_is_what_its_setting_takes(kind: str, key: str, answer: str, value: object) -> None:
    model = kinds("transports")[kind]
    assert typed(model, key, answer) == value
    assert fault(model, key, answer) == ""


@pytest.mark.parametrize(
    ("kind", "key", "answer", "why"),
    [
        ("mqtt", "port", "many", "must be a whole number"),
        ("mqtt", "tls", "yes", "must be true or false; write true or false instead of yes, no, on, off"),
        ("ntfy", "topics", "asks", "must be pairs such as this: that"),
        ("telegram", "token", "x", "must look like 123456789:AA…, as @BotFather gives it"),
    ],
)
def test_an_answer_that_cannot_be_is_told_in_words(kind: str, key: str, answer: str, why: str) -> None:
    assert fault(kinds("transports")[kind], key, answer) == why


def test_a_section_names_its_kind_and_keeps_secrets_out() -> None:
    section = Section("mine", "openai", {"model": "a: b", "api_key": Secret("sk-1")}, {"model": "what answers", "api_key": "what opens it"})
    text = rendered(
        Draft(section, transports=[Section("bot", "telegram", {"token": Variable("T")})]), {"mine_api_key": "clew.secrets/mine"}
    )
    model = '    model: "a: b"'
    assert f'  mine:\n    kind: openai\n{model:<40}# what answers\n    api_key: "${{file:clew.secrets/mine}}" # what opens it\n' in text
    assert '  bot:\n    kind: telegram\n    token: "${T}"\n' in text
    assert "sk-1" not in text


def test_all_takes_its_place_or_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "new" / "clew.yaml"
    draft = Draft(transports=[Section("webhook", "webhook", {"secret": Secret("0123456789abcdefgh")})])
    with staging(target) as staged:
        staged.load(draft)
        target.parent.mkdir()
        target.mkdir()  # it comes meanwhile, and cannot be replaced by a link
        (target / "x").touch()
        monkeypatch.setattr(Path, "replace", lambda self, other: (_ for _ in ()).throw(PermissionError(13, "Permission denied")))
        with pytest.raises(ClewError, match="nothing could be written"):
            staged.take_place()
    assert nothing_but(tmp_path, "new")
    assert nothing_but(tmp_path / "new", "clew.yaml")


def test_secrets_of_an_earlier_time_stay(tmp_path: Path) -> None:
    draft = Draft(transports=[Section("webhook", "webhook", {"secret": Secret("0123456789abcdefgh")})])
    for text in ("one.yaml", "two.yaml"):
        with staging(tmp_path / text) as staged:
            staged.load(draft)
            staged.take_place()
        (tmp_path / text).rename(tmp_path / "one.yaml")
        (tmp_path / "one.secrets").rename(tmp_path / "two.secrets") if text == "one.yaml" else None
    assert nothing_but(tmp_path / "two.secrets", "webhook_secret", "webhook_secret-2")
    assert 'secret: "${file:two.secrets/webhook_secret-2}"' in (tmp_path / "one.yaml").read_text()


def test_the_first_message_is_told_for_each_platform(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "clew.yaml").write_text("transports: {ntfy: {topics: {asks: hears}}}\npeople: {ada: {identities: ['ntfy:asks']}}\n")
    from clew.cli.options import settings

    assert talking.first_messages(settings(tmp_path / "clew.yaml")) == [("ntfy", "curl -d 'Good morning!' https://ntfy.sh/asks")]
    assert json.loads(called(capsys, "config", "schema")[1])["title"] == "clew"


def test_the_example_of_every_key_is_at_hand(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = called(capsys, "config", "example")
    assert (code, out) == (0, Path(__file__).parents[2].joinpath("config.example.yaml").read_text())
