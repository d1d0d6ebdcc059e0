import subprocess
import sys

HEAVY = ("anthropic", "openai", "httpx2", "jiter")


def test_no_sdk_is_imported_with_the_providers() -> None:
    modules = ", ".join(f"clew.providers.{kind}" for kind in ("anthropic", "openai", "offline"))
    code = f"import sys, {modules}; print(*(name for name in {HEAVY!r} if name in sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == []
