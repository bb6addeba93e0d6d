#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A small ticket shop for the demo of Tellerline: the site behind the waiting room.

It knows nothing of waiting: the gateway in front lets only people in whose turn it is. The one thing a shop does for the line is
in `buy`: it says that a visitor is done, so that the next one is called at once. Needs nothing but Python 3.11.
"""
from __future__ import annotations

import argparse
import http.client
import json
import secrets
import signal
import string
import sys
from dataclasses import dataclass
from html import escape
from http.cookies import CookieError, SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

FOLDER = Path(__file__).resolve().parent
PAGE = string.Template((FOLDER / "page.html").read_text(encoding="utf-8"))
STYLE = (FOLDER / "shop.css").read_bytes()
MAX_FORM = 4096  # bytes

POLICY = ("default-src 'none'; style-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; "
          "frame-ancestors 'none'")

PRICES = {"1": 45000, "2": 38000, "3": 62000}  # by concert, in the order of those in WORDS
WORDS = json.loads((FOLDER / "words.json").read_text(encoding="utf-8"))  # by language: those of the waiting page
RIGHT_TO_LEFT = ("ar", "he")
TRADITIONAL = ("hant", "tw", "hk", "mo")


@dataclass
class Waiting:
    """Tellerline's address, for the only call that the shop makes."""

    host: str
    port: int
    queue: str

    def complete(self, cookies: str) -> bool:
        """Ends the visitor's session. The ticket is in a cookie that the browser sends to the shop too."""
        try:
            found = SimpleCookie(cookies)
        except CookieError:
            return False
        # The first is the name behind TLS.
        ticket = found.get(f"__Host-tellerline_{self.queue}") or found.get(f"tellerline_{self.queue}")
        if ticket is None:
            return False
        connection = http.client.HTTPConnection(self.host, self.port, timeout=10)
        try:
            connection.request("POST", f"/v1/queues/{self.queue}/complete",
                               headers={"Authorization": f"Bearer {ticket.value}"})
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()


def spoken(tag: str) -> str | None:
    """The language of this tag, if we speak it."""
    first, *more = tag.strip().lower().split("-")
    if first == "zh":
        return "zh-Hant" if any(part in TRADITIONAL for part in more) else "zh-Hans"
    first = {"iw": "he", "in": "id"}.get(first, first)
    return first if first in WORDS else None


def language_of(query: dict[str, list[str]], accepted: str) -> str:
    """`?lang=`, else the first of Accept-Language that we speak."""
    for tag in (query.get("lang", [""])[0], *(part.split(";")[0] for part in accepted.split(","))):
        if language := spoken(tag):
            return language
    return "en"


# ---- pages: from a language and a request to HTML ----

def concert_list(lang: str) -> str:
    words = WORDS[lang]
    items = "".join(
        f'<li><a href="/concert/{key}?lang={lang}"><strong>{escape(name)}</strong><span>{escape(about)}</span></a></li>'
        for key, (name, about) in zip(PRICES, words["concerts"]))
    return f'<h1>{words["title"]}</h1><p>{words["lead"]}</p><ul class="list">{items}</ul>'


def concert_page(lang: str, key: str, wanted_seat: str) -> str:
    words = WORDS[lang]
    name, about = words["concerts"][list(PRICES).index(key)]
    seats = [f"{row}{number}" for row in "AB" for number in range(1, 6)]
    chosen = wanted_seat if wanted_seat in seats else seats[0]
    options = "".join(f'<label><input type="radio" name="seat" value="{seat}"{" checked" if seat == chosen else ""}>'
                      f'<span>{seat}</span></label>' for seat in seats)
    return (f'<p><a href="/?lang={lang}">{words["back"]}</a></p><h1>{escape(name)}</h1><p>{escape(about)}</p>'
            f'<form method="post" action="/checkout?lang={lang}"><input type="hidden" name="concert" value="{key}">'
            f'<fieldset><legend>{words["seats"]}</legend><div class="seats">{options}</div></fieldset>'
            f'<p class="buy"><strong>{words["price"].format(PRICES[key])}</strong>'
            f'<button>{words["buy"]}</button></p></form>')


def thanks_page(lang: str, order: str) -> str:
    words = WORDS[lang]
    return (f'<h1>{words["thanks"]}</h1><p>{words["order"]}: <strong>{escape(order)}</strong></p>'
            f'<p>{words["done"]}</p><p><a class="button" href="/?lang={lang}">{words["again"]}</a></p>')


class Shop(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    waiting: Waiting  # set by main

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        query = parse_qs(address.query)
        lang = self.language()
        kind, _, key = address.path.removeprefix("/").partition("/")
        if address.path == "/public/shop.css":
            self.answer(200, "text/css", STYLE, "max-age=300")
        elif address.path == "/public/thanks":
            self.page(200, lang, thanks_page(lang, query.get("order", ["-"])[0][:16]))
        elif address.path in ("/", "/checkout"):  # back from the waiting page, sent there during a purchase: start again
            self.page(200, lang, concert_list(lang))
        elif kind == "concert" and key in PRICES:
            self.page(200, lang, concert_page(lang, key, query.get("seat", [""])[0]))
        else:
            self.page(404, lang, f'<h1>{WORDS[lang]["missing"]}</h1>')

    do_HEAD = do_GET  # noqa: N815

    def do_POST(self) -> None:
        try:
            length = int(self.headers.get("Content-Length", "0"))
        except ValueError:
            length = -1
        if not 0 <= length <= MAX_FORM:
            self.close_connection = True
            self.answer(413, "text/plain", b"")
            return
        form = parse_qs(self.rfile.read(length).decode("latin-1"))
        if urlsplit(self.path).path == "/checkout" and form.get("concert", [""])[0] in PRICES:
            self.buy()
        else:
            self.page(404, self.language(), f'<h1>{WORDS[self.language()]["missing"]}</h1>')

    def buy(self) -> None:
        """The end of a visit: completes the session. The receipt is a page that needs no place."""
        lang = self.language()
        if not self.waiting.complete(self.headers.get("Cookie", "")):
            self.page(503, lang, f'<h1>{WORDS[lang]["sorry"]}</h1>')
            return
        order = f"H-{secrets.randbelow(10**6):06}"
        self.send_response(303)
        self.send_header("Location", f"/public/thanks?order={order}&lang={lang}")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def language(self) -> str:
        return language_of(parse_qs(urlsplit(self.path).query), self.headers.get("Accept-Language", ""))

    def page(self, status: int, lang: str, content: str) -> None:
        words = WORDS[lang]
        languages = "".join(
            f'<li><a href="?lang={code}" lang="{code}" hreflang="{code}"{" aria-current=true" if code == lang else ""}>'
            f'{other["name"]}</a></li>' for code, other in WORDS.items())
        text = PAGE.substitute(lang=lang, direction="rtl" if lang in RIGHT_TO_LEFT else "ltr", shop=words["shop"],
                               menu=words["menu"], name=words["name"], languages=languages, content=content)
        self.answer(status, "text/html; charset=utf-8", text.encode())

    def answer(self, status: int, kind: str, body: bytes, cache: str = "no-store") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", cache)
        self.send_header("Content-Security-Policy", POLICY)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args) -> None:  # noqa: A002
        """Logs nothing: the terminal shows the crowd."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, default=3000, help="on 127.0.0.1 (default: %(default)s)")
    parser.add_argument("--tellerline", default="http://127.0.0.1:8080", help="the worker (default: %(default)s)")
    parser.add_argument("--queue", default="demo", help="(default: %(default)s)")
    options = parser.parse_args()
    worker = urlsplit(options.tellerline)
    if worker.scheme != "http" or not worker.hostname:
        parser.error(f"--tellerline {options.tellerline}: expected http://host:port")
    Shop.waiting = Waiting(worker.hostname, worker.port or 80, options.queue)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(0))
    server = ThreadingHTTPServer(("127.0.0.1", options.port), Shop)
    server.daemon_threads = True
    server.serve_forever()


if __name__ == "__main__":
    main()
