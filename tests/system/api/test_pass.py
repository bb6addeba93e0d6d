# SPDX-License-Identifier: Apache-2.0
"""Passes, a gateway's checks of visitors, and invites, as other programs see them."""
from __future__ import annotations

import base64
import json
import os
import re
import signal
import threading
import time
import uuid
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from http_client import Answer, Client, Visitor
from sse import EventStream
from tellerline import CALM, PATIENCE, System
from test_faults_clock import Clock
from test_store_trouble import STORE_TROUBLE
from waiting import patient, wait_until

pytestmark = pytest.mark.together(seconds=30)

ISSUER = "http://localhost:8080"
API_KEY = "k" * 40
SECRET = "0123456789abcdef" * 4
OTHER_SECRET = "fedcba9876543210" * 4
#: Joins whose place is not known soon get a pending ticket.
HASTY = {"http": {"join_wait": "200ms"}}
REQUIRED = {"require": ["exp", "iat", "sub", "jti", "aud", "iss"]}


def active_visitor(system: System, queue: str = "bank", worker: int = 0) -> Visitor:
    visitor = system.join(queue, worker)
    wait_until(visitor.is_active, PATIENCE, "active")
    return visitor


def told_by_the_join(system: System, queue: str = "bank") -> Visitor:
    """Who has not claimed the session yet: a question would. A join that stalls for a quarter of a second is answered
    before the admission, so that visitor completes, and another one joins."""
    def one() -> Visitor | None:
        visitor = system.join(queue)
        if "pass" in visitor.view:
            return visitor
        wait_until(visitor.is_active, PATIENCE, "active")
        visitor.complete()
        return None

    return wait_until(one, PATIENCE, "a join is answered with the admission")


def hs256_keys(path: Path) -> dict[str, bytes]:
    """kid -> secret, as a site would read the key file."""
    lines = [line.split() for line in path.read_text().splitlines() if " HS256 " in line]
    return {kid: bytes.fromhex(digits) for kid, _, digits in lines}


def verify(token: str, key: Any, algorithm: str = "HS256", audience: str = "bank") -> dict[str, Any]:
    return jwt.decode(token, key, algorithms=[algorithm], audience=audience, issuer=ISSUER,
                      options=REQUIRED)


def with_part(token: str, part: int, change) -> str:
    """The token with one of its JSON parts changed."""
    parts = token.split(".")
    value = json.loads(base64.urlsafe_b64decode(parts[part] + "=="))
    change(value)
    parts[part] = base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")
    return ".".join(parts)


def private_key() -> tuple[ec.EllipticCurvePrivateKey, str]:
    key = ec.generate_private_key(ec.SECP256R1())
    return key, key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                                  serialization.NoEncryption()).decode()


def public_pem(key: ec.EllipticCurvePrivateKey) -> str:
    return key.public_key().public_bytes(serialization.Encoding.PEM,
                                         serialization.PublicFormat.SubjectPublicKeyInfo).decode()


def key_file(path: Path, text: str) -> str:
    path.write_text(text)
    path.chmod(0o600)
    return str(path)


def key_set(client: Client) -> dict[str, Any]:
    answer = client.get("/.well-known/jwks.json")
    assert answer.status == 200, answer.body
    return {key["kid"]: jwt.PyJWK(key).key for key in answer.json["keys"]}


# ---- passes ----

def test_pass_by_shared_secret(start):
    """PyJWT accepts a pass with the secret of the key file. The pass names the visitor, the queue and the expiry."""
    system = start({"bank": {"capacity": 2} | CALM}, workers=2,
                   settings={"worker": {"processes": 2}})
    path = system.directory / "pass.keys"
    assert path.stat().st_mode & 0o777 == 0o600
    keys = hs256_keys(path)
    assert len(keys) == 1, "made once, by whichever process came first"
    visitor = active_visitor(system)
    for worker in (0, 1):
        view = visitor.status(system.client(worker))
        header = jwt.get_unverified_header(view["pass"])
        assert header["alg"] == "HS256" and header["typ"] == "JWT"
        claims = verify(view["pass"], keys[header["kid"]])
        assert claims["sub"] == visitor.view["visitor"] and claims["aud"] == "bank"
        ends = datetime.fromisoformat(view["expires_at"]).replace(tzinfo=timezone.utc)
        assert claims["exp"] == int(ends.timestamp())
        assert claims["iat"] < int(time.time()), "a second early: a verifier may allow no difference of clocks"
        assert abs(claims["iat"] - time.time()) < patient(60)
    assert key_set(visitor.client) == {}, "a shared secret is never published"

    admission = verify(visitor.view["pass"], keys[header["kid"]])["jti"]
    visitor.complete()
    assert "pass" not in visitor.view
    visitor.join()
    wait_until(visitor.is_active, PATIENCE, "admitted a second time")
    again = verify(visitor.view["pass"], keys[header["kid"]])
    assert again["sub"] == visitor.view["visitor"] and again["jti"] != admission


def test_pass_comes_with_the_admission(share, shop):
    """A pass is in the answer to a join below capacity, and in the event `admitted`. A waiting visitor has none."""
    system = share(workers=2, settings=shop.settings)
    bank = system.queue()
    keys = hs256_keys(system.directory / "pass.keys")
    (secret,) = keys.values()
    for _ in range(3):
        first = told_by_the_join(system, bank)
        assert first.view["status"] == "active"
        assert verify(first.view["pass"], secret, audience=bank)["sub"] == first.view["visitor"]
        first.status()
        first.complete()
    first = system.join(bank)
    wait_until(first.is_active, PATIENCE, "the first is active")
    second = system.join(bank)
    assert second.view["status"] == "waiting" and "pass" not in second.view
    stream = EventStream(second.client.port, f"{second.path}/events", second.ticket)
    assert "pass" not in stream.event("position").json
    first.complete()
    told = stream.event("admitted").json
    assert verify(told["pass"], secret, audience=bank)["sub"] == second.view["visitor"]
    jti = verify(told["pass"], secret, audience=bank)["jti"]
    assert {verify(second.status()["pass"], secret, audience=bank)["jti"] for _ in range(3)} == {jti}
    stream.close()


def test_pass_that_is_not_quite_one(share, shop):
    system = share(workers=2, settings=shop.settings)
    bank, post = system.queue(), system.queue()
    token = active_visitor(system, bank).view["pass"]
    ((kid, secret),) = hs256_keys(system.directory / "pass.keys").items()
    assert verify(token, secret, audience=bank)
    for key, audience, wrong in (
            (bytes.fromhex(OTHER_SECRET), bank, token),
            (secret, post, token),
            (secret, bank, with_part(token, 1, lambda claims: claims.update(sub="somebody"))),
            (secret, bank, with_part(token, 1, lambda claims: claims.update(exp=2**31))),
            (secret, bank, with_part(token, 0, lambda header: header.update(alg="none"))),
            (secret, bank, token.rpartition(".")[0] + ".")):
        with pytest.raises(jwt.InvalidTokenError):
            verify(wrong, key, audience=audience)
    with pytest.raises(jwt.InvalidIssuerError):
        jwt.decode(token, secret, algorithms=["HS256"], audience=bank, issuer="http://elsewhere")
    header, claims, signature = token.split(".")
    for i in range(0, len(signature) - 1, 5):  # the last character has unused bits
        other = "A" if signature[i] != "A" else "B"
        with pytest.raises(jwt.InvalidSignatureError):
            verify(f"{header}.{claims}.{signature[:i]}{other}{signature[i + 1:]}", secret, audience=bank)


def test_pass_expires_with_the_session(share, shop):
    system = share(workers=2, settings=shop.settings)
    bank = system.queue(session_ttl="2s", claim_ttl="2s")
    (secret,) = hs256_keys(system.directory / "pass.keys").values()

    def in_time() -> Visitor | None:
        """A visitor with a pass. A slow machine needs several: sessions are short. Each is waited for until it is
        admitted: those left behind in the line would be admitted before the next, two seconds each."""
        visitor = system.join(bank)
        wait_until(lambda: visitor.status()["status"] != "waiting", PATIENCE, "admitted")
        return visitor if "pass" in visitor.view else None

    visitor = wait_until(in_time, PATIENCE, "active")
    token = visitor.view["pass"]
    claims = jwt.decode(token, secret, algorithms=["HS256"], audience=bank, options={"verify_exp": False})
    ends = datetime.fromisoformat(visitor.view["expires_at"]).replace(tzinfo=timezone.utc)
    assert claims["exp"] == int(ends.timestamp())

    def expired() -> bool:
        try:
            verify(token, secret, audience=bank)
            return False
        except jwt.ExpiredSignatureError:
            return True

    wait_until(expired, PATIENCE, "the pass is no longer good")
    assert time.time() >= claims["exp"]
    wait_until(lambda: visitor.status()["status"] == "expired", PATIENCE, "nor is the session")
    assert "pass" not in visitor.view


def test_pass_lasts_as_long_as_the_session(share, shop):
    """Before the claim, the pass expires at the claim's deadline. `renew` gives a pass for the full session."""
    system = share(workers=2, settings=shop.settings)
    bank = system.queue(claim_ttl="1m", session_ttl="10m")
    visitor = told_by_the_join(system, bank)
    (secret,) = hs256_keys(system.directory / "pass.keys").values()

    def lifetime() -> int:
        claims = verify(visitor.view["pass"], secret, audience=bank)
        return claims["exp"] - claims["iat"]

    assert 30 <= lifetime() <= 61
    visitor.renew()
    assert 540 <= lifetime() <= 601
    visitor.status()
    assert 540 <= lifetime() <= 601


def test_pass_by_public_key(start):
    """ES256: a site needs no secret, only the key set."""
    system = start({"bank": {"capacity": 1} | CALM}, workers=2,
                   settings={"pass": {"algorithm": "ES256"}})
    view = active_visitor(system).view
    for worker in system.of("worker"):
        client = jwt.PyJWKClient(f"http://127.0.0.1:{worker.http_port}/.well-known/jwks.json")
        key = client.get_signing_key_from_jwt(view["pass"]).key
        assert verify(view["pass"], key, "ES256")["sub"] == view["visitor"]
    answer = system.client().get("/.well-known/jwks.json")
    (published,) = answer.json["keys"]
    assert "d" not in published, "the private half stays here"
    assert (published["kty"], published["crv"], published["alg"], published["use"]) \
        == ("EC", "P-256", "ES256", "sig")
    with pytest.raises(jwt.InvalidTokenError):
        verify(view["pass"], private_key()[0].public_key(), "ES256")
    with pytest.raises(jwt.InvalidTokenError):
        verify(with_part(view["pass"], 1, lambda claims: claims.update(sub="x")), key, "ES256")


@pytest.mark.sanitized
def test_key_rotation_without_a_gap(start, tmp_path):
    """During a key change, the key set of every worker accepts every pass, whichever worker has reloaded."""
    (_, old_pem), (_, new_pem) = private_key(), private_key()
    old, new = f"old ES256\n{old_pem}", f"new ES256\n{new_pem}"
    path = tmp_path / "pass.keys"
    system = start({"bank": {"capacity": 5} | CALM}, workers=2,
                   settings={"pass": {"algorithm": "ES256"},
                             "secrets": {"pass_keys": key_file(path, old)}})
    visitor = active_visitor(system)
    passes = [visitor.view["pass"]]
    clients = [system.client(0), system.client(1)]

    def all_good() -> None:
        for client in clients:
            token = visitor.status(client)["pass"]
            passes.append(token)
        for client in clients:
            keys = key_set(client)
            for token in passes:
                kid = jwt.get_unverified_header(token)["kid"]
                assert verify(token, keys[kid], "ES256")

    def kids() -> list[str]:
        return [jwt.get_unverified_header(visitor.status(client)["pass"])["kid"]
                for client in clients]

    wait_until(lambda: all("pass" in visitor.status(client) for client in clients), PATIENCE, "both workers know")
    all_good()
    assert kids() == ["old", "old"]
    key_file(path, old + new)
    for worker in (0, 1):
        system.of("worker")[worker].send(signal.SIGHUP)
        wait_until(lambda w=worker: "new" in key_set(clients[w]), PATIENCE, "the new key is known")
    all_good()
    assert kids() == ["old", "old"]
    key_file(path, new + old)
    for worker in (0, 1):
        system.of("worker")[worker].send(signal.SIGHUP)
        wait_until(lambda w=worker: kids()[w] == "new", PATIENCE, "the new key signs")
        all_good()
    assert kids() == ["new", "new"]
    # An unreadable file leaves the running keys in place.
    key_file(path, "broken")
    system.expect("reload refused")
    system.of("worker")[0].send(signal.SIGHUP)
    wait_until(lambda: "reload refused" in system.of("worker")[0].text(), PATIENCE, "refused")
    all_good()
    key_file(path, new)
    for worker in (0, 1):
        system.of("worker")[worker].send(signal.SIGHUP)
        wait_until(lambda w=worker: "old" not in key_set(clients[w]), PATIENCE, "the old key is gone")


# ---- check ----

def check(client: Client, queue: str = "bank", query: str = "", ticket: str | None = None,
          headers: dict[str, str] | None = None) -> Answer:
    answer = client.get(f"/v1/queues/{queue}/check{query}", ticket=ticket, headers=headers)
    if answer.status == 401:
        assert answer.headers["x-tellerline-location"].startswith(f"{ISSUER}/q/{queue}"), "the page of this queue"
    return answer


def let_in(answer: Answer, visitor: str | None) -> bool:
    assert answer.status in (204, 401), f"{answer.status}: {answer.body!r}"
    if answer.status == 401:
        return False
    assert answer.body == b"" and answer.headers.get("x-tellerline-visitor") == visitor
    return True


def turned_away(answer: Answer) -> str:
    """The address of the waiting page."""
    answer.problem(401)
    assert answer.headers["www-authenticate"].startswith("Bearer")
    return answer.headers["x-tellerline-location"]


def test_check_by_bearer_cookie_and_query(share, shop):
    system = share(workers=2, settings=shop.settings)
    bank, post = system.queue(), system.queue()
    inside = active_visitor(system, bank)
    outside = system.join(bank)
    assert outside.view["status"] == "waiting"
    name = inside.view["visitor"]
    for worker in (0, 1):
        client = system.client(worker)

        def asked(visitor: Visitor, c: Client = client) -> list[Answer]:
            return [check(c, bank, ticket=visitor.ticket), check(c, bank, query=f"?ticket={visitor.ticket}"),
                    check(c, bank, headers={"Cookie": f"x=y; tellerline_{bank}={visitor.ticket}"})]

        wait_until(lambda: let_in(asked(inside)[0], name), PATIENCE, "known to this worker")
        assert all(let_in(answer, name) for answer in asked(inside))
        for answer in asked(outside) + [check(client, bank), check(client, bank, ticket="x" * 40)]:
            turned_away(answer)
        turned_away(check(client, post, ticket=inside.ticket))
        check(client, "nowhere", ticket=inside.ticket).problem(404)
    inside.complete()
    assert not let_in(check(inside.client, bank, ticket=inside.ticket), None)
    wait_until(lambda: let_in(check(outside.client, bank, ticket=outside.ticket), outside.view["visitor"]),
               PATIENCE, "the next is let in")


@pytest.mark.sanitized
def test_check_by_pass(share, shop):
    """A gateway that holds the pass sends it with the check."""
    system = share(workers=2, settings=shop.settings)
    bank, post = system.queue(), system.queue()
    client = system.client()
    visitor = active_visitor(system, bank)
    token, name = visitor.view["pass"], visitor.view["visitor"]
    ((kid, secret),) = hs256_keys(system.directory / "pass.keys").items()
    assert let_in(check(client, bank, ticket=token), name)
    claims = verify(token, secret, audience=bank)

    def forged(key: Any = secret, algorithm: str = "HS256", header: dict[str, str] | None = None,
               **changes: Any) -> str:
        return jwt.encode(claims | changes, key, algorithm, {"kid": kid} | (header or {}))

    wrong = [forged(exp=int(time.time()) - 60), forged(aud=post), forged(iss="http://elsewhere"),
             forged(iat=int(time.time()) + 600), forged(key=bytes.fromhex(OTHER_SECRET)),
             forged(header={"kid": "../../etc/passwd"}), forged(key=None, algorithm="none"),
             with_part(token, 1, lambda part: part.update(sub="somebody")), token[:-2], token + ".x"]
    for other in wrong:
        turned_away(check(client, bank, ticket=other))
    turned_away(check(client, post, ticket=token))


def test_a_pass_ends_with_its_session(share, shop):
    """At capacity 2, 50 who join and complete leave 50 passes that have not expired. Only those of active sessions open
    the gate, at every worker."""
    system = share(workers=2, settings=shop.settings)
    bank = system.queue(capacity=2, session_ttl="30m")
    clients = [system.client(0), system.client(1)]
    over, inside = [], []
    for i in range(50):
        visitor = active_visitor(system, bank, worker=i % 2)
        (over if i < 48 else inside).append(visitor.view["pass"])
        if i < 48:
            assert let_in(check(clients[i % 2], bank, ticket=over[-1]), visitor.view["visitor"])
            visitor.complete()
    for client in clients:
        # The newest pass is one of the last event, so who knows it knows all ends.
        wait_until(lambda c=client: check(c, bank, ticket=inside[-1]).status == 204, PATIENCE, "known to this worker")
        assert [check(client, bank, ticket=token).status for token in inside] == [204, 204]
        assert {check(client, bank, ticket=token).status for token in over} == {401}


def test_a_worker_that_lags_waits_for_the_event_of_a_pass(share, shop):
    """A worker that was stopped gets the check of a new pass together with the event of its admission."""
    system = share(workers=2, settings=shop.settings)
    bank = system.queue()
    behind = system.of("worker")[1].children()
    client = system.client(1)
    assert check(client, bank).status == 401, "a connection"
    def let_in_at_once() -> bool:
        for pid in behind:
            os.kill(pid, signal.SIGSTOP)
        visitor = active_visitor(system, bank)
        client.send("GET", f"{visitor.path}/check", ticket=visitor.view["pass"])
        for pid in behind:
            os.kill(pid, signal.SIGCONT)
        at_once = let_in(client.receive(), visitor.view["visitor"])
        visitor.complete()
        return at_once

    for _ in range(3):  # a worker that stalls for 250 ms turns a visitor away
        wait_until(let_in_at_once, PATIENCE, "a new pass opens the gate of a worker that was stopped")


def test_check_names_the_place_to_wait(share, shop):
    system = share(workers=2, settings=shop.settings)
    bank = system.queue()
    shop.queue = bank
    client = system.client()
    address = "https://shop.example/checkout?item=7&size=a b#x\"<é"
    wide = address.encode().decode("latin-1")  # bytes as sent in a header
    encoded = quote(address, safe="")
    assert turned_away(check(client, bank)) == f"{ISSUER}/q/{bank}"
    assert turned_away(check(client, bank, headers={"X-Original-URL": wide})) \
        == f"{ISSUER}/q/{bank}?return={encoded}"
    forwarded = {"X-Forwarded-Proto": "https", "X-Forwarded-Host": "shop.example",
                 "X-Forwarded-Uri": wide.removeprefix("https://shop.example")}
    assert turned_away(check(client, bank, headers=forwarded)) == f"{ISSUER}/q/{bank}?return={encoded}"
    long = {"X-Original-URL": "https://shop.example/" + "x" * 2000}
    assert turned_away(check(client, bank, headers=long)) == f"{ISSUER}/q/{bank}"


def test_return_addresses_that_nobody_encoded(share, shop):
    """A raw "&" and letters beyond ASCII are kept; an address that is not taken is said to be refused."""
    system = share(workers=2, settings=shop.settings)
    bank = system.queue(target_url="https://shop.example/")
    shop.queue = bank
    visitor = system.join(bank)
    for sent, kept in (("https://shop.example/a?b=1&c=2%203&lang=en", "https://shop.example/a?b=1&amp;c=2%203"),
                       ("https://shop.example/%ED%95%9C", "https://shop.example/%ED%95%9C"),
                       ("https%3A%2F%2Fshop.example%2Fa%3Fb%3D1%26c%3D2", "https://shop.example/a?b=1&amp;c=2"),
                       ("https://evil.example/", "")):
        page = visitor.client.get(f"/q/{bank}?return={sent}", ticket=visitor.ticket)
        assert f' data-return="{kept}"'.encode() in page.body, sent
        assert ("x-tellerline-return" in page.headers) == (kept == ""), sent


def test_check_is_a_sign_of_life(start, tmp_path):
    """A site that only uses `check` claims the session and extends it; silence ends it. The store's clock is moved."""
    clock = Clock(tmp_path)

    def prepare(system: System) -> None:
        system.redis.prefix = clock.prefix

    system = start({"bank": {"capacity": 1, "claim_ttl": "12s", "session_ttl": "12s", "session_sliding": True,
                             "session_max": "1h", "waiting_ttl": "10m"}}, prepare=prepare)
    visitor, other = system.join("bank"), system.join("bank")
    wait_until(visitor.is_active, PATIENCE, "the first is active")
    name = visitor.view["visitor"]

    def left_s() -> float:
        deadline = int(system.store.command("ZRANGE", system.key("bank", "active"), 0, 0, "WITHSCORES")[1])
        seconds, us = map(int, system.store.command("TIME"))
        return deadline / 1000 - seconds - us / 1e6

    def extended() -> bool:
        let_in(check(visitor.client, ticket=visitor.ticket), name)
        return left_s() > 8  # a late claim, sent before the clock moved, leaves less than there is to the next check

    for at in (6, 12, 18, 24):  # twice as long as a session without a sign of life
        clock.set(at)
        assert let_in(check(visitor.client, ticket=visitor.ticket), name), f"turned away {at} s after the admission"
        wait_until(extended, PATIENCE, "the session is extended")
    assert system.numbers("bank")["expired"] + system.numbers("bank")["unclaimed"] == 0
    clock.set(24 + 13)
    wait_until(lambda: system.numbers("bank")["expired"] == 1, PATIENCE, "silence ends it")
    wait_until(other.is_active, PATIENCE, "the next one's turn")
    assert not let_in(check(visitor.client, ticket=visitor.ticket), name)


@pytest.mark.parametrize("mode", ["closed", "open"])
def test_check_while_the_store_is_away(start, mode):
    """Visitors known to be active stay in. For all others, on_store_error decides."""
    system = start({"bank": {"capacity": 1, "on_store_error": mode} | CALM},
                   settings={"redis": {"timeout": "1s"}}, redis={"appendfsync": "always"})
    system.expect(STORE_TROUBLE)
    client = system.client()
    inside = active_visitor(system)
    outside = system.join("bank")
    name = inside.view["visitor"]
    assert not let_in(check(client, ticket=outside.ticket), None)
    system.redis.kill()
    system.forget_store()
    wait_until(lambda: client.get("/readyz").status == 503, PATIENCE, "the worker reports the store's absence")
    assert let_in(check(client, ticket=inside.ticket), name)
    for ticket in (outside.ticket, None, "x" * 40):
        if mode == "open":
            wait_until(lambda t=ticket: let_in(check(client, ticket=t), None), PATIENCE, "let through")
        else:
            turned_away(check(client, ticket=ticket))
    system.redis.start()
    for program in system.programs:
        program.wait_ready()
    assert let_in(check(client, ticket=inside.ticket), name)
    wait_until(lambda: not let_in(check(client, ticket=outside.ticket), None), PATIENCE,
               "turned away again")


# ---- invites ----

class Shop:
    """The back end of a site, which signs invites to a queue."""

    def __init__(self, directory: Path) -> None:
        self.queue = "bank"
        self.es256, _ = private_key()
        self.keys = key_file(directory / "invite.keys",
                             f"shop HS256 {SECRET}\nshop-2 ES256\n{public_pem(self.es256)}")
        api_keys = key_file(directory / "api.keys", f"shop {API_KEY}\n")
        self.settings = {"secrets": {"invite_keys": self.keys, "api_keys": api_keys}}

    def join(self, client: Client, invite: str) -> Answer:
        return join_by(client, invite, self.queue)

    def invite(self, sub: str, key: Any = bytes.fromhex(SECRET), algorithm: str = "HS256",
               kid: str | None = "shop", **claims: Any) -> str:
        given = {"aud": self.queue, "sub": sub, "jti": str(uuid.uuid4()), "exp": int(time.time()) + 600}
        given |= claims
        return jwt.encode({name: value for name, value in given.items() if value is not None}, key,
                          algorithm, {"kid": kid} if kid else None)


@pytest.fixture(scope="module")
def shop(tmp_path_factory) -> Shop:
    return Shop(tmp_path_factory.mktemp("shop"))


def join_by(client: Client, invite: str, queue: str = "bank") -> Answer:
    return client.post(f"/v1/queues/{queue}/join", json.dumps({"invite": invite}).encode())


def test_invite_names_visitor_and_lane(share, shop):
    system = share(workers=2, settings=shop.settings)
    bank = system.queue()
    shop.queue = bank
    client = system.client()
    active_visitor(system, bank)
    for _ in range(3):
        system.join(bank)
    normal = shop.join(client, shop.invite("user-1")).json
    assert (normal["visitor"], normal["position"]) == ("user-1", 4)
    vip = shop.join(client, shop.invite("user-2", lane="vip")).json
    assert (vip["visitor"], vip["position"]) == ("user-2", 1)
    key = shop.es256
    other = shop.join(client, shop.invite("user-3", key=key, algorithm="ES256", kid="shop-2")).json
    assert (other["visitor"], other["status"]) == ("user-3", "waiting")
    assert Visitor(client, bank, vip["ticket"]).status()["position"] == 1


@pytest.mark.sanitized
def test_invite_counts_once(share, shop):
    """Used again by the visitor who holds the place: the same place. Used by another one, or after the end: spent."""
    system = share(workers=2, settings=shop.settings)
    bank = system.queue()
    shop.queue = bank
    active_visitor(system, bank)
    invite = shop.invite("user-1", jti="only-once")
    clients = [system.client(0), system.client(1)]
    first = shop.join(clients[0], invite).json
    again = shop.join(clients[1], invite).json
    assert (again["visitor"], again["position"]) == (first["visitor"], first["position"])
    assert system.numbers(bank)["joined"] == 2
    stolen = shop.join(clients[1], shop.invite("user-2", jti="only-once"))
    assert stolen.problem(403)["type"] == "/problems/invite-used"
    Visitor(clients[0], bank, again["ticket"]).leave()
    for client in clients:
        assert shop.join(client, invite).problem(403)["type"] == "/problems/invite-used"
    assert system.numbers(bank)["joined"] == 2
    assert shop.join(clients[0], shop.invite("user-1")).status == 200, "a new invite is a new chance"


def test_lane_is_spent_with_the_invite(share, shop):
    """Joining again without a new invite leads to the default lane, at every worker. The place still held stays."""
    system = share(workers=2, settings=shop.settings)
    bank = system.queue()
    shop.queue = bank
    active_visitor(system, bank)
    system.join(bank)
    clients = [system.client(0), system.client(1)]
    view = shop.join(clients[0], shop.invite("user-1", lane="vip")).json
    assert view["position"] == 1
    guest = Visitor(clients[0], bank, view["ticket"])
    assert guest.join().view["position"] == 1, "a repeated join"
    old = guest.ticket
    for client in clients:
        guest.leave()
        again = Visitor(client, bank, old).join().view
        assert again["position"] == 2, "behind the one who waits in the default lane"
        guest.ticket = again["ticket"]
    guest.leave()
    assert shop.join(clients[0], shop.invite("user-1", lane="vip")).json["position"] == 1


def test_invite_raced(share, shop):
    """The same invite from many clients at once makes one place."""
    system = share(workers=2, settings=shop.settings)
    bank = system.queue()
    shop.queue = bank
    active_visitor(system, bank)
    invite = shop.invite("user-1")
    answers: list[Answer] = []
    clients = [system.client(i % 2) for i in range(12)]
    racers = [threading.Thread(target=lambda c=client: answers.append(shop.join(c, invite)))
              for client in clients]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join()
    assert [answer.status for answer in answers] == [200] * 12
    assert {(a.json["visitor"], a.json["position"]) for a in answers} == {("user-1", 1)}
    assert system.numbers(bank)["joined"] == 2


def test_a_pending_ticket_is_no_credential_of_its_own(share, shop):
    """A spent invite, sent again while joins take long, gives a pending ticket that leads to no place; neither does the
    pending ticket of a visitor who has left."""
    system = share(settings=shop.settings | HASTY)
    bank, post = system.queue(join="invited"), system.queue()
    shop.queue = bank
    client = system.client()
    spent = shop.invite("user-1")
    visitor = Visitor(client, bank, shop.join(client, spent).json["ticket"])
    wait_until(lambda: visitor.status()["status"] in ("waiting", "active"), PATIENCE, "in line")
    visitor.leave()
    (dispatcher,) = system.of("dispatcher")
    dispatcher.send(signal.SIGSTOP)
    replayed = shop.join(client, spent)
    fresh = shop.join(client, shop.invite("user-2"))
    uninvited = client.post(f"/v1/queues/{post}/join")
    assert [answer.status for answer in (replayed, fresh, uninvited)] == [202] * 3
    dispatcher.send(signal.SIGCONT)

    def settled(pending: Answer, queue: str) -> Answer:
        return wait_until(lambda: (now := client.get(f"/v1/queues/{queue}/status", ticket=pending.json["ticket"])).status
                          != 202 and now, PATIENCE, "the join has an outcome")

    ended = settled(replayed, bank)  # how the place ended, or nothing: it was some time ago
    assert ended.status == 401 or ended.json["status"] == "left", ended
    assert client.post(f"/v1/queues/{bank}/join", ticket=replayed.json["ticket"]).status in (401, 403)
    for pending, queue in ((fresh, bank), (uninvited, post)):
        guest = Visitor(client, queue, settled(pending, queue).json["ticket"])
        assert guest.view.get("visitor", pending.json["visitor"]) == pending.json["visitor"]
        guest.status()
        guest.leave()
        assert settled(pending, queue).json["status"] == "left"
    client.post(f"/v1/queues/{bank}/join", ticket=fresh.json["ticket"]).problem(403)
    assert system.numbers(bank)["joined"] == 2 and system.numbers(post)["joined"] == 1


def test_a_pending_ticket_outlives_its_place(share, shop):
    """The first answers were lost, so the visitor still has the pending ticket when the place has ended. The API, the
    stream and the page say how, in both languages, and the visitor can join again."""
    system = share(settings=shop.settings | HASTY)
    bank = system.queue()
    client, path = system.client(), f"/v1/queues/{bank}"
    (dispatcher,) = system.of("dispatcher")
    dispatcher.send(signal.SIGSTOP)
    pending = client.post(f"{path}/join")
    given = time.time()
    assert pending.status == 202
    ticket = pending.json["ticket"]
    stream = EventStream(client.port, f"{path}/events", ticket)
    dispatcher.send(signal.SIGCONT)
    visitor = Visitor(client, bank, ticket)
    wait_until(visitor.is_active, PATIENCE, "active")
    wait_until(lambda: int(time.time()) > int(given) + 1, PATIENCE, "a later second than that of the ticket")
    visitor.complete()
    stream.event("ended")
    stream.close()
    for verb in ("leave", "complete", "renew", "extend"):
        assert client.post(f"{path}/{verb}", ticket=ticket).json["status"] == "completed", verb
    assert client.get(f"{path}/status", ticket=ticket).json["status"] == "completed"
    stream = EventStream(client.port, f"{path}/events", ticket)
    assert stream.event("ended").json["status"] == "completed"
    stream.close()
    cookie = {"Cookie": f"tellerline_{bank}={ticket}"}
    for language, words in (("en", "Join again"), ("ko", "다시 줄 서기")):
        page = client.get(f"/q/{bank}", headers=cookie | {"Accept-Language": language})
        assert page.status == 200 and '<section data-state="completed">' in page.body.decode()
        assert words in page.body.decode()
    assert system.numbers(bank)["joined"] == 1
    again = client.post(f"/q/{bank}/join", headers=cookie)
    assert again.status == 303
    fresh = re.search(rf"tellerline_{bank}=([^;]+)", again.headers["set-cookie"]).group(1)
    assert client.get(f"{path}/status", ticket=fresh).json["visitor"] == pending.json["visitor"]
    answer = client.post(f"{path}/join", ticket=ticket)
    assert answer.status == 200 and answer.json["visitor"] == pending.json["visitor"], answer.body
    assert system.numbers(bank)["joined"] == 2


def test_invite_that_does_not_count(share, shop):
    system = share(workers=2, settings=shop.settings)
    bank, post = system.queue(), system.queue()
    shop.queue = bank
    client = system.client()
    now = int(time.time())
    wrong = [
        shop.invite("u", exp=now - 60), shop.invite("u", exp=now + 2 * 86400),
        shop.invite("u", exp=None), shop.invite("u", jti=None), shop.invite("u", aud=post),
        shop.invite("u", aud=None), shop.invite("u", nbf=now + 600), shop.invite("two words"),
        shop.invite("x" * 65), shop.invite("u", kid=None), shop.invite("u", kid="nobody"),
        shop.invite("u", kid="../invite.keys"), shop.invite("u", key=bytes.fromhex(OTHER_SECRET)),
        shop.invite("u", key=None, algorithm="none"), shop.invite("u", kid="shop-2"),
        shop.invite("u", key=private_key()[0], algorithm="ES256", kid="shop-2"),
        with_part(shop.invite("u"), 1, lambda claims: claims.update(sub="admin")),
        "x.y.z", "x", shop.invite("u")[:-3],
    ]
    for invite in wrong:
        problem = shop.join(client, invite).problem(403)
        assert problem["type"] == "/problems/bad-invite" and problem["detail"], invite
    assert shop.join(client, shop.invite("u", lane="nowhere")).status in (400, 403)
    body = json.dumps({"invite": shop.invite("u"), "lane": "vip"}).encode()
    assert client.post(f"/v1/queues/{bank}/join", body).status in (400, 403)
    assert system.numbers(bank)["joined"] == 0
    passes = active_visitor(system, post).view["pass"]
    shop.join(client, passes).problem(403)


def test_no_invite_keys_no_invites(start, shop):
    system = start({"bank": {"capacity": 1} | CALM})
    assert join_by(system.client(), shop.invite("u")).problem(403)["type"] == "/problems/bad-invite"


def test_by_invitation_only(share, shop):
    system = share(workers=2, settings=shop.settings)
    bank = system.queue(join="invited")
    shop.queue = bank
    client = system.client()
    problem = client.post(f"/v1/queues/{bank}/join").problem(403)
    assert problem["type"] == "/problems/by-invitation"
    assert client.get(f"/q/{bank}").status == 403, "the page does not join uninvited either"
    assert client.post(f"/q/{bank}/join").status == 403
    assert system.numbers(bank)["joined"] == 0

    trusted = client.post(f"/v1/queues/{bank}/join", b'{"visitor": "user-0"}', ticket=API_KEY)
    assert trusted.json["visitor"] == "user-0"
    view = shop.join(client, shop.invite("user-1")).json
    guest = Visitor(client, bank, view["ticket"])
    assert guest.join().view["position"] == 1, "a visitor in line needs no second invite"
    guest.leave()
    answer = client.post(f"/v1/queues/{bank}/join", ticket=guest.ticket)
    assert answer.problem(403)["type"] == "/problems/by-invitation"
    page = client.get(f"/q/{bank}?invite={shop.invite('user-2')}")
    assert page.status == 200 and f"tellerline_{bank}=" in page.headers["set-cookie"]
    assert system.numbers(bank)["joined"] == 3
