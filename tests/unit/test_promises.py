"""docs/promises.md says of every promise which tests prove it, and says so truly."""

from pathlib import Path

from tests import promises

PAGE = promises.PAGE.read_text("utf-8")


def test_every_promise_stands_on_the_page_once_and_in_order() -> None:
    assert promises.promised(PAGE) == list(promises.NUMBERS)


def test_the_page_names_the_tests_that_prove_each_promise() -> None:
    found = promises.proofs()
    assert set(found) <= set(promises.NUMBERS), "a test names a promise that does not exist"
    stated = promises.proven(PAGE)
    wrong = [f"P{number}" for number in promises.NUMBERS if stated[number] != promises.listed(found.get(number, ()))]
    assert wrong == [], "out of date: run `python -m tests.promises --write`"


def test_comments_on_above_and_in_a_test_are_read(tmp_path: Path) -> None:
    root = tmp_path
    (root / "tests").mkdir()
    (root / "tests" / "test_a.py").write_text(
        '# P1 is for nobody\n\nLIMIT = 3  # P2 neither\n# P3, BO-001\n@decorated(\n    "P4 in a string"\n)\n'
        "def test_one() -> None:  # P5\n    assert 1  # P6 P7\n\n\nclass TestIt:\n    async def test_two(self) -> None:\n"
        "        # P5: again\n        assert 1\n\n\ndef helper() -> None:  # P8\n    pass\n",
        encoding="utf-8",
    )
    one, two = "tests/test_a.py::test_one", "tests/test_a.py::TestIt::test_two"
    assert promises.proofs(root) == {3: [one], 5: [two, one], 6: [one], 7: [one]}


def test_a_page_is_brought_up_to_date_in_its_lists_alone() -> None:
    page = "# Page\n\n### P1\nWords.\n\nProven by:\n- `old`: `test_x`\n- `older`: `test_y`\n\n### P2\nMore.\n\nProven by: not proven yet\n"
    new = promises.updated(page, {2: ["tests/test_a.py::test_b", "tests/test_a.py::test_e", "tests/test_c.py::test_d"]})
    assert new == (
        "# Page\n\n### P1\nWords.\n\nProven by: not proven yet\n\n### P2\nMore.\n\n"
        "Proven by:\n- `tests/test_a.py`: `test_b`, `test_e`\n- `tests/test_c.py`: `test_d`\n"
    )
    assert promises.proven(new)[1] == promises.UNPROVEN
