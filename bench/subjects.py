"""All subjects, in the order of the page."""

from bench import compacting, finding, replying, starting, tokens

SUBJECTS = (replying.subject, finding.subject, compacting.subject, starting.subject, tokens.subject)
NAMES = tuple(subject.name for subject in SUBJECTS)
