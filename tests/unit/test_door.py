"""What comes in at the door is such that it can be stored, whatever an adapter hands over."""

import json
import math

import pytest

from clew.inbox import LARGEST, _cleaned
from clew.transport import Address, Attachment, Inbound
from clew_transports.matrix.events import redacted, replied_to

HALF = "\ud800"


def test_every_word_can_be_stored() -> None:  # P49
    odd = f"a{HALF}\x00b"
    file = Attachment(odd, odd, 10**30, odd)
    item = Inbound(
        external_id=odd,
        address=Address("test", odd, odd),
        sender=odd,
        text=odd,
        client_id=odd,
        sender_name=odd,
        edits=odd,
        reply_to=odd,
        refused=odd,
        attachments=(file,),
        context={odd: odd},
    )
    cleaned = _cleaned(item)
    json.dumps(str(cleaned)).encode()
    assert HALF not in str(cleaned)
    assert (cleaned.text, cleaned.sender, cleaned.reply_to, cleaned.context) == ("ab", "ab\ufffd", "ab", {"ab": "ab"})
    assert cleaned.attachments[0].size == LARGEST < 2**63
    assert (cleaned.address, cleaned.attachments[0].ref) == (Address("test", "ab\ufffd", "ab\ufffd"), "ab")


@pytest.mark.parametrize("stated", [math.inf, -math.inf, math.nan, -1.0, 1e30])
def test_what_is_no_moment_is_none(stated: float) -> None:
    item = Inbound("1", Address("test", "a"), "a", "hello", sent_at=stated, expires_at=stated)
    assert (_cleaned(item).sent_at, _cleaned(item).expires_at) == (None, None)


def test_half_a_letter_is_in_no_id_of_matrix() -> None:
    content = {"m.relates_to": {"m.in_reply_to": {"event_id": f"${HALF}"}}}
    assert replied_to({"type": "m.room.message", "content": content}) == ""
    assert redacted({"type": "m.room.redaction", "redacts": f"${HALF}"}) == ""
