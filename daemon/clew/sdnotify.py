"""Tell systemd how the service is doing: the sd_notify protocol in a few lines of socket code.

Source of the protocol: sd_notify(3) and sd_watchdog_enabled(3).
"""

import os
import socket
from collections.abc import Mapping

# A datagram to a manager that does not read would block; a second is far more than a healthy one needs.
SEND_TIMEOUT_S = 1.0


def notify(*assignments: str, environ: Mapping[str, str] = os.environ) -> bool:
    """Send assignments such as ``READY=1``, ``STOPPING=1``, ``WATCHDOG=1`` or ``STATUS=text`` as one datagram.

    Line breaks inside an assignment become spaces, so that a text can never add an assignment of its own.
    Returns whether it was handed over: False without ``NOTIFY_SOCKET``, and when the manager cannot be reached, which
    is no reason to stop serving (systemd acts by itself when it hears nothing). Raises nothing.
    """
    address = environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return False
    if address.startswith("@"):  # Linux abstract namespace
        address = "\0" + address[1:]
    datagram = "\n".join(" ".join(a.splitlines()) for a in assignments).encode("utf-8", "replace")
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sock:
            sock.settimeout(SEND_TIMEOUT_S)
            sock.sendto(datagram, address)
    except OSError:
        return False
    return True


def watchdog_interval(environ: Mapping[str, str] = os.environ) -> float | None:
    """Seconds between two ``WATCHDOG=1``: half of what the unit allows, as sd_watchdog_enabled(3) advises.

    None when no watchdog is set or it watches another process.
    """
    usec, pid = environ.get("WATCHDOG_USEC", ""), environ.get("WATCHDOG_PID", "")
    if pid and pid != str(os.getpid()):
        return None
    return int(usec) / 2_000_000 if usec.isascii() and usec.isdigit() and int(usec) > 0 else None
