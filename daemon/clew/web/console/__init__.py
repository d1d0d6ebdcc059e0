"""The console: pages that show how clew is and act on what it keeps, for the owner alone."""

from aiohttp import web

from clew.service import Service
from clew.web.auth import Door
from clew.web.console.approvals import Approvals
from clew.web.console.config import Config
from clew.web.console.documents import Documents
from clew.web.console.frame import Frame, Place
from clew.web.console.log import Log
from clew.web.console.notes import Notes
from clew.web.console.outbox import Outbox
from clew.web.console.overview import Overview
from clew.web.console.people import People
from clew.web.console.schedule import Schedule
from clew.web.console.search import Search
from clew.web.console.spend import Spend
from clew.web.console.threads import Threads
from clew.web.console.upkeep import Upkeep

PLACES = (
    Place("Overview", "/console", Overview),
    Place("Threads", "/console/threads", Threads),
    Place("Search", "/console/search", Search),
    Place("Schedule", "/console/schedule", Schedule),
    Place("Notes", "/console/notes", Notes),
    Place("Documents", "/console/documents", Documents),
    Place("Approvals", "/console/approvals", Approvals),
    Place("People", "/console/people", People),
    Place("Outbox", "/console/outbox", Outbox),
    Place("Spend", "/console/spend", Spend),
    Place("Upkeep", "/console/upkeep", Upkeep),
    Place("Config", "/console/config", Config),
    Place("Log", "/console/log", Log),
    Place("Chat", "/", None),
)
"""The navigation, in its order."""


def mount(service: Service, door: Door, app: web.Application) -> None:
    """Serve the pages of all places below `/console`."""
    frame = Frame(service, door, PLACES)
    for place in PLACES:
        if place.page:
            place.page(frame).mount(app)
