"""What a file is by its bytes: names and declared types are not believed. Pure."""

import re
import struct
from collections.abc import Callable
from dataclasses import dataclass

LOOKED_AT = 2**20
"""Bytes from the beginning of a file within which what is asked of it must stand."""
UNKNOWN = "application/octet-stream"

_TEXTS = {
    "md": "text/markdown",
    "markdown": "text/markdown",
    "csv": "text/csv",
    "tsv": "text/tab-separated-values",
    "json": "application/json",
}
"""Kinds of plain text that only a name tells apart. All of them are read as text."""
_MARKS = (b"\xff\xfe", b"\xfe\xff")
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_HTML = re.compile(rb"\s*(?:<!--.{0,4000}?-->\s*)?<(?:!doctype\s+html|html)\b", re.IGNORECASE | re.DOTALL)
_FRAMES = frozenset({*range(0xC0, 0xC4), *range(0xC5, 0xC8), *range(0xC9, 0xCC), *range(0xCD, 0xD0)})
"""JPEG's markers in front of a picture's size (ITU T.81, table B.1)."""
_BRANDS = {
    **dict.fromkeys((b"M4A ", b"M4B ", b"M4P "), "audio/mp4"),
    **dict.fromkeys((b"heic", b"heix", b"heif", b"mif1", b"msf1"), "image/heic"),
    **dict.fromkeys((b"avif", b"avis"), "image/avif"),
}
"""Kinds of ISO media files by their major brand (mp4ra.org)."""
_MAGIC = (
    (b"%PDF-", "application/pdf"),
    (b"OggS", "audio/ogg"),
    (b"ID3", "audio/mpeg"),
    (b"fLaC", "audio/flac"),
    (b"#!AMR", "audio/amr"),
    (b"\x1a\x45\xdf\xa3", "video/webm"),
    (b"\x1f\x8b", "application/gzip"),
    (b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (b"Rar!\x1a\x07", "application/vnd.rar"),
)
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"


@dataclass(frozen=True, slots=True)
class Sniffed:
    """What a file is. width, height: of an image, pixels, 0 where they do not stand in the bytes."""

    mime: str
    width: int = 0
    height: int = 0


def sniffed(body: bytes, name: str = "") -> Sniffed:
    """What a file with these bytes is, by the first `LOOKED_AT` of them. name: only tells kinds of plain text apart. Never fails."""
    head = body[:LOOKED_AT]
    for matches, read in _IMAGES:
        if matches(head):
            mime, size = read
            width, height = _within(size, head)
            return Sniffed(mime, width, height)
    return Sniffed(_other(head, len(body), name))


def _within(size: Callable[[bytes], tuple[int, int]], head: bytes) -> tuple[int, int]:
    try:
        return size(head)
    except (struct.error, IndexError):
        return 0, 0


def _other(head: bytes, whole: int, name: str) -> str:
    for magic, mime in _MAGIC:
        if head.startswith(magic):
            return mime
    if head[4:8] == b"ftyp":
        return _BRANDS.get(head[8:12], "video/mp4")
    if head[:4] == b"RIFF" and head[8:12] == b"WAVE":
        return "audio/wav"
    if frame := _frame(head):
        return frame
    if head.startswith(b"PK\x03\x04"):
        return DOCX if b"word/" in head or b"[Content_Types].xml" in head[:100] else "application/zip"
    return _text(head, whole, name)


def _frame(head: bytes) -> str:
    """MPEG audio without a container, by its first frame: layer 0 stands for AAC (ISO 13818-7), version 1 for nothing (ISO 11172-3)."""
    if len(head) < 4 or head[0] != 0xFF or head[1] & 0xE0 != 0xE0 or head.startswith(_MARKS):
        return ""
    if head[1] & 0x06 == 0:
        return "audio/aac" if head[1] & 0xF0 == 0xF0 else ""
    return "audio/mpeg" if head[1] & 0x18 != 0x08 else ""


def _text(head: bytes, whole: int, name: str) -> str:
    if not head.startswith(_MARKS):
        if _CONTROL.search(head):
            return UNKNOWN
        try:
            head.decode("utf-8")
        except UnicodeDecodeError as error:
            if whole == len(head) or error.start < len(head) - 3:  # else a character is cut
                return UNKNOWN
    if _HTML.match(head):
        return "text/html"
    return _TEXTS.get(name.rpartition(".")[2].lower(), "text/plain")


def _png(head: bytes) -> tuple[int, int]:
    width, height = struct.unpack_from(">II", head, 16)
    return int(width), int(height)


def _gif(head: bytes) -> tuple[int, int]:
    width, height = struct.unpack_from("<HH", head, 6)
    return int(width), int(height)


def _webp(head: bytes) -> tuple[int, int]:
    """By the format of its first chunk (Google's WebP container specification)."""
    match head[12:16]:
        case b"VP8 ":
            width, height = struct.unpack_from("<HH", head, 26)
            return width & 0x3FFF, height & 0x3FFF
        case b"VP8L":
            bits = struct.unpack_from("<I", head, 21)[0]
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8X":
            return int.from_bytes(head[24:27], "little") + 1, int.from_bytes(head[27:30], "little") + 1
    return 0, 0


def _jpeg(head: bytes) -> tuple[int, int]:
    at = 2
    while head[at] == 0xFF:
        marker = head[at + 1]
        if marker in _FRAMES:
            height, width = struct.unpack_from(">HH", head, at + 5)
            return int(width), int(height)
        if marker == 0xFF:
            at += 1
        elif marker == 0x01 or 0xD0 <= marker <= 0xD8:
            at += 2
        else:
            at += 2 + max(struct.unpack_from(">H", head, at + 2)[0], 2)
    return 0, 0


_Image = tuple[Callable[[bytes], bool], tuple[str, Callable[[bytes], tuple[int, int]]]]
_IMAGES: tuple[_Image, ...] = (
    (lambda head: head.startswith(b"\x89PNG\r\n\x1a\n"), ("image/png", _png)),
    (lambda head: head.startswith(b"\xff\xd8\xff"), ("image/jpeg", _jpeg)),
    (lambda head: head[:6] in (b"GIF87a", b"GIF89a"), ("image/gif", _gif)),
    (lambda head: head[:4] == b"RIFF" and head[8:12] == b"WEBP", ("image/webp", _webp)),
)
