"""Small files of the kinds that people send."""

import struct
import zlib


def png(width: int = 64, height: int = 48, grey: int = 128) -> bytes:
    """A picture of one shade."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    rows = b"".join(b"\0" + bytes([grey]) * width for _ in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def jpeg(width: int = 64, height: int = 48) -> bytes:
    """The head of a picture, as far as its size."""
    comment = b"\xff\xfe" + struct.pack(">H", 7) + b"hello"
    frame = b"\xff\xc0" + struct.pack(">HBHHB", 17, 8, height, width, 3) + bytes(9)
    return b"\xff\xd8\xff\xe0" + struct.pack(">H", 16) + b"JFIF\0" + bytes(9) + comment + frame + b"\xff\xd9"


def gif(width: int = 64, height: int = 48) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height) + bytes(3)


def webp(width: int = 64, height: int = 48) -> bytes:
    size = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    body = b"WEBPVP8X" + struct.pack("<I", 10) + bytes(4) + size
    return b"RIFF" + struct.pack("<I", len(body)) + body


OGG = b"OggS\0\x02" + bytes(20) + b"\x01\x13OpusHead" + bytes(40)
"""The beginning of a voice note."""
