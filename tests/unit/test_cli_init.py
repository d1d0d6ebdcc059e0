"""`clew init` and `clew doctor`."""

import io
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
