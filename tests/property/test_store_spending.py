"""Reservations and sums, in any order of calls, crashes and deletions, held against an account that adds everything up."""

import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.allowances import Amount, Limit
from clew.messages import Usage
from clew.store import ModelCall, model_calls, sessions, spending
from clew.store.connection import Connection
from clew.store.records.spending import Sums, Wanted
from tests.databases import BOTH, SQLITE, databases

pytestmark = BOTH
NOW = datetime(2026, 11, 30, 12, tzinfo=ZoneInfo("UTC")).timestamp()
PEOPLE = {"ada": "Europe/Berlin", "bob": None}
DAY = Limit("each", "person", "day", "tokens", 1000)
ALL = Limit("all", "all", "month", "money", 1500)


def fill(db: Connection) -> None:
    """Two people with a direct chat and a session each, and a group."""
    for person, zone in PEOPLE.items():
        db.execute("INSERT INTO people (id, role, timezone, origin, created) VALUES (?, 'member', ?, 'config', 0)", (person, zone))
    for number, (chat, owner) in enumerate([("desk:ada", "ada"), ("desk:bob", "bob"), ("desk:group", None)], 1):
        db.execute(
            "INSERT INTO chats (id, address, transport, direct, person, created) VALUES (?, ?, 'desk', ?, ?, 0)",
            (number, chat, int(owner is not None), owner),
        )
        db.execute("INSERT INTO sessions (id, chat, created) VALUES (?, ?, 0)", (f"s{number}", number))


@contextmanager
def database() -> Iterator[Connection]:
    """A transaction that comes to nothing."""
    with tempfile.TemporaryDirectory() as name:
        databases.store(Path(name))
        with databases.connected(Path(name)) as db:
            db.begin(relaxed=True, holds=None)
            fill(db)
            yield db
            db.rollback()


def call(identifier: str, tokens: int, cost: float | None, payer: str = "", at: float = NOW, purpose: str = "reply") -> ModelCall:
    return ModelCall(identifier, purpose, payer, "local", "any", Usage(tokens, 0), at, at, at + 2, cost=cost)


def spent(db: Connection, kind: str, subject: str, period: str) -> Sums:
    key = (kind, subject, period)
    return spending.sums(db, [key])[key]


@dataclass
class Desk:
    """Calls in flight, and what was truly spent."""

    db: Connection
    now: float = NOW
    number: int = 0
    flying: dict[str, tuple[str, str, int]] = field(default_factory=dict)
    tokens: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))

    def reserve(self, person: str, tokens: int) -> None:
        self.number += 1
        identifier, session = f"c{self.number}", {"ada": "s1", "bob": "s2"}[person]
        wanted = Wanted(identifier, session, "", Amount(tokens, tokens), self.now, self.now + 900)
        held = sum(size for _, its, size in self.flying.values() if its == person)
        reserved = spending.reserve(self.db, wanted, [DAY])
        fits = self.tokens[person] + held + tokens <= DAY.most or not tokens
        assert (reserved.refused is None) == fits
        if fits:
            self.flying[identifier] = (session, person, tokens)

    def settle(self, part: float) -> None:
        """The oldest call in flight comes back, and took this part of what was reserved."""
        if self.flying:
            identifier = next(iter(self.flying))
            session, person, size = self.flying.pop(identifier)
            took = int(size * part)
            model_calls.put(self.db, call(identifier, took, None, at=self.now), session, None)
            self.tokens[person] += took

    def crash(self) -> None:
        """What was in flight is never heard of again; its reservations expire."""
        self.flying.clear()
        self.now += 901


steps = st.one_of(
    st.tuples(st.just("reserve"), st.sampled_from(["ada", "bob"]), st.integers(0, 600)),
    st.tuples(st.just("settle"), st.floats(0, 1)),
    st.tuples(st.just("roll")),
    st.tuples(st.just("crash")),
)


@settings(max_examples=60)
@given(st.lists(steps, max_size=25))
def test_calls_never_overspend_a_budget_by_more_than_their_estimates_are_short(sequence: list[tuple[object, ...]]) -> None:
    with database() as db:
        desk = Desk(db)
        for step in sequence:
            match step:
                case ("reserve", str(person), int(tokens)):
                    desk.reserve(person, tokens)
                case ("settle", float(part)):
                    desk.settle(part)
                case ("roll",):
                    spending.roll(db)
                case ("crash",):
                    desk.crash()
            for person in PEOPLE:
                assert desk.tokens[person] <= DAY.most
                assert spent(db, "person", person, "2026-11-30").tokens == desk.tokens[person]
        assert spent(db, "all", "", "2026-11").tokens == sum(desk.tokens.values())


kept = st.lists(
    st.tuples(
        st.sampled_from(["call", "roll", "delete", "some"]),
        st.sampled_from(["s1", "s2", "s3"]),
        st.integers(0, 100),
        st.none() | st.floats(0, 1),
        st.integers(0, 40 * 86_400),
    ),
    max_size=25,
)


@settings(max_examples=60)
@given(kept)
def test_sums_are_the_same_whenever_they_are_made_and_outlive_their_calls(history: list[tuple[str, str, int, float | None, int]]) -> None:
    with database() as db:
        days: defaultdict[tuple[str, str, str], Amount] = defaultdict(Amount)
        for number, (what, session, tokens, cost, later) in enumerate(history):
            if what == "roll":
                spending.roll(db)
            elif what == "some":
                spending.roll(db, 1)
            elif what == "delete":
                if db.execute("SELECT 1 FROM sessions WHERE id = ?", (session,)).fetchone():
                    sessions.delete(db, session)
            elif db.execute("SELECT 1 FROM sessions WHERE id = ?", (session,)).fetchone():
                at = NOW + later
                model_calls.put(db, call(f"c{number}", tokens, cost, at=at), session, None)
                amount = Amount(tokens, round((cost or 0.0) * 1e6), 0 if cost is not None else tokens)
                person, chat, zone = {
                    "s1": ("ada", "desk:ada", "Europe/Berlin"),
                    "s2": ("bob", "desk:bob", "UTC"),
                    "s3": ("", "desk:group", "UTC"),
                }[session]
                for kind, subject, there in (("all", "", "UTC"), ("chat", chat, zone), ("person", person, zone)):
                    if subject or kind == "all":
                        local = datetime.fromtimestamp(at, ZoneInfo(there))
                        days[kind, subject, f"{local:%Y-%m-%d}"] += amount
        for (kind, subject, day), amount in days.items():
            assert spent(db, kind, subject, day).amount == amount
        whole = [sums.amount for sums in spending.periods(db, "all", "", "2026-11-01", "2027-12-31").values()]
        assert sum(whole, Amount()) == sum((amount for (kind, *_), amount in days.items() if kind == "all"), Amount())


# One by one -------------------------------------------------------------------------------------------------------


def test_a_call_is_on_the_account_of_whom_it_names_else_of_whose_chat_it_is() -> None:
    with database() as db:
        for number, (session, payer) in enumerate([("s1", ""), ("s1", "bob"), ("s3", ""), ("s3", "ada")]):
            model_calls.put(db, call(f"c{number}", 10**number, None, payer), session, None)
        assert spent(db, "person", "ada", "2026-11").tokens == 1001
        assert spent(db, "person", "bob", "2026-11").tokens == 10
        assert spent(db, "chat", "desk:group", "2026-11").tokens == 1100
        assert spending.subjects(db, "person", "2026-11").keys() == {"ada", "bob"}
        assert list(spending.subjects(db, "chat", "2026-11")) == ["desk:group", "desk:ada"], "the most first"


def test_a_day_is_that_of_the_person_and_everybodys_that_of_the_house() -> None:
    with database() as db:
        spending.keep_zone(db, "America/New_York")
        late = datetime(2026, 12, 1, 0, 30, tzinfo=ZoneInfo("Europe/Berlin")).timestamp()
        model_calls.put(db, call("c1", 7, 0.5, at=late), "s1", None)
        assert spent(db, "person", "ada", "2026-12-01").micros == 500_000
        assert spent(db, "chat", "desk:ada", "2026-12").tokens == 7
        assert spent(db, "all", "", "2026-11-30").tokens == spent(db, "model", "local any", "2026-11").tokens == 7
        assert spent(db, "purpose", "reply", "2026-11").replies == 1


def test_who_turns_out_to_be_somebody_else_has_one_account_with_them() -> None:
    with database() as db:
        for number, (session, tokens) in enumerate([("s1", 300), ("s2", 500)]):
            model_calls.put(db, call(f"c{number}", tokens, None), session, None)
        spending.reserve(db, Wanted("c9", "s2", "", Amount(100), NOW, NOW + 900), [DAY])
        spending.hand_over(db, "bob", "ada")
        (standing,) = spending.look(db, "s1", "", [DAY], NOW).standings
        assert (standing.spent.tokens, standing.reserved.tokens) == (800, 100)
        assert spent(db, "person", "bob", "2026-11") == Sums()


def test_replies_are_timed_and_failures_are_not() -> None:
    with database() as db:
        good = call("c1", 5, None)
        for each in (good, ModelCall("c2", "reply", "", "local", "any", Usage(), NOW, None, NOW + 60, "server: down")):
            model_calls.put(db, each, "s1", None)
        sums = spent(db, "all", "", "2026-11-30")
        assert (sums.calls, sums.replies, sums.reply_ms) == (2, 1, 2000)
        assert spending.of_session(db, "s1") == sums


def test_two_calls_at_once_share_what_is_left() -> None:
    with database() as db:
        first = spending.reserve(db, Wanted("c1", "s1", "", Amount(850), NOW, NOW + 900), [DAY])
        second = spending.reserve(db, Wanted("c2", "s1", "", Amount(700), NOW, NOW + 900), [DAY])
        assert first.refused is None
        assert second.refused is not None
        assert (second.refused.left, second.refused.closed) == (150, False)
        assert spending.look(db, "s1", "", [DAY], NOW).standings[0].closed
        assert not spending.look(db, "s2", "", [DAY], NOW).standings[0].closed
        assert spending.reserve(db, Wanted("c3", "s2", "", Amount(700), NOW, NOW + 900), [DAY]).refused is None, "bob has his own"


def test_a_reservation_goes_with_its_row_or_is_given_back_or_expires() -> None:
    with database() as db:
        for identifier in ("c1", "c2"):
            spending.reserve(db, Wanted(identifier, "s1", "", Amount(400), NOW, NOW + 900), [DAY])
        model_calls.put(db, call("c1", 100, None), "s1", None)
        (standing,) = spending.look(db, "s1", "", [DAY], NOW).standings
        assert (standing.spent.tokens, standing.reserved.tokens) == (100, 400)
        again = spending.reserve(db, Wanted("c3", "s1", "", Amount(900), NOW, NOW + 900, instead_of="c2"), [DAY])
        assert again.refused is None
        assert db.execute("SELECT id FROM reservations").fetchall() == [("c3",)]
        (later,) = spending.look(db, "s1", "", [DAY], NOW + 901).standings
        assert later.reserved == Amount()


def test_a_model_without_a_price_takes_tokens_and_no_money() -> None:
    with database() as db:
        model_calls.put(db, call("c1", 100, 0.0015), "s1", None)
        model_calls.put(db, call("c2", 4000, None), "s1", None)
        (standing,) = spending.look(db, "s1", "", [ALL], NOW).standings
        assert (standing.spent, standing.left) == (Amount(4100, 1500, 4000), 0)
        assert spending.reserve(db, Wanted("c3", "s1", "", Amount(500, 0, 500), NOW, NOW + 900), [ALL]).refused is None
        assert spending.reserve(db, Wanted("c4", "s1", "", Amount(500, 1), NOW, NOW + 900), [ALL]).refused is not None


def test_a_call_too_large_for_all_of_a_budget_does_not_close_it() -> None:
    with database() as db:
        assert spending.reserve(db, Wanted("c1", "s1", "", Amount(1001), NOW, NOW + 900), [DAY]).refused
        assert not spending.look(db, "s1", "", [DAY], NOW).standings[0].closed


def test_what_is_said_of_budgets_is_forgotten_when_their_periods_are_long_over() -> None:
    with database() as db:
        model_calls.put(db, call("c0", 900, None), "s1", None)
        spending.reserve(db, Wanted("c1", "s1", "", Amount(101), NOW, NOW + 900), [DAY])
        assert not spending.sweepable(db, NOW + 60 * 86_400)
        assert spending.sweepable(db, NOW + 80 * 86_400)
        spending.sweep(db, NOW + 80 * 86_400)
        assert not spending.look(db, "s1", "", [DAY], NOW).standings[0].closed


@SQLITE
@pytest.mark.parametrize("table", ["spending", "reservations"])
def test_sums_are_found_by_their_key(table: str) -> None:
    with database() as db:
        plans = {
            "spending": "SELECT calls FROM spending WHERE kind = 'person' AND subject = 'ada' AND period = '2026-11'",
            "reservations": "SELECT 1 FROM reservations WHERE id = 'c1'",
        }
        assert "SEARCH" in str(db.execute(f"EXPLAIN QUERY PLAN {plans[table]}").fetchall())
