"""The order of each chat as numbers: rows of the search index."""

CHAT_BITS = 40
"""A place is `chat << 40 | n`: the first of a chat's messages is its place 1."""


def first_place(chat: int) -> int:
    """What the places of a chat's messages begin behind."""
    return chat << CHAT_BITS


def last_place(chat: int) -> int:
    return (chat + 1 << CHAT_BITS) - 1
