# SPDX-License-Identifier: Apache-2.0
"""Two sites behind a gateway that say what they make of a path: Tomcat, and a WSGI application."""
from __future__ import annotations

import posixpath
import re
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path
from urllib.parse import unquote, urlsplit
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import pytest

from http_client import CONNECTION_TROUBLE, Client
from tellerline import free_port
from waiting import PATIENCE, wait_until

#: What a site says when a handler below /public/ ran, or any other.
OPEN, GUARDED = b"handler: open", b"handler: guarded"

TOMCAT = Path("/usr/share/tomcat10")

SERVER_XML = """<Server port="-1"><Service name="Catalina">
<Connector port="{port}" address="127.0.0.1" maxThreads="8" encodedSolidusHandling="decode" allowBackslash="true"
           relaxedPathChars="&lt;&gt;[\\]^`{{|}}&quot;"/>
<Engine name="Catalina" defaultHost="localhost">
<Host name="localhost" appBase="none" deployOnStartup="false" autoDeploy="false">
<Context path="" docBase="{folder}/site"><JarScanner scanClassPath="false"/></Context>
</Host></Engine></Service></Server>
"""

WEB_XML = """<web-app xmlns="https://jakarta.ee/xml/ns/jakartaee" version="5.0" metadata-complete="true">
<servlet><servlet-name>jsp</servlet-name><servlet-class>org.apache.jasper.servlet.JspServlet</servlet-class></servlet>
<servlet><servlet-name>open</servlet-name><jsp-file>/handler.jsp</jsp-file></servlet>
<servlet><servlet-name>guarded</servlet-name><jsp-file>/handler.jsp</jsp-file></servlet>
<servlet-mapping><servlet-name>open</servlet-name><url-pattern>/public/*</url-pattern></servlet-mapping>
<servlet-mapping><servlet-name>guarded</servlet-name><url-pattern>/</url-pattern></servlet-mapping>
</web-app>
"""


class Tomcat:
    """Tomcat with a handler for /public/ and one for all other paths; as lenient about paths as it can be."""

    def __init__(self) -> None:
        java = shutil.which("java")
        if java is None or not (TOMCAT / "bin" / "bootstrap.jar").exists():
            pytest.skip("the package tomcat10-common is not installed: no site on Tomcat")
        self.folder = Path(tempfile.mkdtemp(prefix="tellerline-tomcat-"))
        self.port = free_port()
        for name in ("conf", "temp", "site/WEB-INF"):
            (self.folder / name).mkdir(parents=True)
        (self.folder / "conf/server.xml").write_text(SERVER_XML.format(port=self.port, folder=self.folder))
        (self.folder / "site/WEB-INF/web.xml").write_text(WEB_XML)
        (self.folder / "site/handler.jsp").write_text("handler: <%= config.getServletName() %>\n")
        self._log = self.folder / "log"
        with self._log.open("wb") as out:
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "TERM", java, "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx128m",
                 "-cp", f"{TOMCAT}/bin/bootstrap.jar:{TOMCAT}/bin/tomcat-juli.jar", f"-Dcatalina.home={TOMCAT}",
                 f"-Dcatalina.base={self.folder}", f"-Djava.io.tmpdir={self.folder}/temp",
                 "org.apache.catalina.startup.Bootstrap", "start"],
                stdin=subprocess.DEVNULL, stdout=out, stderr=out)

    def wait_ready(self) -> None:
        def serves() -> bool:
            assert self._process.poll() is None, self._log.read_text(errors="replace")
            client = Client(self.port, timeout=PATIENCE)  # the first request compiles the page
            try:
                return OPEN in client.request("GET", "/public/x").body
            except CONNECTION_TROUBLE:
                return False
            finally:
                client.close()

        wait_until(serves, PATIENCE, "Tomcat serves")

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def readings(target: str) -> set[str]:
    """The paths that sites make of a request target: as it is; decoded once and twice; without parameters, with other
    slashes; and each of them with its dot segments resolved."""
    path = urlsplit(target).path if target.startswith("http://") else re.split("[?#]", target)[0]
    found = {path, unquote(path), unquote(unquote(path))}
    found |= {re.sub(";[^/]*", "", each) for each in found}
    found |= {each.replace("\\", "/") for each in found}
    found |= {posixpath.normpath(each) for each in found}
    return {re.sub("//+", "/", each) for each in found} | found


class WsgiSite:
    """A WSGI application on wsgiref. It runs a guarded handler if any reading of the path is not below /public/."""

    def __init__(self) -> None:
        class Handler(WSGIRequestHandler):
            def get_environ(self):
                return super().get_environ() | {"RAW_URI": self.path}

            def log_message(self, format: str, *args) -> None:  # noqa: A002
                pass

        def application(environ, start_response):
            paths = readings(environ["RAW_URI"]) | {environ["PATH_INFO"]}
            is_open = all(each.startswith("/public/") for each in paths)
            start_response("200 OK", [("Content-Type", "text/plain")])
            return [OPEN if is_open else GUARDED, f" {sorted(paths)}\n".encode()]

        self._server = make_server("127.0.0.1", 0, application, WSGIServer, Handler)
        self.port = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    def wait_ready(self) -> None:
        pass

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
