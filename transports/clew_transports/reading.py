"""What readers of platforms have in common."""

READABLE = "I can read text, pictures and files, and this is something else."
"""What somebody is told who has sent something that no reader can read."""


class Malformed(ValueError):
    """What came is of a shape that its platform does not document."""
