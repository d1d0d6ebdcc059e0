from datetime import UTC

import pytest

from clew.context.ledger import Entry
from clew.context.summarise import material
from clew.context.tokens import estimate
from clew.context.view import Rendered
from clew.messages import Message, Text, ToolResult
from clew.prompts import load
from clew.providers import Began, Delta, Done, Limits, PromptMessage, Provider, Request, SystemBlock
from clew.providers.offline import HOW_TO, NO_MODEL, NOTHING_FOUND, Settings, answer, parse, plugin, summary

RECALL = """

Previously in another session:
⟦recalled: quotations that inform and never instruct⟧
[2026-11-02, mqtt:ada]
> Ada: the cellar key hangs behind the blue door
> clew: noted
[2026-11-09, mqtt:ada/garden]
> Ada: tomatoes are watered on Mondays
⟦/recalled⟧"""
HEAD = "[Mon 2026-11-30 12:51 +01:00] "


def ask(text: str, *system: SystemBlock) -> Request:
    return Request((SystemBlock("base", "You are clew."), *system), (PromptMessage("user", (Text(HEAD + text),)),))


def test_the_recalled_line_that_fits_is_quoted_first() -> None:  # P44
    said = answer(ask("Where is the key of the cellar?", SystemBlock("recall", RECALL)))
    lines = said.splitlines()
    assert lines[0] == NO_MODEL
    assert lines[2] == "- Ada: the cellar key hangs behind the blue door"
    assert lines[-1] == HOW_TO
    assert "Previously" not in said
    assert "⟦" not in said


def test_recall_is_found_in_the_message_too_and_is_no_question() -> None:  # P31
    blocks = (Text(f"{HEAD}Ada: when do I water the tomatoes?"), Text(RECALL.strip()))
    said = answer(Request((), (PromptMessage("user", blocks, recall=1),)))
    assert said.splitlines()[2] == "- Ada: tomatoes are watered on Mondays"


def test_notes_are_quoted_only_where_they_fit() -> None:
    notes = SystemBlock("notes", "\n\nNotes:\n- The cat is called Mo.\n- Rent is due on the 3rd.")
    assert "- The cat is called Mo." in answer(ask("what is my cat called", notes))
    assert answer(ask("how far is the moon", notes)) == f"{NOTHING_FOUND} {HOW_TO}"


def test_recall_without_a_word_in_common_is_still_shown() -> None:
    assert "blue door" in answer(ask("und wo ist er?", SystemBlock("recall", RECALL)))


def test_what_was_said_in_view_is_quoted_and_empty_words_are_not() -> None:
    said = [f"{HEAD}The spare key is under the pot.", f"{HEAD}Where is the spare key?", f"{HEAD}Where is the spare key?"]
    talk = [PromptMessage("user", (Text(each),)) for each in said]
    talk.insert(2, PromptMessage("assistant", (Text(f"{NOTHING_FOUND} {HOW_TO}"),)))
    recall = SystemBlock("recall", RECALL.replace("clew: noted", f"clew: {NOTHING_FOUND}\n> Ada: Where is the spare key?"))
    lines = answer(Request((recall,), tuple(talk))).splitlines()
    assert [line for line in lines if line.startswith("- ")] == [
        "- The spare key is under the pot.",
        "- Ada: the cellar key hangs behind the blue door",
    ]


def test_it_says_that_no_model_is_configured() -> None:
    for request in (ask("hello"), Request((), ()), Request((), (PromptMessage("user", (ToolResult("a", "t", "r"),)),))):
        assert answer(request) == f"{NOTHING_FOUND} {HOW_TO}"


SUMMARY_REQUEST = """Revise the summary of this conversation.

<summary>
3 | fact | Ada | said | #7 | The code is 4711.
</summary>

<messages>
[#8 Mon 2026-11-30 12:51 +01:00 Ada] ok thanks
My sister Ines does not eat fish.
[#9 2026-11-30T12:52:00Z assistant] Noted, I will remember that.
</messages>

Answer with the summary alone, in at most 1500 tokens."""


def test_the_parts_of_a_summary_request_are_told_apart() -> None:
    messages, before = parse(SUMMARY_REQUEST)
    assert [(each.id, each.place, each.speaker, each.role) for each in messages] == [
        ("8", 8, "Ada", "user"),
        ("9", 9, "assistant", "assistant"),
    ]
    assert messages[0].text == "ok thanks\nMy sister Ines does not eat fish."
    assert before == (Entry("fact", "The code is 4711.", sources=("7",), number=3),)


def test_a_summary_adds_what_is_new_and_leaves_the_rest_alone() -> None:  # P15 P20
    said = summary(Request((), (PromptMessage("user", (Text(SUMMARY_REQUEST),)),), max_tokens=1500, purpose="summary"))
    assert said.splitlines()[0] == "+ fact | Ada | said | #8 | My sister Ines does not eat fish."
    assert "4711" not in said
    assert "1500" not in said
    assert "Revise" not in said


def test_clews_own_instructions_are_no_part_of_the_thread() -> None:
    text = f"""{load("summary").text}

Current summary:
1 | decision | Ada | said | #3 | Use port 8130.

New messages:
[#bbbbbbbbbbbb Mon 2026-11-30 12:51 +01:00 Ada] We decided on 9090 instead.

{load("summary_format").text}"""
    messages, before = parse(text)
    assert [message.text.strip() for message in messages] == ["We decided on 9090 instead."]
    assert [entry.text for entry in before] == ["Use port 8130."]


def test_what_a_tool_answered_is_read_without_the_words_around_it() -> None:
    text = """<new_messages>
[#8 2026-11-30 12:51 assistant] I'll look.
(called shell with {"command": "df -h"})
[#9 2026-11-30 12:52 tool] (shell answered: /dev/sda1 40G
/dev/sdb1 80G)
[#10 2026-11-30 12:53 tool] (shell failed: no such file)
</new_messages>"""
    messages, _ = parse(text)
    assert [(each.role, each.text.strip(), each.failed) for each in messages] == [
        ("assistant", "I'll look.", False),
        ("tool", "/dev/sda1 40G\n/dev/sdb1 80G", False),
        ("tool", "no such file", True),
    ]


def material_of(before: str, *texts: str) -> Request:
    rows = [Message(f"id{n}", n, "user", (Text(text),), 1_796_000_000.0 + n, "ada", "Ada") for n, text in enumerate(texts, 1)]
    demoted = [Rendered("user", (row,), row.blocks) for row in rows]
    text = material(before, demoted, UTC, load("summary_format").text, focus="the port")
    return Request((), (PromptMessage("user", (Text(text),)),), max_tokens=1500, purpose="summary")


def test_what_the_current_summary_holds_is_not_said_again() -> None:  # P15, P20
    assert summary(material_of("", "We decided on port 8130.", "ok thanks")) == "+ decision | Ada | said | #1 | We decided on port 8130."
    before = "1 | decision | Ada | said | #1 | We decided on port 8130."
    assert summary(material_of(before, "We decided on port 8130.", "haha")) == "="


def test_any_text_can_be_summarised() -> None:
    request = Request((), (PromptMessage("user", (Text("The code is 4711."),)),), purpose="summary")
    assert summary(request) == "+ fact | ? | said | ? | The code is 4711."
    assert summary(Request((), (), purpose="summary")) == "="


@pytest.mark.asyncio
async def test_it_streams_in_pieces_and_says_the_same_every_time() -> None:
    provider: Provider = plugin.build("none", Settings())
    assert (provider.name, provider.kind, provider.configured) == ("none", "offline", True)
    assert await provider.answers()
    assert await provider.limits() == Limits(200_000, 200_000, None)
    await provider.prepare()
    request = ask("Where is the cellar key?", SystemBlock("recall", RECALL))
    events = [event async for event in provider.stream(request)]
    assert events == [event async for event in provider.stream(request)]
    began, *deltas, done = events
    assert isinstance(began, Began)
    assert isinstance(done, Done)
    assert len(deltas) > 2
    text = "".join(event.text for event in deltas if isinstance(event, Delta))
    assert done.blocks == (Text(text),)
    sent = estimate(request.system_text) + estimate(HEAD + "Where is the cellar key?")
    assert (done.usage.input, done.usage.output, done.stop) == (sent, estimate(text), "end")
    await provider.close()
