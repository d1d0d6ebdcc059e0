"""The one door to durable state: what goes in and out, and the verbs. SQL stands in this package only."""

from clew.store.records.approvals import Answered, Asked, Given, OpenQuestion, Question, StandingYes, Withdrawn
from clew.store.records.calls import CacheEntry, ModelCall, ToolState
from clew.store.records.jobs import Job, JobEffect
from clew.store.records.people import AccessRequest, Decide, InboxKind, Person, PersonRole, Sender, Verdict
from clew.store.records.replies import Reply, Settlement
from clew.store.records.search import Ask, Found, Quote, Recalled, RecalledFor, Scope
from clew.store.records.sessions import Said, Sent, SessionRow
from clew.store.records.turns import SAFE_ATTEMPTS, Boundary, Claim, Effect, Item, LeaseLost, NewMessage, Outcome, Room, Step, Switch
from clew.store.records.window import Compaction, Pin, PromptState, Ratios, Reader, ViewRows

__all__ = [
    "SAFE_ATTEMPTS",
    "AccessRequest",
    "Answered",
    "Ask",
    "Asked",
    "Boundary",
    "CacheEntry",
    "Claim",
    "Compaction",
    "Decide",
    "Effect",
    "Found",
    "Given",
    "InboxKind",
    "Item",
    "Job",
    "JobEffect",
    "LeaseLost",
    "ModelCall",
    "NewMessage",
    "OpenQuestion",
    "Outcome",
    "Person",
    "PersonRole",
    "Pin",
    "PromptState",
    "Question",
    "Quote",
    "Ratios",
    "Reader",
    "Recalled",
    "RecalledFor",
    "Reply",
    "Room",
    "Said",
    "Scope",
    "Sender",
    "Sent",
    "SessionRow",
    "Settlement",
    "StandingYes",
    "Step",
    "Switch",
    "ToolState",
    "Verdict",
    "ViewRows",
    "Withdrawn",
]
