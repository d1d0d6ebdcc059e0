"""The transport of docs/examples/clew-folder, installed as a package of its own."""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "docs" / "examples" / "clew-folder"


def installed(folder: Path) -> Path:
    """Build and install it beside clew, not into its environment. Returns what PYTHONPATH has to name. Nothing is downloaded."""
    source, target = folder / "source", folder / "site"
    shutil.copytree(PACKAGE, source)
    options = ["--quiet", "--disable-pip-version-check", "--no-index", "--no-deps", "--no-build-isolation", "--no-compile"]
    command = [sys.executable, "-m", "pip", "install", *options, "--target", str(target), str(source)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert ran.returncode == 0, ran.stderr
    return target
