"""Where and of what a measurement is."""

import os
import platform
import sqlite3
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]


def machine() -> str:
    """The processor, how many cores of it may be used, and the system."""
    model = next((line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")), platform.machine())
    return f"{model}, {len(os.sched_getaffinity(0))} cores, {platform.system()} {platform.release().partition('-')[0]}"


def python() -> str:
    return f"{platform.python_implementation()} {platform.python_version()}"


def sqlite() -> str:
    return sqlite3.sqlite_version


def commit() -> str:
    """The commit that is checked out, with `+` where files of the program differ from it; empty where git or its folder is missing."""
    head = _git("rev-parse", "--short", "HEAD")
    changed = _git("status", "--porcelain", "--", "daemon", "transports", "bench", "requirements.lock", ":!bench/results.json")
    return f"{head}+" if head and changed else head


def _git(*arguments: str) -> str:
    try:
        return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text("utf-8").splitlines()
    except OSError:
        return []
