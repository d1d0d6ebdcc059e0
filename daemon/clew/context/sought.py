"""What an index of words is asked for, before it is said in the language of one."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sought:
    """Texts that hold one of these phrases (with `every`: all of them) in one of these columns. phrases: words of an index text, parted by
    spaces; a phrase of several is found where they follow one another."""

    columns: tuple[str, ...]
    phrases: tuple[str, ...]
    every: bool = False
