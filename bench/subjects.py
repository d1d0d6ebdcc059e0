"""All subjects, in the order of the page."""

from bench import accepting, compacting, finding, replying, sharing, starting, throughput, tokens, weighing

SUBJECTS = (
    replying.subject,
    throughput.subject,
    sharing.subject,
    accepting.subject,
    finding.subject,
    compacting.subject,
    starting.subject,
    weighing.subject,
    tokens.subject,
)
NAMES = tuple(subject.name for subject in SUBJECTS)
