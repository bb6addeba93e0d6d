# SPDX-License-Identifier: Apache-2.0
"""Certificates for a Redis that talks by TLS."""
from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

CERTIFICATE = "-keyout {0}.key -out {0}.pem -days 2 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -batch"


def certificate(folder: Path, name: str, subject: str, *more: str) -> Path:
    """A certificate and its key, made with openssl. Returns the path without the suffix."""
    made = folder / name
    subprocess.run(["openssl", "req", "-x509", *CERTIFICATE.format(made).split(), "-subj", f"/CN={subject}", *more],
                   check=True, capture_output=True)
    return made


def signed_for(folder: Path, name: str) -> dict[str, str]:
    """Options of a redis-server: its certificate is for this name ("DNS:localhost"), from the authority ca.pem. That in
    other.pem is another one."""
    authority = certificate(folder, "ca", "our authority")
    signed = certificate(folder, "redis", "redis", "-CA", f"{authority}.pem", "-CAkey", f"{authority}.key",
                         "-addext", f"subjectAltName={name}", "-addext", "basicConstraints=CA:FALSE")
    certificate(folder, "other", "another authority")
    return {"tls-cert-file": f"{signed}.pem", "tls-key-file": f"{signed}.key", "tls-ca-cert-file": f"{authority}.pem",
            "tls-auth-clients": "no"}


def skip_without_tls() -> None:
    binary = subprocess.run(["redis-server", "--tls-port", "0", "--port", "x"], capture_output=True, text=True, check=False)
    if "Bad directive" in binary.stdout + binary.stderr and "tls-port" in binary.stdout + binary.stderr:
        pytest.skip("this redis-server has no TLS")
