"""The platforms of the conformance suite, a file for each: itself or its emulator, and people on it."""

from abc import abstractmethod
from contextlib import AbstractAsyncContextManager
from typing import Any, ClassVar, Self

from tests.emulators.server import JsonObject
from tests.integration.web_harness import Clew
from tests.servers import Mosquitto

NUMBERS = {"ada": 11, "bob": 12, "eve": 13, "stranger": 99}
"""The people, and their ids where ids are numbers."""


class Platform:
    """A platform with people on it."""

    name: str
    needs = ""
    """The fixture of the server that it needs, if it needs one beside the broker, which is then `server`."""
    server: ClassVar[Any] = None
    groups = True
    """Whether it has chats of several people."""
    refuses = True
    """Whether it can be down, or ask to wait, while clew is connected to it."""
    loses_answers = True
    """Whether a send can be done there without an answer."""
    repeats = False
    """Whether it shows a reply twice that was sent again: it drops no repeats, and cannot be asked."""
    marks_bots = False
    """Whether it says of a message that a program wrote it."""
    strangers = True
    """Whether somebody whom clew does not know can write to it."""
    says_who_is_meant = False
    """Whether a line of a group may be said to nobody in particular."""
    short = False
    """Whether a long reply needs many parts."""

    @classmethod
    @abstractmethod
    def standing(cls, broker: Mosquitto) -> AbstractAsyncContextManager[Self]:
        """It, as long as the context lasts. broker: the one of the test run."""

    @abstractmethod
    def section(self) -> JsonObject:
        """Its section in the config."""

    def identity(self, who: str) -> str:
        return f"{self.name}:{who}"

    @abstractmethod
    async def say(self, clew: Clew, text: str, who: str = "ada", *, group: bool = False, called: bool = True) -> Any:
        """Say something; what is returned can be delivered again."""

    @abstractmethod
    async def again(self, clew: Clew, said: Any) -> None:
        """Deliver what was said once more."""

    @abstractmethod
    def heard(self, who: str = "ada", *, group: bool = False) -> list[str]:
        """The texts that were sent to somebody, or to the group, in order, part by part."""

    def echo(self) -> None:
        """From now on it gives clew its own replies as messages, if it is of that kind."""

    async def down(self) -> None:
        """It takes no replies until `up`."""

    async def up(self, clew: Clew) -> None:
        """Called when a reply is due; it takes replies once it has refused one."""

    def too_many(self) -> None:
        """The next send is refused for a second."""

    def has_refused(self) -> bool:
        """Whether it has been."""
        return True

    def no_answer(self) -> None:
        """The next send is done, and the answer to it is lost."""

    async def bot(self, clew: Clew, text: str) -> None:
        """Another program says something to clew."""
