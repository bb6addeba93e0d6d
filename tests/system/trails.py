# SPDX-License-Identifier: Apache-2.0
"""A trail in PostgreSQL, computed again from its leaves, as RFC 6962 says."""
from __future__ import annotations

import base64
import hashlib

from postgres_server import PostgresServer

TILE = 256
#: Of trail_tiles: a tile for each row, put together from its pieces.
TILES = "SELECT level, n, encode(string_agg(bytes, '' ORDER BY first), 'hex') FROM trail_tiles WHERE {} GROUP BY level, n ORDER BY n"


def leaf_hash(leaf: bytes) -> bytes:
    return hashlib.sha256(b"\0" + leaf).digest()


def root_of(hashes: list[bytes]) -> bytes:
    """Of subtrees that are all complete, except for the last one."""
    level = hashes or [hashlib.sha256(b"").digest()]
    while len(level) > 1:
        pairs = [hashlib.sha256(b"\1" + level[i] + level[i + 1]).digest() for i in range(0, len(level) - 1, 2)]
        level = pairs + level[len(pairs) * 2:]
    return level[0]


def leaves_of(postgres: PostgresServer, generation_id: str = "1") -> list[str]:
    """Of its bundles."""
    found: list[str] = []
    for n, (_, number, text) in enumerate(postgres.rows(TILES.format(f"level = -1 AND generation_id = {generation_id}"))):
        data, bundle = bytes.fromhex(text), []
        assert int(number) == n and len(found) == n * TILE
        while data:
            length = int.from_bytes(data[:2], "big")
            bundle.append(data[2:2 + length].decode())
            data = data[2 + length:]
        assert 0 < len(bundle) <= TILE
        found += bundle
    return found


def read_trail(postgres: PostgresServer, generation_id: str) -> tuple[list[str], list[str], list[list[str]], list[list[str]]]:
    """Size and checkpoint, leaves, tiles and rows, all of one moment."""
    of = f"generation_id = {generation_id}"
    while True:
        head = f"SELECT size, replace(checkpoint, E'\\n', ',') FROM trails WHERE {of}"
        [now] = postgres.rows(head)
        leaves = leaves_of(postgres, generation_id)
        tiles = postgres.rows(TILES.format(f"level >= 0 AND {of}"))
        rows = postgres.rows(f"SELECT leaf, seq, coalesce(joined_seq::text, '') FROM queue_entries WHERE {of}")
        if postgres.rows(head) == [now]:
            return now, leaves, tiles, rows


def check_trail(postgres: PostgresServer, generation_id: str = "1") -> list[str]:
    """Size, tiles and root are those of the leaves, a full tile is one row, and each place names its leaf. Returns the leaves."""
    (size, text), leaves, tiles, rows = read_trail(postgres, generation_id)
    pieces = f"SELECT count(*) FROM trail_tiles WHERE level <= 0 AND n < {int(size) // TILE} AND generation_id = {generation_id}"
    assert int(postgres.sql(pieces)) == 2 * (int(size) // TILE)
    assert int(size) == len(leaves)
    hashes = [leaf_hash(leaf.encode()) for leaf in leaves]
    assert text.split(",")[1:3] == [size, base64.b64encode(root_of(hashes)).decode()]
    wanted, level = {}, 0
    while hashes:
        for n in range(0, len(hashes), TILE):
            wanted[level, n // TILE] = b"".join(hashes[n:n + TILE]).hex()
        hashes = [root_of(hashes[n:n + TILE]) for n in range(0, len(hashes) // TILE * TILE, TILE)]
        level += 1
    assert {(int(level), int(n)): text for level, n, text in tiles} == wanted
    for leaf, seq, joined in rows:
        words = leaves[int(leaf)].split(" ")
        if words[2] == "drawn":
            assert words[4] == joined and words[6].split(":")[1] == seq
        else:
            assert words[2] in ("entered", "restored", "waits", "stays") and words[4] in (seq, joined)
    return leaves
