# SPDX-License-Identifier: Apache-2.0
"""Animated PNGs of a browser's screenshots: the first frame whole, of each further one the rectangle that changed.

Every browser shows them, also in a README, and others show the first frame. They need no program beside Python, and no
table of 256 colours as a GIF does.
"""
from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

SIGNATURE = b"\x89PNG\r\n\x1a\n"
#: Channels by the colour type of a PNG: RGB and RGBA, which Chromium writes.
CHANNELS = {2: 3, 6: 4}


@dataclass
class Picture:
    width: int
    height: int
    rows: list[bytes]  # three bytes a pixel


def chunks(png: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The chunks of a PNG: kind and content."""
    assert png.startswith(SIGNATURE)
    at = len(SIGNATURE)
    while at < len(png):
        length, kind = struct.unpack_from(">I4s", png, at)
        yield kind, png[at + 8:at + 8 + length]
        at += 12 + length


def paeth(left: int, above: int, corner: int) -> int:
    guess = left + above - corner
    by_left, by_above, by_corner = abs(guess - left), abs(guess - above), abs(guess - corner)
    if by_left <= by_above and by_left <= by_corner:
        return left
    return above if by_above <= by_corner else corner


def unfiltered(kind: int, row: bytearray, above: bytes, step: int) -> bytes:
    """A row as it was before its filter. `step` is the number of bytes of a pixel."""
    if kind == 2:
        return bytes((a + b) & 255 for a, b in zip(row, above))
    for i in range(len(row) if kind else 0):
        left = row[i - step] if i >= step else 0
        if kind == 1:
            row[i] = (row[i] + left) & 255
        elif kind == 3:
            row[i] = (row[i] + (left + above[i]) // 2) & 255
        else:
            row[i] = (row[i] + paeth(left, above[i], above[i - step] if i >= step else 0)) & 255
    return bytes(row)


def read(png: bytes) -> Picture:
    """A PNG of eight bits a channel, not interlaced. What it says of transparency is dropped: a screenshot has none."""
    data, width, height, colours = b"", 0, 0, 0
    for kind, content in chunks(png):
        if kind == b"IHDR":
            width, height, depth, colours, _, _, interlaced = struct.unpack(">IIBBBBB", content)
            assert depth == 8 and colours in CHANNELS and not interlaced
        elif kind == b"IDAT":
            data += content
    step = CHANNELS[colours]
    raw, length, above, rows = zlib.decompress(data), step * width, bytes(step * width), []
    for y in range(height):
        start = y * (length + 1)
        above = unfiltered(raw[start], bytearray(raw[start + 1:start + 1 + length]), above, step)
        rows.append(above if step == 3 else bytes(byte for i, byte in enumerate(above) if i % 4 < 3))
    return Picture(width, height, rows)


def changed(before: Picture, after: Picture) -> tuple[int, int, int, int] | None:
    """The smallest rectangle that holds every pixel that differs: left, top, width, height."""
    differ = [y for y, (old, new) in enumerate(zip(before.rows, after.rows)) if old != new]
    if not differ:
        return None
    left, right = after.width, 0
    for y in differ:
        old, new = before.rows[y], after.rows[y]
        columns = [x for x in range(after.width) if old[3 * x:3 * x + 3] != new[3 * x:3 * x + 3]]
        left, right = min(left, columns[0]), max(right, columns[-1])
    return left, differ[0], right - left + 1, differ[-1] - differ[0] + 1


def compressed(rows: list[bytes]) -> bytes:
    """Each row as the difference to the one above: much of a page is as its neighbour above."""
    above, filtered = bytes(len(rows[0])), bytearray()
    for row in rows:
        filtered += b"\2" + bytes((a - b) & 255 for a, b in zip(row, above))
        above = row
    return zlib.compress(bytes(filtered), 9)


def chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def animated(frames: list[tuple[Picture, float]]) -> bytes:
    """An endless animation. Each picture is shown for its time (seconds)."""
    first = frames[0][0]
    parts: list[tuple[tuple[int, int, int, int], bytes, float]] = []
    before: Picture | None = None
    for picture, seconds in frames:
        assert (picture.width, picture.height) == (first.width, first.height)
        place = changed(before, picture) if before else (0, 0, first.width, first.height)
        if place is None:
            box, data, shown = parts[-1]
            parts[-1] = box, data, shown + seconds
            continue
        left, top, width, height = place
        rows = [row[3 * left:3 * (left + width)] for row in picture.rows[top:top + height]]
        parts.append((place, compressed(rows), seconds))
        before = picture
    out = SIGNATURE + chunk(b"IHDR", struct.pack(">IIBBBBB", first.width, first.height, 8, 2, 0, 0, 0))
    out += chunk(b"acTL", struct.pack(">II", len(parts), 0))
    number = 0
    for (left, top, width, height), data, seconds in parts:
        times = int(seconds * 1000), 1000
        out += chunk(b"fcTL", struct.pack(">IIIIIHHBB", number, width, height, left, top, *times, 0, 0))
        number += 1
        if number == 1:
            out += chunk(b"IDAT", data)
        else:
            out += chunk(b"fdAT", struct.pack(">I", number) + data)
            number += 1
    return out + chunk(b"IEND", b"")
