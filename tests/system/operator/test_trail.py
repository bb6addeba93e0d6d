# SPDX-License-Identifier: Apache-2.0
"""The trail: an export of a sale proves its order, and whatever is changed in it is found."""
from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from admin import Admin, admin_file
from tellerline import BIN, CALM, run
from http_client import Client
from test_archive import agree, agree_open, join_many, lose_end, value
from test_draw import drawn, open_now, time_in, with_secrets
from test_pass import API_KEY, key_file
from test_store_trouble import PROMPT
from trails import TILES, check_trail
from waiting import PATIENCE, wait_until

PEER = Path(__file__).resolve().parents[1] / "trail_peer"
TURN = "each admission was the turn of who was admitted"


def turn_of(said: str) -> str:
    """What it has to say of the admissions."""
    return TURN if "of 0 admissions" in said else TURN.replace("each", "each other")


def prepared(system):
    admin_file(system)
    with_secrets(system)


def export(system, path, *options):
    done = system.ctl("trail", "export", "sale", *options)
    assert done.returncode == 0, done.stderr
    path.write_text(done.stdout)
    return path


def verify(path, *options) -> subprocess.CompletedProcess[str]:
    return run(BIN / "tellerline", "verify", "trail", *options, str(path))


def verify_rows(system, path) -> subprocess.CompletedProcess[str]:
    """Also that PostgreSQL has the places that ended as the trail says."""
    return system.ctl("verify", "trail", str(path), "--archive")


def key_of(system) -> str:
    done = system.ctl("trail", "key")
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def sold(system, postgres):
    """A sale with lanes, a draw, a move, leaves, no-shows and completions, while the archiver is killed."""
    desk, archiver = Admin(system.of("worker")[0]), system.of("archiver")[0]
    desk.done("POST", "queues/sale/joins", {"visitors": [
        {"visitor": f"early{i}", "lane": "vip" if i % 5 == 0 else "normal"} for i in range(300)]})
    archiver.kill()
    open_now(system)
    wait_until(lambda: drawn(system), PATIENCE, "the draw is done")
    archiver.start()
    come = [system.join("sale") for _ in range(12)]
    join_many(system, 200, "late")
    desk.done("POST", "queues/sale/visitors/late7/lane", {"lane": "vip"})
    come.pop().leave()
    desk.done("DELETE", "queues/sale/visitors/late9")
    archiver.kill()
    system.set("sale", "capacity=60")
    system.ctl("queue", "pause", "sale")
    system.ctl("queue", "resume", "sale")
    archiver.start()
    wait_until(lambda: system.numbers("sale")["unclaimed"] > 100, PATIENCE, "some did not come")

    def is_over(visitor):
        if visitor.status()["status"] == "active":
            visitor.complete()
        return visitor.view["status"] not in ("waiting", "active")

    # All are asked each time: no turn passes while another one is waited for, unless the machine is too slow for that.
    wait_until(lambda: all([is_over(visitor) for visitor in come]), PATIENCE, "the turn of each comes")
    desk.close()
    wait_until(lambda: system.numbers("sale")["waiting"] == 0 and system.numbers("sale")["active"] == 0, PATIENCE,
               "the sale ends")
    agree(system, postgres)


@pytest.mark.long(seconds=30)
def test_a_sale_is_proved_and_changes_are_found(start, postgres, tmp_path):
    """One altered, removed, inserted and swapped leaf are each named, and so is a false signature."""
    system = start({"sale": CALM | {"capacity": 40, "claim_ttl": "1s", "lanes": ["vip", "normal"], "default_lane": "normal",
                                    "order": "draw", "opens_at": time_in(600)}},
                   archivers=1, prepare=prepared, settings={"archive": {"url": postgres.url}})
    system.join("sale")
    agree(system, postgres)
    older, key = export(system, tmp_path / "older"), key_of(system)
    sold(system, postgres)
    leaves = check_trail(postgres)
    path = export(system, tmp_path / "trail")
    done = verify(path, "--key", key, "--since", str(older))
    assert done.returncode == 0 and TURN in done.stdout and "since the older checkpoint" in done.stdout, done.stdout + done.stderr
    assert "gap" not in done.stdout and "no key" not in done.stdout
    done = verify_rows(system, path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no key was given" in verify(path).stdout

    text = path.read_text()
    head, hashes, body = text.split("\n\n")[0] + "\n\n" + text.split("\n\n")[1], text.split("\n\n")[2], text.split("\n\n")[3]
    lines = body.splitlines()
    assert lines == leaves

    def found(changed, *words, other_head=head, options=("--key", key)):
        bad = tmp_path / "bad"
        bad.write_text("\n\n".join((other_head, hashes, "\n".join(changed) + "\n")))
        said = verify(bad, *options)
        assert said.returncode == 1 and all(word in said.stdout for word in words), said.stdout + said.stderr
        return said.stdout

    admitted = [i for i, leaf in enumerate(leaves) if " admitted " in leaf]
    i, j = admitted[50], next(k for k in admitted[51:] if leaves[k].split()[0] != leaves[admitted[50]].split()[0])
    words = leaves[i].split(" ")
    found(lines[:i] + [" ".join(["1", *words[1:]])] + lines[i + 1:], f"leaf {i} was altered", "comes after step")
    gone = found(lines[:i] + lines[i + 1:], f"leaf {i} was removed")
    assert f"place {words[3]}:{words[4]}, which waited since" in gone, gone
    twice = found(lines[:i + 1] + [lines[i]] + lines[i + 1:], f"1 line was inserted before leaf {i + 1}")
    assert f"leaf {i + 1}, " in twice and f"place {words[3]}:{words[4]} is active since leaf {i}" in twice, twice
    swapped = lines[:]
    swapped[i], swapped[j] = lines[j], lines[i]
    said = found(swapped, f"leaf {i} was replaced with leaf {j}", f"leaf {j} was replaced with leaf {i}")
    assert f"leaf {i}, " in said and "went before place" in said, said
    swapped = lines[:]
    swapped[0], swapped[1] = lines[1], lines[0]
    found(swapped, "leaf 0 and leaf 1 were swapped")

    # The checkpoint is written again for what was altered, but not signed by the key.
    found(lines, "the checkpoint is not genuine: its signature by", other_head=head.replace("/sale/", "/sole/"))
    other = head.splitlines()
    other[1] = str(len(lines) - 1)
    found(lines, "the checkpoint is not genuine", "as many hashes", other_head="\n".join(other))
    stranger = key.split("+")[0] + "+"
    assert verify(path, "--key", stranger).returncode == 1


def test_rows_that_are_not_as_the_trail_says(start, postgres, tmp_path):
    """Of places that ended: one that was altered, moved in time, removed or inserted is named."""
    system = start({"sale": CALM | {"capacity": 3, "lanes": ["vip", "normal"], "default_lane": "normal"}}, archivers=1,
                   prepare=admin_file, settings={"archive": {"url": postgres.url}})
    wait_until(lambda: postgres.sql("SELECT count(*) FROM trails") == "1", PATIENCE, "there is a trail, of no places yet")
    done = verify_rows(system, export(system, tmp_path / "empty"))
    assert done.returncode == 0 and "0 entered" in done.stdout, done.stdout + done.stderr
    for visitor in [system.join("sale") for _ in range(8)]:
        wait_until(visitor.is_active, PATIENCE, "the turn of each comes")
        visitor.complete()
    join_many(system, 5, "v")
    agree(system, postgres)
    path = export(system, tmp_path / "trail")
    assert ";capacity=3;lanes=vip,normal" in path.read_text()
    done = verify_rows(system, path)
    assert done.returncode == 0, done.stdout + done.stderr
    seqs = [int(seq) for [seq] in postgres.rows("SELECT seq FROM queue_entries WHERE status = 'completed' ORDER BY seq")]
    changes = ["SET status = 'left'", "SET admitted_at = admitted_at - interval '1 min'", "SET ended_at = ended_at - interval '1 h'",
               "SET lane = 0", "SET joined_at = joined_at - interval '1 h'", "SET seq = 7"]
    for change, seq in zip(changes, seqs):
        postgres.sql(f"UPDATE queue_entries {change} WHERE seq = {seq}")
    postgres.sql(f"DELETE FROM queue_entries WHERE seq = {seqs[6]}")
    done = verify_rows(system, path)
    found = done.stdout.splitlines()
    assert done.returncode == 1 and len([line for line in found if line.startswith("number ")]) == 8, done.stdout + done.stderr
    assert found[0].startswith("number 7: in the trail not there, in PostgreSQL completed at ")
    assert found[1].startswith(f"number {seqs[0]}: in the trail completed at ") and " in PostgreSQL left at " in found[1]
    assert found[6].endswith("in PostgreSQL not there") and found[7].startswith(f"number {seqs[6]}: ")
    assert "8 violations" in done.stdout
    join_many(system, 3, "later")
    agree_open(system, postgres)
    assert verify_rows(system, path).stdout == done.stdout


def test_a_gap_is_told(start, postgres, tmp_path):
    """What is missing in the record is counted, and is no violation."""
    system = start({"sale": CALM | {"capacity": 3}}, archivers=1, prepare=admin_file,
                   settings={"archive": {"url": postgres.url, "entries": 10}})
    first = [system.join("sale") for _ in range(6)]
    agree(system, postgres)
    postgres.stop()
    for visitor in first[:3]:
        wait_until(visitor.is_active, PATIENCE, "the turn of each comes")
        visitor.complete()
    for _ in range(12):
        system.join("sale")
    postgres.start()
    wait_until(lambda: postgres.sql("SELECT count(*) FROM queue_gaps WHERE reason = 'backlog'") == "1", PATIENCE, "the gap is recorded")
    wait_until(lambda: postgres.sql("SELECT bool_and(told_whole) FROM queue_generations") == "t", PATIENCE, "all are told")
    check_trail(postgres)
    assert verify_rows(system, export(system, tmp_path / "trail")).returncode == 0
    done = verify(export(system, tmp_path / "trail"), "--key", key_of(system))
    assert done.returncode == 0 and "1 gap; of " in done.stdout and turn_of(done.stdout) in done.stdout, done.stdout + done.stderr


def build_peer(tmp_path):
    """A program with Go's implementation of logs and signed notes."""
    go = shutil.which("go") or "/usr/local/go/bin/go"
    if not Path(go).exists():
        pytest.skip("Go is not installed")
    done = subprocess.run([go, "build", "-o", tmp_path / "peer", "."], cwd=PEER, capture_output=True, text=True, check=False,
                          timeout=300)
    if done.returncode != 0 and ("dial tcp" in done.stderr or "proxy" in done.stderr):
        pytest.skip(f"golang.org/x/mod cannot be fetched: {done.stderr}")
    assert done.returncode == 0, done.stderr
    return tmp_path / "peer"


def tiles_into(postgres, folder):
    """As a log server would have them."""
    folder.mkdir()
    (folder / "checkpoint").write_bytes(bytes.fromhex(postgres.sql("SELECT encode(convert_to(checkpoint, 'UTF8'), 'hex') FROM trails")))
    for level, n, text in postgres.rows(TILES.format("true")):
        (folder / f"{level}-{n}").write_bytes(bytes.fromhex(text))
    return folder


@pytest.mark.long(seconds=30)
def test_another_implementation_agrees(start, postgres, tmp_path):
    """golang.org/x/mod/sumdb verifies checkpoints, tiles, and proofs of leaves and of an older trail."""
    peer = build_peer(tmp_path)
    system = start({"sale": CALM | {"capacity": 1000, "claim_ttl": "1s"}}, archivers=1, prepare=admin_file,
                   settings={"archive": {"url": postgres.url}})
    join_many(system, 200, "first")
    agree(system, postgres)
    older = tiles_into(postgres, tmp_path / "older") / "checkpoint"
    join_many(system, 700, "second")
    wait_until(lambda: system.numbers("sale")["unclaimed"] == 900, PATIENCE, "none came")
    agree(system, postgres)
    key, folder = key_of(system), tiles_into(postgres, tmp_path / "tiles")
    done = run(peer, key, folder, older)
    assert done.returncode == 0 and "leaves are proved" in done.stdout, done.stdout + done.stderr
    # It notices what it has to.
    tile = folder / "0-1"
    tile.write_bytes(bytes([tile.read_bytes()[0] ^ 1]) + tile.read_bytes()[1:])
    assert run(peer, key, folder, older).returncode == 1


@pytest.mark.parametrize("settings", [
    {"capacity": 20, "lanes": ["vip", "normal"], "lane_weights": [3, 1], "default_lane": "normal"},
    {"capacity": 10, "overbook": 4}, {"policy": "both", "capacity": 30, "rate": {"admit": 10, "every": "200ms"}},
], ids=["weights", "overbook", "both"])
def test_other_rules(start, postgres, tmp_path, settings):
    """Weights of lanes, overbooking and a rate keep what the trail proves."""
    system = start({"sale": CALM | settings | {"claim_ttl": "1s"}}, archivers=1, prepare=admin_file,
                   settings={"archive": {"url": postgres.url}})
    desk, lanes = Admin(system.of("worker")[0]), settings.get("lanes", ["normal"])
    desk.done("POST", "queues/sale/joins", {"visitors": [
        {"visitor": f"v{i}"} | ({"lane": lanes[i % 2]} if len(lanes) > 1 else {}) for i in range(100)]})
    desk.close()
    wait_until(lambda: system.numbers("sale")["unclaimed"] >= 60, PATIENCE, "some did not come")
    system.set("sale", "capacity=5")
    wait_until(lambda: system.numbers("sale")["unclaimed"] == 100, PATIENCE, "none came")
    agree(system, postgres)
    done = verify_rows(system, export(system, tmp_path / "trail"))
    assert done.returncode == 0 and TURN in done.stdout and "100 admitted" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("order", ["arrival", "draw"])
def test_a_line_that_was_changed_by_hand(start, postgres, tmp_path, order):
    """Two visitors whose places are swapped in Redis: the trail shows it, also after the draw."""
    settings = {"capacity": 1} | ({"order": order, "opens_at": time_in(600)} if order == "draw" else {})
    system = start({"sale": CALM | settings}, archivers=1, prepare=prepared, settings={"archive": {"url": postgres.url}})
    system.expect("the archive is told what cannot be")
    join_many(system, 6, "v")
    agree(system, postgres)
    if order == "draw":
        open_now(system)
        wait_until(lambda: drawn(system), PATIENCE, "the draw is done")
    wait_until(lambda: system.numbers("sale")["active"] == 1, PATIENCE, "one is active")
    agree(system, postgres)
    waiting = system.key("sale", "waiting")
    line = system.store.command("ZRANGE", waiting, 0, -1)
    (one, at), (other, there) = [(name, system.store.command("ZSCORE", waiting, name)) for name in (line[1], line[3])]
    system.store.command("ZADD", waiting, there, one, at, other)
    system.set("sale", "capacity=6")
    wait_until(lambda: system.numbers("sale")["active"] == 6, PATIENCE, "all are active")
    agree(system, postgres)
    done = verify_rows(system, export(system, tmp_path / "trail"))
    assert done.returncode == 1 and done.stdout.count("belongs to another visitor") == 2, done.stdout + done.stderr


@pytest.mark.long(seconds=30)
def test_the_store_forgets_the_opening(start, postgres, tmp_path):
    """A loss of more admissions than are told in a step is no violation, whatever is told first."""
    system = start({"sale": CALM | {"capacity": 1100, "claim_ttl": "10m", "opens_at": time_in(600)}}, archivers=1,
                   prepare=admin_file, settings=PROMPT | {"archive": {"url": postgres.url}})
    join_many(system, 700, "v")
    join_many(system, 700, "w")
    agree_open(system, postgres)
    open_now(system)
    history = system.redis.history()
    wait_until(lambda: system.numbers("sale")["active"] == 1100, PATIENCE, "they are admitted")
    agree_open(system, postgres)
    lose_end(system, postgres, history)
    wait_until(lambda: postgres.sql("SELECT bool_and(told_whole) FROM queue_generations") == "t", PATIENCE, "all are told")
    wait_until(lambda: system.numbers("sale")["active"] == 1100, PATIENCE, "they are admitted again")
    agree_open(system, postgres)
    done = verify(export(system, tmp_path / "trail"))
    assert done.returncode == 0 and "1 gap; of " in done.stdout and "2200 admitted" in done.stdout, done.stdout + done.stderr


def test_the_store_forgets_its_end(start, postgres, tmp_path):
    """What was told and then lost is a gap, and no violation."""
    system = start({"sale": CALM | {"capacity": 2}}, archivers=1, prepare=admin_file,
                   settings=PROMPT | {"archive": {"url": postgres.url}})
    visitors = [system.join("sale") for _ in range(5)]
    agree(system, postgres)
    history = system.redis.history()
    for visitor in visitors[:2]:
        wait_until(visitor.is_active, PATIENCE, "the turn of each comes")
        visitor.complete()
    agree(system, postgres)
    lose_end(system, postgres, history)
    wait_until(lambda: postgres.sql("SELECT bool_and(told_whole) FROM queue_generations") == "t", PATIENCE, "all are told")
    system.set("sale", "capacity=5")
    wait_until(lambda: system.numbers("sale")["waiting"] == 0, PATIENCE, "all are active")
    agree_open(system, postgres)
    done = verify_rows(system, export(system, tmp_path / "trail"))
    assert done.returncode == 0 and " gap" in done.stdout and turn_of(done.stdout) in done.stdout, done.stdout + done.stderr


def test_tiles_that_are_missing(start, postgres):
    """To a damaged trail nothing is added; what happens is archived all the same, and other queues have their trails."""
    queues = {name: CALM | {"capacity": 1} for name in ("sale", "other")}
    system = start(queues, archivers=1, prepare=admin_file, settings={"archive": {"url": postgres.url}})
    system.expect("are missing or damaged in PostgreSQL")
    join_many(system, 1, "v")
    join_many(system, 1, "w", "other")
    wait_until(lambda: postgres.sql("SELECT count(*) FROM queue_entries") == "2", PATIENCE, "both are archived")
    sale, other = (postgres.sql(f"SELECT generation_id FROM queue_generations JOIN queues USING (queue_id) WHERE name = '{name}'")
                   for name in ("sale", "other"))
    kept = f"SELECT size, md5(string_agg(bytes, '' ORDER BY level, first)) FROM trails JOIN trail_tiles USING (generation_id) WHERE " \
           f"generation_id = {sale} GROUP BY 1"
    leaves = f"SELECT count(leaf) FROM queue_entries WHERE generation_id = {sale}"
    postgres.sql(f"CREATE TABLE lost AS SELECT * FROM trail_tiles WHERE generation_id = {sale} AND level = 0; "
                 f"DELETE FROM trail_tiles WHERE generation_id = {sale} AND level = 0")
    before = postgres.sql(kept)
    join_many(system, 2, "later")
    join_many(system, 3, "more", "other")
    wait_until(lambda: postgres.sql("SELECT count(*) FROM queue_entries") == "7", PATIENCE, "all are archived")
    assert f"the trail of generation_id {sale} are missing" in system.of("archiver")[0].text()
    client = Client(system.of("archiver")[0].admin_port)
    wait_until(lambda: value(client, "tellerline_archive_trails_damaged") == 1, PATIENCE, "its metrics say so")
    assert postgres.sql(kept) == before and postgres.sql(leaves) == "1"
    assert sum(" entered " in leaf or " waits " in leaf or " stays " in leaf for leaf in check_trail(postgres, other)) >= 4
    postgres.sql("INSERT INTO trail_tiles SELECT * FROM lost")
    join_many(system, 1, "last")
    wait_until(lambda: postgres.sql(leaves) == "2", PATIENCE, "it goes on")
    wait_until(lambda: value(client, "tellerline_archive_trails_damaged") == 0, PATIENCE, "its metrics say so")
    client.close()


def test_a_lone_event_costs_little(start, postgres):
    """What a transaction adds to a long trail is written, and not the open tiles again, which were some 14 kB."""
    system = start({"sale": CALM | {"capacity": 1}}, archivers=1, prepare=admin_file, settings={"archive": {"url": postgres.url}})
    join_many(system, 200, "v")
    agree(system, postgres)
    costs = []
    for _ in range(8):
        before = postgres.sql("SELECT pg_current_wal_insert_lsn()")
        system.join("sale")
        agree(system, postgres)
        costs.append(int(postgres.sql(f"SELECT pg_current_wal_insert_lsn() - '{before}'")))
    # The least: a page of which this is the first change is written as a whole, once after each checkpoint of PostgreSQL.
    assert min(costs) < 2000, costs
    check_trail(postgres)


@pytest.mark.parametrize("which", ["archive", "trail"])
def test_an_archiver_with_another_key(start, postgres, which):
    """It writes nothing, and says what to do; once that is done, it goes on."""
    system = start({"sale": CALM | {"capacity": 1}}, archivers=1, prepare=admin_file, settings={"archive": {"url": postgres.url}})
    system.expect("is not the one with which the archive was written")
    join_many(system, 1, "v")
    agree(system, postgres)
    archiver, file = system.of("archiver")[0], system.directory / "secrets" / f"{which}.key"
    archiver.stop()
    key = file.read_text()
    file.write_text("0123456789abcdef" * 4 + "\n")
    archiver.start()
    wait_until(lambda: f"secrets.{which}_key" in archiver.text() and "delete the row of tellerline.archive_keys" in archiver.text(),
               PATIENCE, "it says so")
    join_many(system, 1, "w")
    assert postgres.sql("SELECT count(*) FROM queue_entries") == "1"
    postgres.sql("DELETE FROM archive_keys")
    agree(system, postgres)
    assert key not in file.read_text() and postgres.sql("SELECT count(*) FROM archive_keys") == "1"


def test_a_site_that_moves(start, postgres, tmp_path):
    """With another host in http.public_url the archiver goes on in the name that the trail has, and says so once, also to
    PostgreSQL that was away; the published key and older checkpoints stay good."""
    system = start({"sale": CALM | {"capacity": 9}}, archivers=1, prepare=admin_file, settings={"archive": {"url": postgres.url}})
    join_many(system, 2, "v")
    agree(system, postgres)
    archiver, key = system.of("archiver")[0], key_of(system)
    older, moved = export(system, tmp_path / "older"), "the trail is still signed in the name"
    assert f"the key that verifies the trail is {key}" in archiver.text() and moved not in archiver.text()
    archiver.stop()
    archiver.env["TELLERLINE_HTTP_PUBLIC_URL"] = "https://moved.example"
    archiver.start()
    join_many(system, 2, "w")
    agree(system, postgres)
    postgres.stop()
    join_many(system, 2, "x")
    postgres.start()
    agree(system, postgres)
    check_trail(postgres)
    assert archiver.text().count(moved) == 1
    done = verify(export(system, tmp_path / "trail"), "--key", key, "--since", str(older))
    assert done.returncode == 0 and "since the older checkpoint" in done.stdout, done.stdout + done.stderr
    archiver.stop()
    postgres.sql("DELETE FROM archive_keys")
    archiver.start()
    join_many(system, 2, "y")
    agree(system, postgres)
    assert key_of(system).startswith("moved.example+") and archiver.text().count(moved) == 1
    assert verify(export(system, tmp_path / "renamed"), "--key", key_of(system)).returncode == 0


def test_the_key_comes_from_the_archive(postgres, tmp_path):
    """`tellerline trail key` needs no file of the archiver, nor a setting for the archive of `tellerline up`; without an
    archive it reads the file."""
    def key(*options: str, **env: str) -> subprocess.CompletedProcess[str]:
        return run(BIN / "tellerline", "trail", "key", *options, cwd=tmp_path,
                   env={f"TELLERLINE_{name}": value for name, value in env.items()})

    def refused(*words: str, **env: str) -> None:
        done = key(**env)
        assert done.returncode == 2 and done.stdout == "" and all(word in done.stderr for word in words), done.stderr

    refused("has no key yet", "start an archiver", ARCHIVE_URL=postgres.url)
    postgres.sql("INSERT INTO archive_keys (archive_key, trail_key) VALUES ('hash', 'wait.example+01234567+KEY')")
    done = key(ARCHIVE_URL=postgres.url)
    assert done.returncode == 0 and done.stdout == "wait.example+01234567+KEY\n", done.stderr
    (tmp_path / "up").mkdir()
    (tmp_path / "up" / "postgres.url").write_text(f"{postgres.url}\n")
    done = key("--data", "up")
    assert done.returncode == 0 and done.stdout == "wait.example+01234567+KEY\n", done.stderr
    refused("trail.key")
    (tmp_path / "secrets").mkdir()
    file = tmp_path / "secrets" / "trail.key"
    file.touch(mode=0o600)
    file.write_text("0123456789abcdef" * 4 + "\n")
    done = key(HTTP_PUBLIC_URL="https://own.example")
    assert done.returncode == 0 and done.stdout.startswith("own.example+"), done.stderr


def test_a_capacity_that_is_steered(start, postgres, tmp_path):
    """The rules in force follow what the site reports."""
    keys = key_file(tmp_path / "api.keys", f"shop {API_KEY}\n")
    steered = {"capacity": {"min": 2, "max": 20}, "adaptive": {"every": "1s", "raise": "20%", "fresh": "5s"}, "claim_ttl": "10m"}
    system = start({"sale": CALM | steered}, archivers=1, prepare=admin_file,
                   settings={"secrets": {"api_keys": keys}, "archive": {"url": postgres.url}})
    join_many(system, 30, "v")

    def reports() -> bool:
        answer = system.client().post("/v1/queues/sale/feedback", b'{"load": 0.3}', ticket=API_KEY)
        return answer.status == 202 and system.active("sale") >= 10
    wait_until(reports, PATIENCE, "the capacity is raised", every=0.3)
    agree(system, postgres)
    system.store.command("HDEL", system.key("sale", "config"), "mode")
    system.set("sale", "claim_ttl=9m")
    agree(system, postgres)
    system.store.command("HSET", system.key("sale", "config"), "mode", "open")
    assert ";mode=open;" in [leaf for leaf in check_trail(postgres) if " rules " in leaf][-1]
    rules = {leaf.partition(";capacity=")[2].partition(";")[0] for leaf in check_trail(postgres) if " rules " in leaf}
    assert {"2", "6", "10"} <= rules
    done = verify_rows(system, export(system, tmp_path / "trail"))
    assert done.returncode == 0 and TURN in done.stdout, done.stdout + done.stderr
