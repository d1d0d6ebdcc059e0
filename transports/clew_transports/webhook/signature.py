"""How the webhook's requests are signed: `X-Clew-Signature` is the HMAC-SHA256 of the timestamp, a dot and the raw body."""

from clew_transports.signature import Scheme

CLEW = Scheme("X-Clew-Timestamp", "X-Clew-Signature", "sha256=", before=b"", between=b".")
