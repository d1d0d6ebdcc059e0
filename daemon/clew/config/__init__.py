"""Settings models and the YAML loader."""

from clew.config.load import defaults, find_config, load
from clew.config.notes import notes
from clew.config.schema import schema
from clew.config.settings import (
    Access,
    Agent,
    Approver,
    Compression,
    Config,
    Docs,
    Embeddings,
    Http,
    Job,
    Limits,
    Log,
    McpServer,
    Notes,
    Person,
    Price,
    ProviderSection,
    Recall,
    Sessions,
    TransportSection,
)
from clew.config.units import Duration, Size

__all__ = [
    "Access",
    "Agent",
    "Approver",
    "Compression",
    "Config",
    "Docs",
    "Duration",
    "Embeddings",
    "Http",
    "Job",
    "Limits",
    "Log",
    "McpServer",
    "Notes",
    "Person",
    "Price",
    "ProviderSection",
    "Recall",
    "Sessions",
    "Size",
    "TransportSection",
    "defaults",
    "find_config",
    "load",
    "notes",
    "schema",
]
