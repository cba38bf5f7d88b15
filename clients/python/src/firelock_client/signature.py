"""Verifies signatures of Standard Webhooks."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import time
from collections.abc import Callable, Iterable, Mapping


class SignatureError(Exception):
    """A request that is not proven to come from firelock, and why: the secrets differ, or somebody else sent it."""


class Verifier:
    """Knows the secrets of a target: several while one takes the place of another."""

    def __init__(
        self,
        secrets: str | Iterable[str],
        tolerance_seconds: float = 300,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._keys = [_key(secret) for secret in ([secrets] if isinstance(secrets, str) else secrets)]
        if not self._keys:
            raise ValueError("there is no secret")
        self._tolerance_seconds = tolerance_seconds
        self._now = now

    def verify(self, headers: Mapping[str, str], body: bytes) -> None:
        """Raises SignatureError unless a secret has signed this body, byte for byte as it arrived."""
        given = {name.lower(): value for name, value in headers.items()}
        if not {"webhook-id", "webhook-timestamp", "webhook-signature"} <= given.keys():
            raise SignatureError("it is not signed")
        timestamp = given["webhook-timestamp"]
        if not re.fullmatch("[0-9]{1,12}", timestamp):
            raise SignatureError("webhook-timestamp is no number of seconds")
        off = int(timestamp) - self._now()
        if abs(off) > self._tolerance_seconds:
            raise SignatureError(f"the signature is of {abs(off):.0f} s {'ago' if off < 0 else 'to come'}")
        message = f"{given['webhook-id']}.{timestamp}.".encode("latin-1", "replace") + body
        signatures = given["webhook-signature"].encode("latin-1", "replace").split(b" ")
        is_right = False
        for key in self._keys:
            expected = b"v1," + base64.b64encode(hmac.new(key, message, hashlib.sha256).digest())
            for signature in signatures:  # Every pair is compared, whichever is right.
                is_right |= hmac.compare_digest(signature, expected)
        if not is_right:
            raise SignatureError("no secret has made the signature")


def _key(secret: str) -> bytes:
    try:
        key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not secret.startswith("whsec_") or not 24 <= len(key) <= 64:
        raise ValueError('a secret is "whsec_" and base64 of 24 to 64 bytes')  # It does not tell it.
    return key
