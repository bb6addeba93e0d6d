# SPDX-License-Identifier: Apache-2.0
"""The other side of test_jwt_interop: PyJWT and cryptography check what Tellerline signed, and sign invites
for it to check.

usage: jwt_peer.py FOLDER    exit status 77: a package is missing

Reads from FOLDER:  secret (hex), jwks.json, pass.HS256, pass.ES256, expected.json (the claims of both passes)
Writes into FOLDER: invite.keys, and an invite per file: accept-*.jwt, which are good, and refuse-*.jwt
"""

import base64
import hashlib
import hmac
import json
import os
import pathlib
import sys
import time

try:
    import jwt
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)


def b64(raw):
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def must_fail(token, key, algorithms, **options):
    try:
        jwt.decode(token, key, algorithms=algorithms, **options)
    except jwt.InvalidTokenError:
        return
    raise AssertionError("a pass was accepted that should not be")


def check_pass(token, key, algorithm, expected):
    options = {"audience": expected["aud"], "issuer": expected["iss"]}
    header = jwt.get_unverified_header(token)
    assert header["typ"] == "JWT" and header["alg"] == algorithm, header
    claims = jwt.decode(token, key, algorithms=[algorithm],
                        options={"require": ["iss", "aud", "sub", "iat", "exp", "jti"]}, **options)
    assert claims == expected, claims
    head, body, signature = token.split(".")
    other = b64(json.dumps({**expected, "sub": "mallory"}).encode())
    must_fail(f"{head}.{other}.{signature}", key, [algorithm], **options)
    must_fail(token, key, [algorithm], audience="other", issuer=expected["iss"])


def check_passes(folder):
    expected = json.loads((folder / "expected.json").read_text())
    secret = bytes.fromhex((folder / "secret").read_text())
    check_pass((folder / "pass.HS256").read_text(), secret, "HS256", expected)
    token = (folder / "pass.ES256").read_text()
    kid = jwt.get_unverified_header(token)["kid"]
    published = jwt.PyJWKSet.from_dict(json.loads((folder / "jwks.json").read_text())).keys
    assert all(key.public_key_use == "sig" for key in published)
    [key] = [key for key in published if key.key_id == kid]
    check_pass(token, key.key, "ES256", expected)
    for other in published:
        if other.key_id != kid:
            must_fail(token, other.key, ["ES256"], audience=expected["aud"])


def es256_by_hand(private, header, claims, encode):
    """A token whose signature is written down in a way of our choice."""
    signed = f"{b64(json.dumps(header).encode())}.{b64(json.dumps(claims).encode())}"
    return f"{signed}.{b64(encode(private.sign(signed.encode(), ec.ECDSA(hashes.SHA256()))))}"


def raw_signature(der):
    r, s = decode_dss_signature(der)
    return r.to_bytes(32, "big") + s.to_bytes(32, "big")


def swapped_signature(der):
    raw = raw_signature(der)
    return raw[32:] + raw[:32]


def hs256_by_hand(secret, header, claims):
    """PyJWT itself refuses to sign with a public key as the secret."""
    signed = f"{b64(json.dumps(header).encode())}.{b64(json.dumps(claims).encode())}"
    return f"{signed}.{b64(hmac.new(secret, signed.encode(), hashlib.sha256).digest())}"


def write_invites(folder):
    now = int(time.time())
    secret, other_secret = os.urandom(48), os.urandom(48)
    private, other_private = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    public_pem = private.public_key().public_bytes(serialization.Encoding.PEM,
                                                   serialization.PublicFormat.SubjectPublicKeyInfo)
    keys = folder / "invite.keys"
    keys.touch(mode=0o600)
    keys.write_text(f"shop-hs HS256 {secret.hex()}\nshop-es ES256\n{public_pem.decode()}")
    claims = {"aud": "concert", "sub": "user-7", "jti": "0c9f", "lane": "vip", "iat": now, "exp": now + 600}
    hs, es = {"kid": "shop-hs"}, {"kid": "shop-es"}
    es_full = {"alg": "ES256", "kid": "shop-es"}

    def sign(changes, key=secret, algorithm="HS256", headers=None):
        return jwt.encode({**claims, **changes}, key, algorithm=algorithm, headers=headers or hs)

    good_es = sign({}, private, "ES256", es)
    invites = {
        "accept-hs256": sign({}),
        "accept-es256": good_es,
        "accept-es256-by-hand": es256_by_hand(private, es_full, claims, raw_signature),
        "refuse-hs256-other-secret": sign({}, other_secret),
        "refuse-es256-other-key": sign({}, other_private, "ES256", es),
        "refuse-none": sign({}, None, "none", hs),
        "refuse-none-of-es256": sign({}, None, "none", es),
        "refuse-hs384": sign({}, secret, "HS384"),
        "refuse-hs512": sign({}, secret, "HS512"),
        "refuse-es256-under-kid-of-hs256": sign({}, private, "ES256", hs),
        "refuse-hs256-with-public-pem": hs256_by_hand(public_pem, {"alg": "HS256", "kid": "shop-es"}, claims),
        "refuse-es256-header-with-hmac-of-public-pem": hs256_by_hand(public_pem, es_full, claims),
        "refuse-der-signature": es256_by_hand(private, es_full, claims, lambda der: der),
        "refuse-swapped-signature": es256_by_hand(private, es_full, claims, swapped_signature),
        "refuse-empty-signature": good_es.rsplit(".", 1)[0] + ".",
        "refuse-payload-of-another": ".".join(
            [good_es.split(".")[0], sign({"sub": "mallory"}).split(".")[1], good_es.split(".")[2]]),
        "refuse-no-kid": jwt.encode(claims, secret, algorithm="HS256"),
        "refuse-crit": sign({}, headers={**hs, "crit": ["exp"]}),
        "refuse-other-type": sign({}, headers={**hs, "typ": "at+jwt"}),
        "refuse-expired": sign({"exp": now - 60}),
        "refuse-too-long": sign({"exp": now + 2 * 86400}),
        "refuse-not-yet": sign({"nbf": now + 300}),
        "refuse-other-queue": sign({"aud": "concert-2"}),
        "refuse-list-of-queues": sign({"aud": ["concert", "concert-2"]}),
    }
    for name, token in invites.items():
        (folder / f"{name}.jwt").write_text(token)


def main():
    folder = pathlib.Path(sys.argv[1])
    check_passes(folder)
    write_invites(folder)


main()
