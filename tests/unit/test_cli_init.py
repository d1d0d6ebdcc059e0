"""`clew init` and `clew doctor`."""

import io
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from clew.cli import init as module
from clew.cli.init import example, find, written
from tests.unit.test_cli import called


@pytest.fixture(autouse=True)
def nothing_local(monkeypatch: pytest.MonkeyPatch, free_port: int) -> None:
    """No model server answers and no key is set, whatever runs on this machine."""
    monkeypatch.setattr(module, "PROBED", (f"http://127.0.0.1:{free_port}/v1",))
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "CLEW_CONFIG", "STATE_DIRECTORY"):
        monkeypatch.delenv(name, raising=False)


def test_init_writes_a_file_that_loads(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, _ = called(capsys, "init", "--yes")
    assert code == 0
    assert "clew doctor" in out
    assert (tmp_path / "clew.yaml").read_text() == example()
    assert called(capsys, "config", "check")[0] == 0
    code, _, err = called(capsys, "init", "--yes")
    assert code == 2
    assert "is there already" in err
    assert (tmp_path / "clew.yaml").read_text() == example()


def test_init_without_anybody_to_ask_names_the_option(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    code, _, err = called(capsys, "init", "--config", str(tmp_path / "x.yaml"))
    assert code == 2
    assert "--yes" in err
    assert not (tmp_path / "x.yaml").exists()


@pytest.mark.parametrize(
    ("key", "provider", "kind"), [("ANTHROPIC_API_KEY", "claude", "anthropic"), ("OPENAI_API_KEY", "openai", "openai")]
)
def test_a_key_in_the_environment_chooses(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str, provider: str, kind: str
) -> None:
    monkeypatch.setenv(key, "sk-test")
    path = tmp_path / "x.yaml"
    code, out, _ = called(capsys, "init", "--yes", "--config", str(path))
    assert code == 0
    assert f"--config {path}" in out
    assert "sk-test" not in path.read_text()  # the file names the variable
    shown = called(capsys, "config", "show", "--config", str(path))[1]
    assert f"  provider: {provider}\n" in shown
    assert f"  {provider}:\n    kind: {kind}\n" in shown


class Models(BaseHTTPRequestHandler):
    """Lists one model to everybody but those whose key is `wrong`."""

    def do_GET(self) -> None:
        self.send_response(401 if self.headers["Authorization"] == "Bearer wrong" else 200)
        self.end_headers()
        self.wfile.write(b'{"data": [{"id": "qwen3:8b"}]}')

    def log_message(self, *args: object) -> None:
        pass


@contextmanager
def serving() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Models) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()
        thread.join()


def test_a_model_server_on_this_machine_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving() as url:
        monkeypatch.setattr(module, "PROBED", (url,))
        found = find({})
    text = written(example(), found)
    assert f'base_url: "{url}"' in text
    assert 'model: "qwen3:8b"' in text
    assert "provider: local " in text


# Doctor ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "clew.yaml"
    path.write_text(f"data_dir: {tmp_path / 'data'}\nproviders: {{none: {{kind: offline}}}}\n")
    return path


def examined(capsys: pytest.CaptureFixture[str], config: Path, *args: str) -> tuple[int, dict[str, dict[str, str]]]:
    code, out, _ = called(capsys, "doctor", "--json", "--config", str(config), *args)
    return code, {each["check"]: each for each in json.loads(out)}


def test_doctor_finds_no_problem_on_a_fresh_machine_and_mends_what_it_can(capsys: pytest.CaptureFixture[str], config: Path) -> None:
    code, found = examined(capsys, config)
    assert code == 0
    assert found["data folder"]["level"] == "warning"
    assert found["data folder"]["command"].startswith("mkdir ")
    assert {each["level"] for name, each in found.items() if name not in ("data folder", "provider", "disk")} == {"ok"}
    assert examined(capsys, config, "--fix")[1]["data folder"]["level"] == "ok"
    assert (config.parent / "data").stat().st_mode & 0o777 == 0o700


def test_doctor_says_what_is_wrong_and_what_mends_it(capsys: pytest.CaptureFixture[str], config: Path, free_port: int) -> None:
    (config.parent / "data").mkdir()
    (config.parent / "data").chmod(0o755)
    (config.parent / "data" / "clew.db").write_bytes(b"no database" * 100)
    with config.open("a") as file:
        file.write(f"transports: {{mqtt: {{port: {free_port}}}}}\n")
    code, found = examined(capsys, config)
    assert code == 1
    assert {name for name, each in found.items() if each["level"] == "problem"} == {"data folder", "store", "transports"}
    assert found["data folder"]["command"].startswith("chmod 700 ")
    assert f"mqtt at 127.0.0.1:{free_port}" in found["transports"]["text"]
    shown = called(capsys, "doctor", "--config", str(config))[1]
    assert "problem  store: " in shown
    config.write_text("htp: 1\n")
    code, found = examined(capsys, config)
    assert (code, list(found)) == (1, ["config"])


def test_doctor_says_of_a_provider_what_it_saw(capsys: pytest.CaptureFixture[str], config: Path, free_port: int) -> None:
    data = config.read_text().partition("providers:")[0]

    def seen(kind: str, url: str, key: str) -> tuple[str, str]:
        config.write_text(f"{data}providers: {{mine: {{kind: {kind}, base_url: '{url}', api_key: {key}}}}}\n")
        found = examined(capsys, config)[1]["provider"]
        return found["level"], found["text"]

    with serving() as url:
        assert seen("openai", url, "right") == ("ok", "mine answers")
        assert seen("openai", url, "wrong") == ("problem", "mine refuses the key")
        assert seen("anthropic", url, "wrong") == ("problem", "mine refuses the key")
    assert seen("openai", f"http://127.0.0.1:{free_port}", "right") == ("warning", "mine does not answer")


def test_doctor_says_which_tools_a_window_cannot_afford(capsys: pytest.CaptureFixture[str], config: Path) -> None:  # P9
    assert examined(capsys, config)[1]["tools"]["level"] == "ok"
    local = "providers: {local: {kind: openai, base_url: 'http://127.0.0.1:9/v1', model: any, context_window: 8192}}"
    config.write_text(f'data_dir: {config.parent / "data"}\n{local}\nagent: {{provider: local, system_prompt: "{"rule " * 2000}"}}\n')
    found = examined(capsys, config)[1]
    assert found["tools"]["level"] == "warning"
    assert "left out: current_time, document_search, fetch_url, memory_add_observations, " in found["tools"]["text"]


def test_doctor_names_rules_for_tools_that_there_are_not(capsys: pytest.CaptureFixture[str], config: Path) -> None:
    assert examined(capsys, config)[1]["approver"] == {"check": "approver", "level": "ok", "text": "mode ask, 0 rules", "command": ""}
    rules = "mode: pattern, allow: ['files__*', '*', 'fetch_url(url=*)'], deny: [fetch_ulr, 'schedule_*', 'mail__send', 'f*__x']"
    config.write_text(f"data_dir: {config.parent / 'data'}\nmcp_servers: {{files: {{command: [x]}}}}\nagent: {{approver: {{{rules}}}}}\n")
    found = examined(capsys, config)[1]["approver"]
    assert (found["level"], found["text"]) == ("warning", "agent.approver names tools that there are not: fetch_ulr, mail__send")


def test_doctor_says_what_is_doubtful_in_the_config(capsys: pytest.CaptureFixture[str], config: Path) -> None:
    config.write_text(f"data_dir: {config.parent / 'data'}\nhttp: {{token: abc}}\n")
    found = examined(capsys, config)[1]["config"]
    assert (found["level"], found["command"]) == ("warning", "clew config check")
    assert f"{config}:2:15 http.token: can be guessed" in found["text"]


def test_doctor_does_not_write(capsys: pytest.CaptureFixture[str], config: Path) -> None:
    before = sorted(os.listdir(config.parent))
    examined(capsys, config)
    assert sorted(os.listdir(config.parent)) == before
