"""The examples of the docs run as they stand."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_embedding_example_runs() -> None:
    # P38: the engine works without the daemon
    text = (ROOT / "docs" / "extending.md").read_text("utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    ran = subprocess.run([sys.executable, "-W", "error", "-c", example], capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "Under the mat." in ran.stdout
    assert "You are brief." in ran.stdout
