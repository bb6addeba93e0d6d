# SPDX-License-Identifier: Apache-2.0
"""Queues with `challenge: external`: a new place needs a token, which a challenge service verifies."""
from __future__ import annotations

import itertools
import json
import re
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jwt
import pytest

from browser import chromium, look, make_new, scripts, until, visit
from challenge_service import HOST, SECRET, SITE_KEY, ChallengeService
from figures_of import metric
from http_client import Answer, Client, Visitor
from puzzles import solve
from shared_stack import Stack
from tellerline import CALM, PATIENCE, System, run
from test_pass import API_KEY, key_file
from test_pass import SECRET as INVITE_SECRET
from waiting import wait_until

pytestmark = pytest.mark.together(seconds=40)

QUEUE = CALM | {"capacity": 1, "challenge": "external"}
#: Longer than any step of a test takes: what ends before it was not ended by it.
LONG = "30s"

Begin = Callable[..., System]
Gate = tuple[Stack, str]


@pytest.fixture(scope="module")
def standing_service() -> Iterator[ChallengeService]:
    with ChallengeService().serving() as serving:
        yield serving


@pytest.fixture
def service(standing_service: ChallengeService) -> Iterator[ChallengeService]:
    """It knows nothing of the tests before. What hangs at the end of a test goes on."""
    standing_service.forget()
    yield standing_service
    standing_service.go_on.set()
    wait_until(lambda: standing_service.under_way == 0, PATIENCE, "no question is left")


@pytest.fixture
def begin(start: Callable[..., System], service: ChallengeService, tmp_path: Path) -> Begin:
    """Starts a system whose queues ask the stand-in; `more` are settings of challenge_service."""
    def one(workers: int = 1, queue: dict[str, Any] | None = None, secrets: dict[str, str] | None = None,
            **more: Any) -> System:
        secret = key_file(tmp_path / "challenge.secret", f"{SECRET}\n")
        settings = {"site_key": SITE_KEY, "verify_url": f"http://127.0.0.1:{service.port}/siteverify", "hostname": HOST,
                    "timeout": LONG} | more
        return start({"bank": queue or QUEUE}, workers=workers, settings={
            "challenge_service": settings, "secrets": {"challenge_secret": secret} | (secrets or {})})

    return one


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("keys")
    return {"challenge_secret": key_file(folder / "challenge.secret", f"{SECRET}\n"),
            "invite_keys": key_file(folder / "invite.keys", f"shop-1 HS256 {INVITE_SECRET}\n"),
            "api_keys": key_file(folder / "api.keys", f"shop {API_KEY}\n")}


@pytest.fixture
def gate(share: Callable[..., Stack], service: ChallengeService, keys: dict[str, str]) -> tuple[Stack, str]:
    """The stack that the tests with the usual settings share, and a queue of it."""
    settings = {"site_key": SITE_KEY, "verify_url": f"http://127.0.0.1:{service.port}/siteverify", "hostname": HOST,
                "timeout": LONG}
    system = share(workers=2, settings={"challenge_service": settings, "secrets": keys},
                   queue={"challenge": "external"})
    return system, system.queue()


def join(client: Client, token: str | None, ticket: str | None = None, queue: str = "bank") -> Answer:
    body = json.dumps({"token": token}).encode() if token is not None else None
    return client.post(f"/v1/queues/{queue}/join", body, ticket=ticket)


def refused(answer: Answer, why: str) -> None:
    problem = answer.problem(403)
    assert problem["type"] == "/problems/challenge-failed" and why in problem["detail"], problem
    assert problem["provider"] == "turnstile" and problem["site_key"] == SITE_KEY, problem


def unavailable(answer: Answer) -> None:
    problem = answer.problem(503)
    assert problem["type"] == "/problems/challenge-unavailable", problem
    assert int(answer.headers["retry-after"]) >= 1


def counted(system: System, result: str, worker: int = 0) -> int:
    return metric(system.of("worker")[worker], f"tellerline_worker_verifications_{result}_total")


def test_a_token_gives_one_place(gate: Gate, service: ChallengeService) -> None:
    """Without a token, with one, and with the same again at two workers."""
    system, bank = gate
    one, two = system.client(0), system.client(1)
    took = "tellerline_worker_verification_seconds_count"
    before = counted(system, "passed"), counted(system, "refused"), metric(system.of("worker")[1], took)
    problem = join(one, None, queue=bank).problem(403)
    assert problem["type"] == "/problems/challenge-required"
    assert (problem["provider"], problem["site_key"]) == ("turnstile", SITE_KEY) and "puzzle" not in problem, problem
    assert service.forms == [] and system.numbers(bank)["joined"] == 0

    first = join(one, f"good-{bank}-1&secret=x", queue=bank).json
    assert first["ticket"] and first["status"] in ("waiting", "active"), first
    assert service.forms == [{"secret": SECRET, "response": f"good-{bank}-1&secret=x"}], "without the address"
    refused(join(one, f"good-{bank}-1&secret=x", queue=bank), "already")
    assert len(service.forms) == 1, "what is known here is not asked again"
    refused(join(two, f"good-{bank}-1&secret=x", queue=bank), "timeout-or-duplicate")
    assert system.numbers(bank)["joined"] == 1

    # A ticket that holds a place needs no token; the next place of its visitor needs one.
    assert join(two, None, first["ticket"], queue=bank).json["visitor"] == first["visitor"]
    Visitor(two, bank, first["ticket"]).leave()
    assert join(two, None, first["ticket"], queue=bank).problem(403)["type"] == "/problems/challenge-required"
    assert join(two, f"good-{bank}-2", first["ticket"], queue=bank).json["visitor"] == first["visitor"]
    assert (counted(system, "passed"), counted(system, "refused")) == (before[0] + 1, before[1] + 1)
    assert metric(system.of("worker")[1], took) == before[2] + 2
    for program in system.of("worker"):
        assert SECRET not in program.text() and "good-" not in program.text()


def test_a_token_accepted_by_two_workers_gives_one_place(gate: Gate, service: ChallengeService) -> None:
    """A service that forgets: the token names the visitor, and the store spends it."""
    system, bank = gate
    first = join(system.client(0), f"good-{bank}-1", queue=bank).json
    service.forget_tokens()
    assert join(system.client(1), f"good-{bank}-1", queue=bank).json["visitor"] == first["visitor"]
    assert system.numbers(bank)["joined"] == 1
    Visitor(system.client(0), bank, first["ticket"]).leave()
    system.of("worker")[1].stop()  # it forgets
    system.of("worker")[1].start()
    system.of("worker")[1].wait_ready()
    service.forget_tokens()
    refused(join(system.client(1), f"good-{bank}-1", queue=bank), "already")


def test_what_the_service_refuses(begin: Begin, service: ChallengeService) -> None:
    system = begin(send_address=True)
    client = system.client()
    refused(join(client, "bad-1"), "invalid-input-response")
    refused(join(client, "elsewhere-1"), "another site")
    assert service.forms[0]["remoteip"] == "127.0.0.1"
    assert client.post("/v1/queues/bank/join", b'{"token": "a b"}').problem(400)["type"] == "/problems/bad-body"
    assert client.post("/v1/queues/bank/join", json.dumps({"token": "x" * 8193}).encode()).status == 400
    assert join(client, "good-" + "x" * 8187).status == 200, "as long as a token may be"
    # Too many from an address are not verified any more.
    sent = 2
    while (answer := join(client, f"bad-{sent}")).status != 429:
        refused(answer, "invalid-input-response")
        sent += 1
        assert sent <= 200, "100 a minute, and a minute may have begun meanwhile"
    assert sent >= 100 and answer.problem(429)["type"] == "/problems/too-many-forgeries"
    assert len(service.forms) == sent + 1, "with the good one"
    assert counted(system, "refused") == sent


def test_a_slow_service(begin: Begin, service: ChallengeService) -> None:
    """A join waits for it as long as it may. (That nobody else waits shows in test_a_token_under_way_is_used.)"""
    system = begin(timeout="1s")
    unavailable(join(system.client(), "slow-1"))
    assert counted(system, "timed_out") == 1 and len(service.forms) == 1
    assert "cannot verify tokens" in system.of("worker")[0].text()


def test_a_service_that_is_away(begin: Begin, service: ChallengeService) -> None:
    """Refused with 503, and taken when it is back."""
    system = begin(verify_url="http://127.0.0.1:1/siteverify")
    client = system.client()
    unavailable(join(client, "good-1"))
    unavailable(join(client, "good-1"))  # the token was not judged: it may come again
    assert counted(system, "unreachable") == 2 and service.forms == []
    assert system.numbers("bank")["joined"] == 0
    assert client.get("/readyz").status == 200


def test_answers_that_are_none(gate: Gate) -> None:
    system, bank = gate
    client = system.client()
    before = counted(system, "unreachable")
    for token in ("error-1", "garbage-1", "huge-1"):
        unavailable(join(client, token, queue=bank))
    assert counted(system, "unreachable") == before + 3
    assert join(client, f"good-{bank}-1", queue=bank).status == 200
    assert "answers again" in system.of("worker")[0].text()


def test_a_puzzle_instead(begin: Begin) -> None:
    """While the service cannot be reached, and not at other times."""
    system = begin(on_unreachable="work")
    client = system.client()
    problem = join(client, "error-1").problem(403)
    assert problem["type"] == "/problems/challenge-required" and problem["bits"] >= 12, problem
    solution = json.dumps({"solution": solve(problem)}).encode()
    first = client.post("/v1/queues/bank/join", solution).json
    assert first["ticket"], first
    assert client.post("/v1/queues/bank/join", solution).json["visitor"] == first["visitor"]
    assert "puzzle" not in join(client, None).problem(403)
    wrong = client.post("/v1/queues/bank/join", b'{"solution": "x"}')
    refused(wrong, "no solution")
    assert system.numbers("bank")["joined"] == 1


def test_as_many_as_may_wait(begin: Begin, service: ChallengeService) -> None:
    """Two at a time, two more wait, and the fifth is refused at once. Connections are used again."""
    system = begin(max_concurrent=2, max_queued=2)
    clients = [system.client() for _ in range(5)]
    for i, client in enumerate(clients[:4]):
        client.send("POST", "/v1/queues/bank/join", json.dumps({"token": f"slow-{i}"}).encode())
    held = "tellerline_worker_requests_held"
    wait_until(lambda: metric(system.of("worker")[0], held) == 4 and service.under_way == 2, PATIENCE, "four wait")
    answer = join(clients[4], "good-1")
    assert answer.problem(503)["type"] == "/problems/busy" and int(answer.headers["retry-after"]) >= 1
    again = join(clients[4], "good-1")
    assert again.problem(503)["type"] == "/problems/busy", "a token that was not asked about may come again"
    service.go_on.set()
    assert [client.receive().status for client in clients[:4]] == [200] * 4
    assert service.most == 2 and len(service.forms) == 4
    for i in range(6):
        assert join(clients[4], f"good-{i + 2}").status == 200
    assert len(service.peers) <= 2, service.peers


def test_a_token_under_way_is_used(gate: Gate, service: ChallengeService) -> None:
    """And other requests are answered while the service is silent, for longer than these clients would wait."""
    system, bank = gate
    first, second = system.client(timeout=60), system.client()
    first.send("POST", f"/v1/queues/{bank}/join", json.dumps({"token": f"slow-{bank}-1"}).encode())
    wait_until(lambda: service.under_way == 1, PATIENCE, "the question is under way")
    refused(join(second, f"slow-{bank}-1", queue=bank), "already")
    assert second.get(f"/q/{bank}").status == 200 and second.get(f"/v1/queues/{bank}").status == 200
    service.go_on.set()
    assert first.receive().status == 200 and len(service.forms) == 1


def test_a_client_that_hangs_up(begin: Begin, service: ChallengeService) -> None:
    """It frees its hold and its question, long before the time limit."""
    system = begin(max_concurrent=1, max_queued=0)
    worker = system.of("worker")[0]
    body = b'{"token": "stuck-1"}'
    with socket.create_connection(("127.0.0.1", worker.http_port)) as peer:
        peer.sendall(b"POST /v1/queues/bank/join HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                     b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        wait_until(lambda: service.under_way == 1, PATIENCE, "the question is under way")
        assert join(system.client(), "good-1").problem(503)["type"] == "/problems/busy"
    joined = wait_until(lambda: (answer := join(system.client(), "good-1")).status == 200 and answer, PATIENCE,
                        "there is room again", every=0.1)
    assert joined.json["ticket"] and service.under_way == 1, "the service still has the first question"
    assert counted(system, "timed_out") == 0 and counted(system, "passed") == 1


def test_the_secret_is_read_again(begin: Begin, service: ChallengeService, tmp_path: Path) -> None:
    """On a stack of its own: a worker does not log trouble with the service that it has just complained of."""
    system, secret = begin(), tmp_path / "challenge.secret"
    system.expect("does not accept our secret")
    worker, client = system.of("worker")[0], system.client()
    assert join(client, "good-1").status == 200
    service.secret = "another"
    unavailable(join(client, "good-2"))
    wait_until(lambda: str(secret) in worker.text(), PATIENCE, "the file of the secret is named")
    assert SECRET not in worker.text()
    key_file(secret, "# of this year\nanother\n")
    worker.send(signal.SIGHUP)
    tokens = (f"good-{i}" for i in itertools.count(3))
    wait_until(lambda: join(client, next(tokens)).status == 200, PATIENCE, "the new secret is in use",
               every=0.1)
    key_file(secret, "one\ntwo\n")
    system.expect("expected one line")
    worker.send(signal.SIGHUP)
    wait_until(lambda: "expected one line" in worker.text(), PATIENCE, "the bad file is refused")
    assert join(client, next(tokens)).status == 200


def test_a_certificate_of_nobody(begin: Begin, tmp_path: Path) -> None:
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-days", "1", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", "key.pem",
                    "-out", "cert.pem"], cwd=tmp_path, check=True, capture_output=True)
    with ChallengeService().with_tls(str(tmp_path / "cert.pem"), str(tmp_path / "key.pem")).serving() as secure:
        system = begin(verify_url=f"https://localhost:{secure.port}/siteverify")
        unavailable(join(system.client(), "good-1"))
        assert "certificate" in system.of("worker")[0].text() and secure.forms == []


def test_invites_and_trusted_callers_need_none(gate: Gate, service: ChallengeService) -> None:
    system, bank = gate
    client = system.client()
    assert client.post(f"/v1/queues/{bank}/join", b'{"visitor": "user-1"}', ticket=API_KEY).json["visitor"] == "user-1"
    invite = jwt.encode({"aud": bank, "sub": "user-2", "jti": "1", "exp": int(time.time()) + 600},
                        bytes.fromhex(INVITE_SECRET), headers={"kid": "shop-1"})
    assert client.post(f"/v1/queues/{bank}/join", json.dumps({"invite": invite}).encode()).json["visitor"] == "user-2"
    assert service.forms == []


def test_without_a_service(start: Callable[..., System], tmp_path: Path) -> None:
    """A start is refused where the file says so; a queue that is changed later has no newcomers."""
    system = start({"bank": CALM | {"capacity": 1}})
    client = system.client()
    system.expect("newcomers are refused")
    done = system.ctl("queue", "set", "bank", "challenge=external")
    assert done.returncode == 0 and "challenge_service.site_key" in done.stderr, done
    wait_until(lambda: client.post("/v1/queues/bank/join").status == 503, PATIENCE, "newcomers are refused")
    unavailable(join(client, None))
    unavailable(join(client, "good-1"))
    page = client.get("/q/bank")
    assert page.status == 503 and b'data-state="down"' in page.body
    assert "challenge_service.site_key" in system.of("worker")[0].text()

    secret = tmp_path / "challenge.secret"
    secret.write_text(SECRET)
    secret.chmod(0o644)
    config = tmp_path / "tellerline.yaml"
    config.write_text(f"redis: {{url: {system.redis.url}}}\nchallenge_service: {{site_key: k}}\n"
                      f"secrets: {{challenge_secret: {secret}, ticket_keys: {system.directory}/ticket.keys, "
                      f"pass_keys: {system.directory}/pass.keys}}\n"
                      f"http: {{listen: 127.0.0.1:0}}\nadmin: {{worker: ''}}\n"
                      "queues: {bank: {challenge: external}}\n")
    done = run(system.folder / "tellerline-worker", "--config", str(config))
    assert done.returncode != 0 and "chmod 600" in done.stderr and SECRET not in done.stderr, done.stderr


# ---- the waiting page ----

@pytest.fixture(scope="module")
def one_browser() -> Iterator[Any]:
    with chromium() as driver:
        yield driver


@pytest.fixture
def browser(one_browser: Any) -> Iterator[Any]:
    yield one_browser
    make_new(one_browser)  # and no page has met its Content-Security-Policy


def test_a_browser_joins_with_the_widget(begin: Begin, service: ChallengeService, browser: Any) -> None:
    """The page shows the provider's widget, in its frame. Its first token is refused, the next one is taken."""
    origin = f"http://127.0.0.1:{service.port}"
    system = begin(script_url=f"{origin}/widget.js", queue=QUEUE | {"capacity": 0})
    page = system.client().get("/q/bank")
    policy = page.headers["content-security-policy"]
    assert page.status == 200 and re.search(rf"script-src( 'sha256-\S+'){{3}} https://challenges\.cloudflare\.com {re.escape(origin)};", policy), policy
    assert "default-src 'none'" in policy and f"frame-src https://challenges.cloudflare.com {origin};" in policy
    visit(browser, f"http://127.0.0.1:{system.of('worker')[0].http_port}/q/bank")
    shown = until(browser, lambda page: page.state == "waiting", "joined")
    assert shown.text("ahead") == "0" and shown.url.endswith("/q/bank"), shown
    assert browser.execute_script("return [sessionStorage.getItem('given'), sessionStorage.getItem('site key')]") == \
        ["2", SITE_KEY]
    browser.execute_script("sessionStorage.clear()")
    assert [form["response"].partition("-")[0] for form in service.forms] == ["bad", "good"]
    ticket = browser.get_cookie("tellerline_bank")["value"]
    placed = system.client().get("/q/bank", headers={"Cookie": f"tellerline_bank={ticket}"})
    assert origin not in placed.headers["content-security-policy"], "only the page with the widget is open for it"


def test_a_browser_with_a_score(begin: Begin, service: ChallengeService, browser: Any) -> None:
    """reCAPTCHA 3 has no widget: a low score is refused, and the next token taken."""
    origin = f"http://127.0.0.1:{service.port}"
    system = begin(provider="recaptcha", min_score=0.5, script_url=f"{origin}/score.js?hl=en", queue=QUEUE | {"capacity": 0})
    visit(browser, f"http://127.0.0.1:{system.of('worker')[0].http_port}/q/bank")
    until(browser, lambda page: page.state == "waiting", "joined")
    browser.execute_script("sessionStorage.clear()")
    assert [form["response"].partition("-")[0] for form in service.forms] == ["low", "good"]


def test_a_browser_without_the_widget(begin: Begin, browser: Any) -> None:
    """Its script does not load, or there are no scripts at all: the page says so."""
    system = begin(script_url="http://127.0.0.1:1/widget.js")
    address = f"http://127.0.0.1:{system.of('worker')[0].http_port}/q/bank?lang=en"
    visit(browser, address)
    until(browser, lambda page: page.shows("unsolved"), "the page says that the check did not load")
    scripts(browser, False)
    visit(browser, address)
    page = look(browser)
    assert page.state == "challenge" and not page.shows("unsolved")
    assert "needs JavaScript" in browser.execute_cdp_cmd("DOM.getOuterHTML", {
        "nodeId": browser.execute_cdp_cmd("DOM.getDocument", {})["root"]["nodeId"]})["outerHTML"]
    assert "자바스크립트" in system.client().get("/q/bank?lang=ko").body.decode()
    assert system.numbers("bank")["joined"] == 0
