"""Texts that are written for a model, and their versions."""

import hashlib
from importlib.resources import files

from clew.prompts import load

PUBLISHED = {
    "notes-1": "cea7f50462093e90",
    "summary-1": "b1907dc242b29157",
    "summary-2": "568c1b8e43ab509b",
    "summary_behind-1": "ecc8d228f80a8e97",
    "summary_format-1": "901ee10e90a2d432",
    "summary_format-2": "964fac2e665d6812",
}
"""Hash of the text of each version there ever was. A changed text is a new version: raise the number in the file and add a line here."""


def shipped() -> list[str]:
    return sorted(path.name.removesuffix(".md") for path in files("clew.prompts").iterdir() if path.name.endswith(".md"))


def test_a_changed_prompt_has_a_raised_version() -> None:  # P21 P50
    for name in shipped():
        prompt = load(name)
        assert PUBLISHED.get(prompt.version) == hashlib.sha256(prompt.text.encode()).hexdigest()[:16], f"{prompt.version} has another text"


def test_a_prompt_is_loaded_by_name_with_its_newest_version() -> None:  # P50
    assert shipped() == ["notes", "summary", "summary_behind", "summary_format"]
    for name in shipped():
        newest = max(int(version.rpartition("-")[2]) for version in PUBLISHED if version.rpartition("-")[0] == name)
        assert load(name).version == f"{name}-{newest}"
