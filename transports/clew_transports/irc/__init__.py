"""IRC, with what IRCv3 adds to it."""
