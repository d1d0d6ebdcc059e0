"""Any ledger, any answer, any conversation: what is not named stays, the size is kept, nothing is invented, nothing raises."""

from hypothesis import given
from hypothesis import strategies as st

from clew.context.contract import Index
from clew.context.evidence import gathered, holds, normal
from clew.context.identifiers import identifiers
from clew.context.ledger import CERTAINTIES, KINDS, Entry, Ledger, from_json, numbered, render, to_json, with_numbers
from clew.context.operations import parse
from clew.context.redact import redact
from clew.context.revision import Report, Size, compare, revise
from clew.context.steps import finish
from clew.context.survival import Said, heard
from clew.context.tokens import estimate
from tests.threads import START

SECRET = "ghp_" + "a1B2c3D4e5" * 3
SENTENCES = [
    "Never deploy on Fridays, unless I say go.",
    "Bitte ruf nie vor neun Uhr an.",
    "N'appelle jamais avant 9 h.",
    "绝对不要在周五部署。",
    "金曜日には絶対にデプロイしないでください。",
    "The host is db-7.example.org and listens on port 5432.",
    "I think it costs about 80 €.",
    "If we moved to Oslo, we would need a visa.",
    "Actually the deadline is 12 May, not 5 May.",
    "We decided to use SQLite because one file is enough.",
    "Remind me on 2 June to pay the rent.",
    "Which hoster is it?",
    "The ferry to Bergen is booked.",
    f"My token is {SECRET}.",
    "ok thanks",
    "It rained.",
    "a | b | #7",
    "",
]
words = st.text(st.characters(), max_size=20) | st.sampled_from(SENTENCES)
messages = st.lists(
    st.tuples(
        st.sampled_from(["user", "user", "assistant", "tool"]), st.sampled_from(["Ada", "Bob"]), st.lists(words, max_size=3).map(" ".join)
    ),
    max_size=8,
)
entries = st.builds(
    Entry,
    kind=st.sampled_from(sorted(KINDS)),
    text=words,
    reason=words,
    speaker=st.sampled_from(["Ada", "Bob", "assistant", "", "x | y"]),
    certainty=st.sampled_from(sorted(CERTAINTIES)),
    status=st.sampled_from(["open", "done", "blocked", "in progress", "lifted"]),
    date=st.floats(0, 4e9),
    sources=st.lists(st.sampled_from(["m1", "m2", "abcdefghijkl"]), max_size=3).map(tuple),
    places=st.lists(st.integers(1, 99), max_size=4).map(tuple),
)
ledgers = st.lists(entries, max_size=8).map(lambda each: with_numbers(tuple(each)))
small = st.integers(0, 12)
lines = st.one_of(
    st.builds(
        "+ {} | {} | {} | #{} | {}".format, st.sampled_from(sorted(KINDS)), words, st.sampled_from(sorted(CERTAINTIES)), small, words
    ),
    st.builds("~ {} | {} | #{}".format, small, words, small),
    st.builds("x {} | done | #{}".format, small, small),
    st.builds("- {} | {}".format, small, words),
    st.text(st.characters(), max_size=30),
)
answers = st.lists(lines, max_size=8).map("\n".join) | st.text(st.characters(), max_size=200) | words
sizes = st.integers(0, 600).map(Size)


def conversation(told: list[tuple[str, str, str]]) -> list[Said]:
    return [
        Said(redact(text), name if role == "user" else role, role, f"b{n}", n, START + 60 * n)  # type: ignore[arg-type]
        for n, (role, name, text) in enumerate(told, 1)
    ]


def listed(report: Report) -> set[int]:
    return {change.number for change in (*report.changed, *report.dropped)}


@given(ledgers, messages, answers, sizes)
def test_entries_that_nothing_befell_stay_byte_for_byte_and_in_order(
    ledger: Ledger, told: list[tuple[str, str, str]], answer: str, size: Size
) -> None:  # P15 P21
    revised, report = revise(ledger, heard(conversation(told)), answer, size=size)
    untouched = [entry for entry in ledger if entry.number not in listed(report)]
    assert [to_json((entry,)) for entry in revised if entry in untouched] == [to_json((entry,)) for entry in untouched]
    order = [entry.number for entry in revised]
    assert order == sorted(set(order))


@given(ledgers, messages, answers, sizes)
def test_a_report_accounts_for_every_entry(ledger: Ledger, told: list[tuple[str, str, str]], answer: str, size: Size) -> None:  # P21
    revised, report = revise(ledger, heard(conversation(told)), answer, size=size)
    before, after = [entry.number for entry in ledger], [entry.number for entry in revised]
    assert sorted(each.number for each in (*report.kept, *report.changed, *report.dropped) if each.number) == before
    assert sorted(each.number for each in (*report.kept, *report.changed, *report.added)) == after


@given(ledgers, messages, answers, sizes)
def test_the_size_is_kept(ledger: Ledger, told: list[tuple[str, str, str]], answer: str, size: Size) -> None:  # P17
    revised, _ = revise(ledger, heard(conversation(told)), answer, size=size)
    assert estimate(render(revised, zone=size.zone, year=size.year)) <= size.tokens


@given(messages, answers, sizes)
def test_what_must_survive_stands_in_the_ledger_or_in_the_report(
    told: list[tuple[str, str, str]], answer: str, size: Size
) -> None:  # P17 P21
    known = heard(conversation(told))
    whole, _ = revise((), known, answer, size=Size(1_000_000))
    evidence = finish(gathered(known))
    index = Index(whole, {entry.number: evidence.claim(f"{entry.text} {entry.reason}") for entry in whole})
    assert [statement for statement in known.statements if statement.must and not index.covers(statement)] == []
    revised, report = revise((), known, answer, size=size)
    stands = {entry.text for entry in revised} | {change.text for change in report.dropped}
    assert {entry.text for entry in whole if entry.kind != "narrative"} <= stands


@given(messages, answers)
def test_no_entry_holds_an_identifier_that_its_sources_do_not(told: list[tuple[str, str, str]], answer: str) -> None:  # P17 P18
    said = conversation(told)
    revised, _ = revise((), heard(said), answer)
    texts = {each.id: each for each in said}
    for entry in revised:
        assert entry.sources
        assert {texts[source].speaker for source in entry.sources} >= {entry.speaker} or entry.kind == "narrative"
        source = normal("\n".join(texts[source].text for source in entry.sources))
        assert all(holds(source, normal(each.text)) for each in identifiers(f"{entry.text} {entry.reason}") if "\n" not in each.text)


@given(messages, answers)
def test_no_secret_gets_into_a_ledger_or_a_report(told: list[tuple[str, str, str]], answer: str) -> None:  # P19
    revised, report = revise((), heard(conversation(told)), answer)
    assert SECRET not in to_json(revised) + repr(report)


@given(ledgers)
def test_a_ledger_survives_being_stored(ledger: Ledger) -> None:  # P2
    assert from_json(to_json(ledger)) == ledger


@given(ledgers, st.none() | st.integers(1, 9999))
def test_any_ledger_is_rendered_and_any_rendering_parsed(ledger: Ledger, year: int | None) -> None:  # P16
    for text in (render(ledger, year=year), numbered(ledger)):
        parse(text)
        revise(ledger, heard(()), text)


@given(ledgers)
def test_a_ledger_shown_back_as_it_was_shown_changes_nothing(ledger: Ledger) -> None:  # P15
    plain = tuple(entry for entry in ledger if len((entry.text + entry.reason + entry.speaker).splitlines()) <= 1)
    assert plain == () or revise(plain, heard(()), numbered(plain), size=Size(100_000))[0] == plain


@given(ledgers, ledgers)
def test_a_comparison_accounts_for_every_entry(before: Ledger, after: Ledger) -> None:  # P21
    report = compare(before, after)
    assert sorted(each.number for each in (*report.kept, *report.changed, *report.dropped)) == [entry.number for entry in before]
    assert sorted(each.number for each in (*report.kept, *report.changed, *report.added)) == [entry.number for entry in after]
