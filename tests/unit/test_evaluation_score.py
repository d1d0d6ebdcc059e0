"""The measure itself: summaries with one known fault each, and none."""

from dataclasses import replace
from datetime import UTC

import pytest

from clew.context.ledger import Entry, render, to_json
from clew.evaluation.invented import invented, said
from clew.evaluation.key import Item
from clew.evaluation.score import FAULTS, Score, score
from clew.evaluation.statement import Statement, statements
from clew.evaluation.wording import holds, plain, satisfies, sentences, shared
from clew.messages import Message, Text, ToolCall, ToolResult
from clew.store import Compaction

THREAD = (
    ("Ruth", "The photos live in /tank/photos and the machine answers at attic.lan."),
    ("Ruth", "Don't ever restart the machine while the backup runs."),
    ("assistant", "I'll make a copy of the database on Tuesday."),
    ("Ruth", "The fan is louder, I think."),
    ("Ruth", "We take Immich, because the phones upload by themselves."),
    ("Ruth", "Power goes on 26 February."),
    ("Ruth", "No, it's Friday the 27th, not the 26th."),
    ("Ruth", "Please remind me to call Margaret."),
    ("Ruth", "Margaret has rung, all done."),
)
KEY = (
    Item("path", "identifier", (1,), "/tank/photos", (("/tank/photos",),), "Ruth"),
    Item("backup", "constraint", (2,), THREAD[1][1], (("restart",), ("backup",), ("don't", "never")), "Ruth"),
    Item("copy", "task", (3,), THREAD[2][1], (("copy",), ("database",)), "assistant"),
    Item("fan", "certainty", (4,), THREAD[3][1], (("fan",), ("louder",)), "Ruth", "guessed", hedge=("I think",)),
    Item("immich", "decision", (5,), THREAD[4][1], (("Immich",),), "Ruth", reason=(("phones",),)),
    Item("power", "identifier", (6,), "26 February", (("26 February",),), "Ruth", until=7),
    Item("power2", "correction", (7,), THREAD[6][1], (("Friday the 27th",),), "Ruth", wrong=("26 February",)),
    Item("margaret", "task", (8,), THREAD[7][1], (("call Margaret",),), "Ruth", until=9),
)
ENTRIES = {
    "path": Entry("identifier", "The photos live in /tank/photos.", speaker="Ruth", sources=("m1",)),
    "backup": Entry("constraint", "Don't ever restart the machine while the backup runs.", speaker="Ruth", sources=("m2",)),
    "copy": Entry("promise", "I'll make a copy of the database on Tuesday.", speaker="assistant", sources=("m3",)),
    "fan": Entry("fact", "The fan is louder.", speaker="Ruth", certainty="guessed", sources=("m4",)),
    "immich": Entry("decision", "We take Immich", reason="the phones upload by themselves", speaker="Ruth", sources=("m5",)),
    "power2": Entry("correction", "No, it's Friday the 27th, not the 26th.", speaker="Ruth", sources=("m7",)),
}
MESSAGES = tuple(
    Message(f"m{at}", at, "assistant" if name == "assistant" else "user", (Text(text),), 1_770_000_000.0, sender_name=name)
    for at, (name, text) in enumerate(THREAD, 1)
)


def scored(entries: dict[str, Entry] = ENTRIES, *, text: str | None = None, dropped: tuple[str, ...] = (), upto: int = 9) -> Score:
    ledger = tuple(entries.values())
    shown = render(ledger) if text is None else text
    compaction = Compaction("c", "s", None, 1, upto, to_json(ledger), shown, "count", "summary-1", "{}", 1, upto, 0.0)
    behind = [message for message in MESSAGES if message.seq <= upto]
    return score(
        KEY,
        statements(compaction, {message.id: message.seq for message in behind}),
        dropped,
        {message.seq: words for message in behind for words in [plain(message.text)]},
        {message.seq: message.sender_name for message in behind},
        people=1,
    )


def fates(found: Score) -> dict[str, str]:
    return {verdict.item.id: verdict.fate for verdict in found.verdicts}


def changed(name: str, **fields: object) -> dict[str, Entry]:
    return {**ENTRIES, name: replace(ENTRIES[name], **fields)}  # type: ignore[arg-type]


def test_a_summary_that_holds_everything_has_no_fault() -> None:  # P50
    found = scored()
    assert set(fates(found).values()) == {"kept"}
    assert set(fates(found)) == set(ENTRIES)  # what is done or corrected is not asked for
    assert {verdict.told for verdict in found.verdicts} == {"right"}
    assert found.faults == ()
    assert found.entries == len(ENTRIES)


@pytest.mark.parametrize("name", ENTRIES)
def test_an_item_without_an_entry_is_lost(name: str) -> None:  # P50
    found = fates(scored({key: entry for key, entry in ENTRIES.items() if key != name}))
    assert [key for key, fate in found.items() if fate != "kept"] == [name]
    assert found[name] == "lost"


def test_a_lost_item_that_a_report_lists_is_told_apart() -> None:
    entries = {key: entry for key, entry in ENTRIES.items() if key != "path"}
    assert fates(scored(entries, dropped=("The photos live in /tank/photos.",)))["path"] == "listed"


@pytest.mark.parametrize(
    ("name", "fields", "fault"),
    [
        ("backup", {"text": "Ever restart the machine while the backup runs."}, "negation"),
        ("fan", {"certainty": "said"}, "certainty"),
        ("path", {"certainty": "guessed"}, "certainty"),
        ("path", {"speaker": "assistant"}, "speaker"),
        ("copy", {"speaker": "Ruth"}, "speaker"),
        ("path", {"sources": ("m4",)}, "source"),
        ("power2", {"text": "Power goes on 26 February.", "sources": ("m6",)}, "stale"),
        ("path", {"text": "The photos live in /tank/photos2."}, "invented"),
        ("immich", {"text": 'We take Immich, says "Dr. Weber"'}, "invented"),
        ("path", {"text": "The photos never live in /tank/photos."}, "invented"),
    ],
)
def test_each_fault_is_found(name: str, fields: dict[str, object], fault: str) -> None:  # P50
    found = scored(changed(name, **fields))
    assert fault in {each for each, _ in found.faults}
    assert sum(each == fault for each, _ in found.faults) == 1


def test_where_nobody_said_whether_it_was_a_guess_a_mark_of_one_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    marked = changed("path", certainty="guessed")
    assert [fault for fault, _ in scored(marked).faults] == ["certainty"]
    monkeypatch.setattr("tests.unit.test_evaluation_score.KEY", tuple(replace(item, certainty=None) for item in KEY))
    assert scored(marked).faults == ()


def test_a_task_that_was_done_and_stands_there_as_open_is_stale() -> None:
    entry = Entry("task", "Remind Ruth to call Margaret.", speaker="Ruth", sources=("m8",))
    assert scored({**ENTRIES, "done": entry}).faults == (("stale", "margaret"),)
    closed = Entry("task", "Remind Ruth to call Margaret.", speaker="Ruth", sources=("m8",), status="done")
    assert scored({**ENTRIES, "done": closed}).faults == ()


def test_part_of_a_rule_is_not_taken_for_its_reverse() -> None:
    assert scored({**ENTRIES, "part": Entry("fact", "She wants to restart a backup.", speaker="Ruth", sources=("m2",))}).faults == ()


def test_a_decision_without_its_reason_is_lost() -> None:
    assert fates(scored(changed("immich", reason="")))["immich"] == "lost"


def test_a_guess_without_its_hedge_is_lost() -> None:
    assert fates(scored(changed("fan", certainty="said")))["fan"] == "lost"
    assert fates(scored(changed("fan", certainty="said", text="The fan is louder, I think.")))["fan"] == "kept"


def test_a_rule_or_a_task_that_is_closed_is_lost() -> None:
    assert fates(scored(changed("backup", status="done")))["backup"] == "lost"
    assert fates(scored(changed("copy", status="done")))["copy"] == "lost"


def test_an_entry_that_the_model_does_not_see_does_not_count() -> None:
    assert set(fates(scored(text="Everything is fine.")).values()) == {"lost"}


def test_only_what_is_behind_the_cut_counts() -> None:
    assert set(fates(scored(upto=2))) == {"path", "backup"}
    assert "power" in fates(scored(upto=6))  # not corrected yet


def test_a_story_is_read_sentence_by_sentence() -> None:
    story = Entry("narrative", "Ruth keeps photos in /tank/photos. She does not want a restart. The backup runs at night.")
    found = scored({"story": story})
    assert fates(found)["path"] == "kept"
    assert fates(found)["backup"] == "lost"  # its parts stand in different sentences


def test_one_person_may_be_called_user() -> None:
    assert scored(changed("path", speaker="user")).faults == ()


def test_what_was_said_holds_calls_results_and_the_date() -> None:
    messages = (
        Message("1", 1, "assistant", (ToolCall("c", "shell", '{"command": "zpool list"}'),), 0.0),
        Message("2", 2, "tool", (ToolResult("c", "shell", "tank 7.27T"),), 0.0),
    )
    texts = said(messages, UTC)
    assert "zpool list" in texts[1]
    assert "7.27t" in texts[2]
    assert "1970-01-01" in texts[2]


def test_invented_tokens_are_named() -> None:
    def of(text: str, sources: frozenset[int]) -> list[str]:
        return invented(
            Statement("fact", text, plain(text), "", "said", False, sources, True), {1: plain("It cost £1,480 in 2025."), 2: "x"}
        )

    assert of("It cost £1480.", frozenset({1})) == []
    assert of("It cost £1,480.", frozenset({2})) == ["1,480"]
    assert of("It cost £1,490.", frozenset()) == ["1,490"]


@pytest.mark.parametrize(
    ("text", "wanted", "found"),
    [
        ("port 2290", "2290", True),
        ("port 22901", "2290", False),
        ("0,2 ml", "2 ml", False),
        ("version v1.128.0", "v1.128", False),
        ("they don’t restart it", "don't", True),
        ("nevertheless", "never", False),
        ("restarting", "restart", True),
        ("3月26日の朝", "26日", True),
        ("〝ＡＢ１２〟", "ab12", True),
        ("STRASSE", "strasse", True),
        ("costs 38.000 Euro", "38.000", True),
    ],
)
def test_words_and_numbers_are_found_whole(text: str, wanted: str, found: bool) -> None:
    assert holds(plain(text), wanted) is found


def test_each_group_needs_one() -> None:
    assert satisfies("a b", [("a", "x"), ("b",)])
    assert not satisfies("a b", [("a",), ("c", "d")])


@pytest.mark.parametrize(
    ("quote", "text", "share"), [("a b c d", "D c.", 0.5), ("柿の木は切らない", "柿の木は切る", 5 / 8), ("…", "a", 0.0)]
)
def test_shared_words(quote: str, text: str, share: float) -> None:
    assert shared(quote, text) == pytest.approx(share)


def test_dates_end_no_sentence() -> None:
    assert sentences("Er kommt am 24. März. Nicht früher!\nGut。はい。") == ["Er kommt am 24. März.", "Nicht früher!", "Gut。", "はい。"]


def test_all_faults_have_a_place_in_the_figures() -> None:
    assert len(FAULTS) == len(set(FAULTS)) == 6
