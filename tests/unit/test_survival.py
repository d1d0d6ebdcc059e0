"""What of a conversation must survive, told by the words alone."""

import pytest

from clew.context.survival import MAX_OUTCOMES, MAX_STATEMENTS, Said, Statement, heard, said, weight_of
from clew.context.weighing import MUST
from clew.messages import OVERHEARD, Message, Text, ToolCall, ToolResult
from tests.threads import START

DAY = 86_400.0
KEY = "ghp_" + "a1B2c3D4e5" * 3


def conversation(*lines: tuple[str, str], apart: float = 60.0) -> list[Said]:
    names = {"user": "Ada"}
    return [Said(text, names.get(role, role), role, f"m{n}", n, START + n * apart) for n, (role, text) in enumerate(lines, 1)]  # type: ignore[arg-type]


def one(text: str, role: str = "user") -> Statement:
    (statement,) = heard(conversation((role, text))).statements
    return statement


@pytest.mark.parametrize(
    ("text", "kind", "certainty"),
    [
        ("Never deploy to production on a Friday.", "constraint", "said"),
        ("Veröffentliche niemals etwas ohne meine Zustimmung.", "constraint", "said"),
        ("Ne publie jamais rien sans mon accord.", "constraint", "said"),
        ("No publiques nunca nada sin mi permiso.", "constraint", "said"),
        ("Nie publikuj niczego bez mojej zgody.", "constraint", "said"),
        ("Никогда не публикуй ничего без моего разрешения.", "constraint", "said"),
        ("没有我的同意,绝对不要发布任何东西。", "constraint", "said"),
        ("私の許可なく絶対に公開しないでください。", "constraint", "said"),
        ("Correction: the meeting is on Tuesday, not on Monday.", "correction", "said"),
        ("The scans are from August 1989, not 1987.", "correction", "said"),
        ("We decided to use SQLite because one file is enough.", "decision", "said"),
        ("We'll switch to the train, since it is cheaper and calmer.", "decision", "said"),
        ("Please remind me on 12 June to renew the passport.", "task", "said"),
        ("I'll call his mother in Canada next week.", "task", "said"),
        ("Ich kaufe bis Freitag drei Rauchmelder für den Flur.", "task", "said"),
        ("Can you book a table for six people at the harbour?", "request", "asked"),
        ("Which of the two hosters is cheaper?", "question", "asked"),
        ("My daughter is allergic to peanuts.", "preference", "said"),
        ("The repository is git.example.org/core/tide.git", "fact", "said"),
        ("I think the tap costs about 80 €.", "fact", "guessed"),
        ("If we moved to Oslo, we would need a visa.", "fact", "hypothetical"),
    ],
)
def test_a_persons_sentence_is_told_for_what_it_is(text: str, kind: str, certainty: str) -> None:  # P17 P18
    statement = one(text)
    assert (statement.kind, statement.certainty) == (kind, certainty)
    assert statement.weight >= MUST or certainty == "asked"


@pytest.mark.parametrize("text", ["ok thanks", "Haha nice one!", "The soup was lovely.", "Sure", "Danke dir!", "好的", "はい"])
def test_small_talk_need_not_survive(text: str) -> None:
    assert not any(each.weight >= MUST for each in heard(conversation(("user", text))).statements)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("I will send you the invoice tomorrow morning.", "promise"),
        ("Booked: the reference is QX-4471.", "outcome"),
        ("The log is at /var/log/clew/today.log on the server.", "fact"),
    ],
)
def test_of_the_assistant_its_promises_and_findings_survive(text: str, kind: str) -> None:  # P17
    statement = one(text, "assistant")
    assert statement.kind == kind
    assert statement.must


def test_what_the_assistant_only_thinks_weighs_less_than_what_a_person_says() -> None:
    rule = "You must never mix these two paints, it ruins the finish."
    assert one(rule).weight > one(rule, "assistant").weight


def test_a_failed_tool_is_an_error_and_a_result_is_heard_in_part() -> None:  # P17
    failed = Message("m1", 1, "tool", (ToolResult("c1", "find", "connection refused\nby db-7", is_error=True),), START)
    (first, second) = heard([said(failed)]).statements
    assert (first.kind, first.said.speaker) == ("error", "tool")
    assert second.must
    listing = "\n".join(f"file-{number}.log failed" for number in range(50))
    statements = heard([Said(listing, "tool", "tool", "m1", 1, START)]).statements
    assert sum(each.must for each in statements) == MAX_OUTCOMES


def test_one_message_cannot_fill_the_summary() -> None:
    text = " ".join(f"The port of srv-{number} is 81{number:02}." for number in range(90))
    assert sum(each.must for each in heard(conversation(("user", text))).statements) == MAX_STATEMENTS


def test_a_short_answer_keeps_the_question_it_answers() -> None:  # P17
    statements = heard(conversation(("assistant", "Shall we take the red or the blue one?"), ("user", "The blue one."))).statements
    assert statements[-1].text == "Shall we take the red or the blue one? – The blue one."
    assert [each.id for each in (statements[-1].also, statements[-1].said) if each] == ["m1", "m2"]
    rule = heard(
        conversation(("assistant", "Anything else to know?"), ("user", "Never ring the bell after nine, the baby wakes."))
    ).statements
    assert rule[-1].text == "Never ring the bell after nine, the baby wakes."


def test_an_answered_question_weighs_less_than_an_open_one() -> None:  # P17
    asked = ("user", "How do I sharpen the garden shears properly?")
    answer = "Take the shears apart, clamp a blade of the shears, draw a fine file along the bevel and oil the joint afterwards."
    answered = heard(conversation(asked, ("assistant", answer))).statements[0]
    noted = heard(conversation(asked, ("assistant", "I'll look that up."))).statements[0]
    assert answered.weight < noted.weight


def test_a_rule_about_nothing_weighs_less_than_a_rule() -> None:  # P17
    assert one("Don't start.").weight + 20 < one("Don't ever open the cellar door at night.").weight


def test_who_said_it_counts_in_the_ledger_as_in_the_thread() -> None:  # P17
    text = "Core 0: +41.0 °C, 10,214 assets found in /tank/photos"
    for role, speaker in (("user", "Ada"), ("assistant", "assistant"), ("tool", "tool")):
        assert weight_of(text, speaker, START, START) == one(text, role).weight
    assert one(text).weight > one(text, "assistant").weight > one(text, "tool").weight


def test_many_words_alone_are_no_reason_to_survive() -> None:
    text = "We sat outside under the old chestnut tree, talked about school friends and laughed."
    assert not one(text).must
    assert one(f"{text} The key is under /etc/clew/key.pem").must


def test_what_was_to_be_by_a_day_that_is_over_weighs_less() -> None:  # P17
    text = "Remind me on 2 June to pay the rent."
    at = START  # 28 May
    assert weight_of(text, "Ada", at, at) > weight_of(text, "Ada", at, at + 30 * DAY)
    rule = "Never pay the rent in cash."
    assert weight_of(rule, "Ada", at, at) == weight_of(rule, "Ada", at, at + 300 * DAY)


def test_messages_are_heard_without_their_secrets_and_without_calls() -> None:  # P19
    row = Message("m1", 7, "assistant", (Text(f"The key is {KEY}."), ToolCall("c", "find", '{"q": "never"}')), START)
    spoken = said(row)
    assert KEY not in spoken.text
    assert "never" not in spoken.text
    assert (spoken.speaker, spoken.place, spoken.at) == ("assistant", 7, START)


def test_a_line_to_the_others_of_a_group_binds_nobody() -> None:  # P17
    words = "Never deploy to port 4711 on a Friday!"
    aside = said(Message("a", 1, "user", (Text(words),), 1.8e9, "bob", "Bob", f"{OVERHEARD}k3v9"))
    asked = said(Message("b", 2, "user", (Text(words),), 1.8e9, "bob", "Bob", "k3v9"))
    assert (aside.speaker, asked.speaker) == ("Bob (to the group)", "Bob")
    assert [[each.must for each in heard([one]).statements] for one in (aside, asked)] == [[False], [True]]
