"""The lines of a summariser's answer."""

import pytest

from clew.context.operations import MAX_OPERATIONS, Operation, parse

DECISION = Operation("add", 0, "decision", "Use SQLite.", "one file is enough", "Ada", "said", "", ("57", "61"))
RULE = Operation("add", 0, "constraint", "Never deploy on Fridays.", "", "Ada", "said", "", ("5",))
TASK = Operation("add", 0, "task", "Book the ferry", "", "Ada", "said", "", ("7",))


@pytest.mark.parametrize(
    ("line", "operation"),
    [
        ("+ decision | Ada | said | #57,#61 | Use SQLite. | because one file is enough", DECISION),
        ("~ 12 | new text | #80", Operation("amend", 12, text="new text", sources=("80",))),
        ("x 12 | done | #80", Operation("close", 12, status="done", sources=("80",))),
        ("- 12 | said by mistake", Operation("drop", 12, reason="said by mistake")),
        ("=", Operation("keep")),
    ],
)
def test_the_forms_that_are_asked_for(line: str, operation: Operation) -> None:  # P15
    assert parse(line) == [operation]


@pytest.mark.parametrize(
    ("line", "operation"),
    [
        ("+decision|Ada|said|#57, #61|Use SQLite.|because: one file is enough", DECISION),
        ("- + decision | Ada | said | [#57 #61] | Use SQLite. | reason: one file is enough", DECISION),
        ("* **+ constraint | Ada | said | #5 | Never deploy on Fridays.**", RULE),
        ("**+** Constraint | **Ada** | Said | #5 | Never deploy on Fridays.", RULE),
        ("`+ constraints | Ada | said | #5 | Never deploy on Fridays.`", RULE),
        ("| + | rule | Ada | stated | #5 | Never deploy on Fridays. |", RULE),
        ("+ constraint ｜ Ada ｜ said ｜ #5 ｜ Never deploy on Fridays.", RULE),
        ("> + constraint | Ada | said | 5 | Never deploy on Fridays.", RULE),
        ("ADD: constraint | Ada | said | Never deploy on Fridays. | #5", RULE),
        ("3. + todo | Ada | said | #7 | Book the ferry", TASK),
        (
            "+ task | Ada | said | #7 | Book the ferry | in_progress",
            Operation("add", 0, "task", "Book the ferry", "", "Ada", "said", "in progress", ("7",)),
        ),
        ("+ task | Book the ferry | #7", Operation("add", 0, "task", "Book the ferry", sources=("7",))),
        ("+ task | Book the ferry", Operation("add", 0, "task", "Book the ferry")),
        ("+ Aufgabe | Ada | said | #7 | Book the ferry", Operation("add", 0, "", "Book the ferry", "", "Ada", "said", "", ("7",))),
        ("+ identifier | Ada | said | #7 | 4711", Operation("add", 0, "identifier", "4711", "", "Ada", "said", "", ("7",))),
        ("+ identifier | 4711 | #7", Operation("add", 0, "identifier", "4711", sources=("7",))),
        ("+ fact | Ada | said | #7 | ps aux|grep x", Operation("add", 0, "fact", "ps aux|grep x", "", "Ada", "said", "", ("7",))),
        ("+ fact | ? | guess | #7-9 | about 80 €", Operation("add", 0, "fact", "about 80 €", "", "", "guessed", "", ("7", "8", "9"))),
        ("~ 12 | constraint | Ada | said | #80 | text", Operation("amend", 12, "constraint", "text", "", "Ada", "said", "", ("80",))),
        ("~ #12: text", Operation("amend", 12, text="text")),
        ("x 12", Operation("close", 12, status="done")),
        ("[x] 12", None),
        ("✓ 12 | answered", Operation("close", 12, status="answered")),
        ("close 12 | open", Operation("close", 12, status="done")),
        ("- **x 12** | resolved | 80", Operation("close", 12, status="done", sources=("80",))),
        ("drop 12 | #80 | superseded", Operation("drop", 12, reason="superseded", sources=("80",))),
        ("12 | task | Ada | said | #7 | Book the ferry", Operation("keep", 12, "task", "Book the ferry", "", "Ada", "said", "", ("7",))),
        ("- 12 | task | Ada | said | #7 | Book the ferry", Operation("keep", 12, "task", "Book the ferry", "", "Ada", "said", "", ("7",))),
    ],
)
def test_what_small_models_make_of_them_is_understood(line: str, operation: Operation | None) -> None:  # P15
    assert parse(line) == ([] if operation is None else [operation])


@pytest.mark.parametrize(
    "line",
    ["Here are the changes:", "```", "- 12 eggs were bought", "+ 5 apples", "- the plan", "x marks the spot", "## Goal", "~ soon", ""],
)
def test_talk_around_them_is_none(line: str) -> None:
    assert parse(line) == []


def test_operations_come_in_their_order_and_are_bounded() -> None:
    answer = "Gerne, hier die Änderungen:\n\n```\n+ task | Ada | said | #7 | Book the ferry\nx 3 | done | #8\n```\nSonst nichts."
    assert parse(answer) == [TASK, Operation("close", 3, status="done", sources=("8",))]
    assert len(parse("".join(f"x {number}\n" for number in range(10_000)))) == MAX_OPERATIONS


def test_a_stammering_model_is_heard_once() -> None:
    line = "+ task | Ada | said | #7 | Book the ferry\n"
    assert parse(line * 10_000) == [TASK]
