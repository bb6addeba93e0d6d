# SPDX-License-Identifier: Apache-2.0
"""The trail over HTTP: everyone can read it as a transparency log, and visitors get the proof that their place is in it."""
from __future__ import annotations

import base64
import hashlib
import json

import pytest

from admin import admin_file
from contract import Contract
from tellerline import BIN, CALM, PATIENCE, TOP, run
from test_archive import agree, join_many
from test_draw import drawn, open_now, time_in
from test_trail import prepared
from trails import check_trail
from waiting import wait_until

TILE = 256


def begin(start, postgres):
    return start({"sale": CALM | {"capacity": 3}, "trail": CALM | {"capacity": 3}}, archivers=1, prepare=admin_file,
                 settings={"archive": {"url": postgres.url}})


def decode(text):
    """base64url without padding."""
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def leaf_hash(leaf):
    return hashlib.sha256(b"\0" + leaf).digest()


def node_hash(left, right):
    return hashlib.sha256(b"\1" + left + right).digest()


def root_of(hashes):
    """RFC 6962, 2.1."""
    if len(hashes) == 1:
        return hashes[0]
    k = 1 << ((len(hashes) - 1).bit_length() - 1)
    return node_hash(root_of(hashes[:k]), root_of(hashes[k:]))


def root_by(proof):
    """RFC 9162, 2.1.3.2."""
    index, last, node = proof["index"], proof["size"] - 1, leaf_hash(proof["leaf"].encode())
    for step in map(decode, proof["hashes"]):
        if index & 1 or index == last:
            node = node_hash(step, node)
            while index and not index & 1:
                index, last = index >> 1, last >> 1
        else:
            node = node_hash(node, step)
        index, last = index >> 1, last >> 1
    assert last == 0
    return node


def of_checkpoint(text):
    """Origin, size and root."""
    origin, size, root = text.split("\n")[:3]
    return origin, int(size), base64.b64decode(root)


def path_of(n, width=TILE):
    digits = f"{n:03d}"
    digits = digits.zfill(-(-len(digits) // 3) * 3)
    groups = [digits[i:i + 3] for i in range(0, len(digits), 3)]
    return "/".join([f"x{group}" for group in groups[:-1]] + groups[-1:]) + (f".p/{width}" if width < TILE else "")


def bundle(body):
    leaves = []
    while body:
        length = int.from_bytes(body[:2], "big")
        leaves.append(body[2:2 + length])
        body = body[2 + length:]
    return leaves


def read_log(client, base, size):
    """All leaves."""
    leaves = []
    for n in range(0, -(-size // TILE)):
        width = min(TILE, size - n * TILE)
        answer = client.get(f"{base}/tile/entries/{path_of(n, width)}")
        assert answer.status == 200 and answer.headers["content-type"] == "application/octet-stream", answer.body
        leaves += bundle(answer.body)
        hashes = client.get(f"{base}/tile/0/{path_of(n, width)}").body
        assert hashes == b"".join(map(leaf_hash, leaves[n * TILE:]))
    return leaves


def ask(client, path):
    """The answer, as soon as the address may ask again."""
    def do():
        answer = client.get(path)
        return answer if answer.status != 429 else None
    return wait_until(do, PATIENCE, "an answer", every=0.1)


@pytest.mark.sanitized
def test_everyone_can_read_the_log(start, postgres):
    system = begin(start, postgres)
    come = [system.join("sale") for _ in range(4)]
    join_many(system, 900, "v")
    wait_until(come[0].is_active, PATIENCE, "the first is active")
    come[0].complete()
    agree(system, postgres)
    client = system.client()
    base = "/v1/queues/sale/trail"
    answer = client.get(f"{base}/checkpoint")
    assert answer.status == 200 and answer.headers["content-type"].startswith("text/plain")
    origin, size, root = of_checkpoint(answer.body.decode())
    generation = origin.rsplit("/", 1)[1]
    assert origin.endswith(f"/sale/{generation}") and size > 3 * TILE
    leaves = read_log(client, base, size)
    assert len(leaves) == size and root_of([leaf_hash(leaf) for leaf in leaves]) == root
    # Of the last tile an older size can be had, too, wherever a transaction ended.
    for width in (1, size % TILE // 2):
        assert client.get(f"{base}/tile/0/{path_of(size // TILE, width)}").body \
            == b"".join(map(leaf_hash, leaves[size // TILE * TILE:][:width]))
    # Of one generation, what is full never changes.
    same = client.get(f"{base}/{generation}/tile/0/000")
    assert same.body == client.get(f"{base}/tile/0/000").body and "immutable" in same.headers["cache-control"]
    assert "immutable" not in client.get(f"{base}/tile/0/000").headers["cache-control"]
    assert client.get(f"{base}/{generation}/checkpoint").body.decode().startswith(origin)
    assert client.get(f"{base}/tile/1/{path_of(0, size // TILE)}").body == b"".join(
        root_of([leaf_hash(leaf) for leaf in leaves[n * TILE:(n + 1) * TILE]]) for n in range(size // TILE))
    for missing in (f"tile/0/{path_of(size // TILE)}", "tile/0/999", "tile/3/000", "7/checkpoint", "tile/0/1", "nothing"):
        assert ask(client, f"{base}/{missing}").problem(404)
    assert ask(client, "/v1/queues/another/trail/checkpoint").problem(404)
    named = system.join("trail")
    wait_until(lambda: client.get("/v1/queues/trail/trail/checkpoint").status == 200, PATIENCE, "a queue has any name")
    wait_until(lambda: client.get("/v1/queues/trail/trail/proof", named.ticket).status == 200, PATIENCE, "its places are proved")
    # Who asks too often waits.
    assert any(client.get(f"{base}/checkpoint").status == 429 for _ in range(1000))


@pytest.mark.sanitized
def test_a_visitor_gets_the_proof_of_the_place(start, postgres):
    system = begin(start, postgres)
    come = [system.join("sale") for _ in range(5)]
    join_many(system, 600, "v")
    agree(system, postgres)
    visitor, client = come[4], system.client()
    answer, contract = client.get("/v1/queues/sale/trail/proof", visitor.ticket), Contract(TOP / "docs/integrators/openapi.yaml")
    contract.check("GET", "/v1/queues/sale/trail/proof", answer)
    proof = answer.json
    origin, size, root = of_checkpoint(proof["checkpoint"])
    assert root_by(proof) == root and proof["size"] == size and origin.endswith(str(proof["generation"]))
    kind, _, seq, who = proof["leaf"].split(" ")[2:6]
    assert kind == "entered"
    assert who == base64.urlsafe_b64encode(hashlib.sha256(
        decode(proof["salt"]) + visitor.view["visitor"].encode()).digest()[:16]).decode().rstrip("=")
    assert postgres.sql(f"SELECT visitor FROM queue_entries WHERE seq = {seq}") == visitor.view["visitor"] == proof["visitor"]
    # Everyone has a leaf of their own, and nobody gets that of another.
    others = [client.get("/v1/queues/sale/trail/proof", one.ticket).json for one in come[:4]]
    assert all(root_by(other) == of_checkpoint(other["checkpoint"])[2] for other in others)
    assert len({other["leaf"] for other in (proof, *others)}) == 5
    assert client.get("/v1/queues/sale/trail/proof").problem(401)
    # A leaf that is not about the visitor is none of theirs, whatever the row says.
    postgres.sql(f"UPDATE queue_entries SET leaf = leaf - 1 WHERE seq = {seq}")
    assert client.get("/v1/queues/sale/trail/proof", visitor.ticket).problem(404)
    later = system.join("sale")
    wait_until(lambda: client.get("/v1/queues/sale/trail/proof", later.ticket).status == 200, PATIENCE, "it is in the trail",
               every=0.1)
    system.expect("the archive could not be read")
    postgres.stop()
    # An address may ask 20 times a second.
    away = wait_until(lambda: (answer := client.get("/v1/queues/sale/trail/checkpoint")).status == 503 and answer, PATIENCE,
                      "PostgreSQL is away", every=0.1)
    assert away.problem(503)["type"] == "/problems/archive-unavailable"
    assert visitor.status()["status"] == "waiting"
    postgres.start()


def test_a_place_is_verified_offline(start, postgres, tmp_path):
    system = begin(start, postgres)
    come = [system.join("sale") for _ in range(6)]
    join_many(system, 300, "v")
    agree(system, postgres)
    client, key = system.client(), system.ctl("trail", "key").stdout.strip()
    proof = client.get("/v1/queues/sale/trail/proof", come[5].ticket).json
    path = tmp_path / "place.json"

    def verify(changed, *options):
        path.write_text(json.dumps(changed))
        return run(BIN / "tellerline", "verify", "place", *options, str(path))

    done = verify(proof, "--key", key)
    assert done.returncode == 0 and "is this visitor's: entered at" in done.stdout, done.stdout + done.stderr
    assert "no key was given" in verify(proof).stdout
    words = proof["leaf"].split(" ")
    words[4] = str(int(words[4]) - 1)
    note = proof["checkpoint"]
    forged = note[:-20] + ("A" if note[-20] != "A" else "B") + note[-19:]
    for changed, options, said in (
            ({"leaf": " ".join(words)}, (), "the leaf is not leaf"), ({"index": proof["index"] - 1}, (), "the leaf is not leaf"),
            ({"hashes": proof["hashes"][:-1]}, (), "the leaf is not leaf"), ({"size": proof["size"] + 1}, (), "the leaf is not leaf"),
            ({"visitor": come[4].view["visitor"]}, (), "not about this visitor"),
            ({"salt": "A" * 22}, (), "not about this visitor"), ({"checkpoint": forged}, ("--key", key), "not genuine")):
        done = verify(proof | changed, *options)
        assert done.returncode == 1 and said in done.stdout, (changed, done.stdout, done.stderr)
    for bad in ({"salt": "A"}, {"leaf": "x"}, {"hashes": "x"}, {"index": -1}, {"checkpoint": "x"}, {"visitor": 5}):
        done = verify(proof | bad)
        assert done.returncode in (1, 2) and f"`{next(iter(bad))}`" in done.stderr, (bad, done.stderr)


def test_a_place_that_a_draw_gave(start, postgres, tmp_path):
    """The proof is of the place in the line, not of the one before the draw."""
    system = start({"sale": CALM | {"capacity": 1, "order": "draw", "opens_at": time_in(600)}}, archivers=1, prepare=prepared,
                   settings={"archive": {"url": postgres.url}})
    come = [system.join("sale") for _ in range(5)]
    open_now(system)
    wait_until(lambda: drawn(system), PATIENCE, "the draw is done")
    agree(system, postgres)
    check_trail(postgres)
    path = tmp_path / "place.json"

    def proof_of(visitor):
        visitor.status()  # with the ticket of the new place
        answer = visitor.client.get("/v1/queues/sale/trail/proof", visitor.ticket)
        return answer.json if answer.status == 200 else None

    for visitor in come:
        proof = wait_until(lambda visitor=visitor: proof_of(visitor), PATIENCE, "it is proved", every=0.1)
        words = proof["leaf"].split(" ")
        place = ":".join(words[6].split(":")[:2])
        assert words[2] == "drawn" and place.split(":")[1] == postgres.sql(
            f"SELECT seq FROM queue_entries WHERE visitor = '{visitor.view['visitor']}'")
        for changed, status, said in (({}, 0, f"the place {place} is this visitor's: drawn at"),
                                      ({"visitor": "another"}, 1, "not about this visitor")):
            path.write_text(json.dumps(proof | changed))
            done = run(BIN / "tellerline", "verify", "place", str(path))
            assert done.returncode == status and said in done.stdout, done.stdout + done.stderr


def test_without_an_archive_there_is_no_trail(start):
    system = start({"sale": CALM | {"capacity": 3}})
    visitor = system.join("sale")
    assert visitor.client.get("/v1/queues/sale/trail/checkpoint").problem(404)
    assert visitor.client.get("/v1/queues/sale/trail/proof", visitor.ticket).problem(404)
