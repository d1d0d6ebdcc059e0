"""The API against its own description, as schemathesis reads it: a real daemon, requests that fit it and requests that do not."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.servers import free_port

SECONDS = 30
"""For which requests are made; how many that are depends on the machine."""
CHECKS = """\
[checks]
# A request that fits the schema may be refused all the same: no schema says that two fields exclude each other, that a person is known,
# that an address has a transport.
positive_data_acceptance.enabled = false
# 413 is among them here: what is too long is wrong.
negative_data_rejection.expected-statuses = [400, 401, 403, 404, 405, 406, 409, 413, 415, 422, 428, 429]
"""


@pytest.mark.e2e
def test_the_api_is_as_it_is_described(tmp_path: Path) -> None:
    port = free_port()
    config = {
        "data_dir": str(tmp_path / "data"),
        "http": {"port": port},
        "providers": {"none": {"kind": "offline"}},
        "log": {"level": "error"},
    }
    (tmp_path / "clew.yaml").write_text(json.dumps(config))
    (tmp_path / "schemathesis.toml").write_text(CHECKS)
    command = [sys.executable, "-c", "from clew.cli import main; main()", "run", "--config", str(tmp_path / "clew.yaml")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as clew:
        try:
            assert clew.stdout
            assert "ready" in clew.stdout.readline()
            run = subprocess.run(
                [
                    *(sys.executable, "-m", "schemathesis.cli", "run", f"http://127.0.0.1:{port}/api/v1/openapi.json"),
                    *("--phases", "coverage,fuzzing", "--max-examples", "5", "--generation-deterministic", "--workers", "1"),
                    *("--warnings", "off", "--continue-on-failure", "--max-time", str(SECONDS), "--no-color"),
                ],
                capture_output=True,
                text=True,
                cwd=tmp_path,
                env={**os.environ, "HYPOTHESIS_STORAGE_DIRECTORY": str(tmp_path / "examples")},
                timeout=110,
                check=False,
            )
        finally:
            clew.terminate()
            _, err = clew.communicate(timeout=60)
    assert run.returncode == 0, run.stdout[-8000:]
    assert "Tested: " in run.stdout, run.stdout[-2000:]
    assert "Traceback" not in err, err[-4000:]
