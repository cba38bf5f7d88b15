"""The calls of a worker, and when to make one again."""

from __future__ import annotations

import contextlib
import http.client
import json
import random
import socket
import threading
import time
import urllib.parse
from collections.abc import Callable
from typing import Any

from .errors import Problem

MOST_SECONDS = 30
CLAIM_TIMEOUT_SECONDS = 90
TIMEOUT_SECONDS = 30
MOST_MIB = 64
"""More than any answer of the API has."""


def is_final(error: BaseException) -> bool:
    """Asking again is of no use: it was understood and refused. A token can be set right while the work goes on."""
    return isinstance(error, Problem) and not error.may_pass and error.status not in (401, 403)


def seconds_until_again(error: BaseException, failures: int) -> float:
    """What the daemon asks for, else 1, 2, 4 … 30, of which half at random, so that not all workers come back at once."""
    if isinstance(error, Problem) and error.retry_after_seconds is not None:
        return min(error.retry_after_seconds, MOST_SECONDS)
    return min(2.0 ** min(failures - 1, 10), MOST_SECONDS) * random.uniform(0.5, 1)


CALL_ERRORS = (Problem, OSError, http.client.HTTPException)


def every(seconds: float, action: Callable[[], None]) -> Callable[[], None]:
    """Now and then, never twice at once; answers what ends it."""
    ended = threading.Event()

    def loop() -> None:
        while not ended.wait(seconds):
            action()

    threading.Thread(target=loop, daemon=True).start()
    return ended.set


def until_taken(make: Callable[[], Any], on_error: Callable[[Exception], None], tries: float = float("inf")) -> None:
    """Until it succeeds, is refused for good, or has failed so often: then it raises the last error."""
    failures = 0
    while True:
        try:
            make()
            return
        except CALL_ERRORS as error:
            failures += 1
            if is_final(error) or failures >= tries:
                raise
            on_error(error)
            pause = seconds_until_again(error, failures)
        time.sleep(pause)


class Calls:
    def __init__(self, url: str, token: str | None) -> None:
        self._url = urllib.parse.urlsplit(url)
        if self._url.scheme not in ("http", "https") or not self._url.hostname or self._url.query or self._url.fragment:
            raise ValueError("url is http or https, with nothing but a path behind the host")
        self._headers = {"accept": "application/json"} | ({"authorization": f"Bearer {token}"} if token else {})
        self._lock = threading.Lock()
        self._claim: http.client.HTTPConnection | None = None
        self._has_hung_up = False

    def act(self, run_id: str, action: str, body: Any) -> Any:
        return self._post(self._connect(TIMEOUT_SECONDS), f"runs/{run_id}/{action}", json.dumps(body).encode())

    def append(self, run_id: str, speaker: dict[str, Any], offset: int, part: bytes) -> None:
        query = urllib.parse.urlencode({"attempt": speaker["attempt"], "offset": offset, "workerId": speaker["workerId"]})
        self._post(self._connect(TIMEOUT_SECONDS), f"runs/{run_id}/log?{query}", part, "text/plain; charset=utf-8")

    def claim(self, queue: str, body: Any) -> list[dict[str, Any]]:
        """May wait; `hang_up` ends it. Then the daemon takes back what it has claimed meanwhile."""
        connection = self._connect(CLAIM_TIMEOUT_SECONDS)
        with contextlib.closing(connection):
            connection.connect()
            with self._lock:
                if self._has_hung_up:
                    return []
                self._claim = connection
            try:
                path = f"queues/{urllib.parse.quote(queue, safe='')}/claim"
                items: list[dict[str, Any]] = self._post(connection, path, json.dumps(body).encode())["items"]
                return items
            finally:
                with self._lock:
                    self._claim = None

    def hang_up(self) -> None:
        with self._lock:
            self._has_hung_up = True
            if self._claim is not None and self._claim.sock is not None:
                with contextlib.suppress(OSError):
                    self._claim.sock.shutdown(socket.SHUT_RDWR)

    def _connect(self, timeout: float) -> http.client.HTTPConnection:
        kind = http.client.HTTPSConnection if self._url.scheme == "https" else http.client.HTTPConnection
        return kind(self._url.hostname or "", self._url.port, timeout=timeout)

    def _post(
        self, connection: http.client.HTTPConnection, path: str, body: bytes, kind: str = "application/json"
    ) -> Any:
        with contextlib.closing(connection):
            address = f"{self._url.path.rstrip('/')}/api/v1/{path}"
            connection.request("POST", address, body, {**self._headers, "content-type": kind})
            answer = connection.getresponse()
            text = answer.read(MOST_MIB * 1024 * 1024 + 1)
            if len(text) > MOST_MIB * 1024 * 1024:
                raise http.client.HTTPException(f"the answer has more than {MOST_MIB} MiB")
        if 200 <= answer.status < 300:
            return json.loads(text)
        raise _problem(answer, text)


def _problem(answer: http.client.HTTPResponse, text: bytes) -> Problem:
    fields: Any = {}
    with contextlib.suppress(ValueError):
        fields = json.loads(text)
    if not isinstance(fields, dict):
        fields = {}
    retry_after = answer.getheader("retry-after") or ""
    return Problem(
        answer.status,
        fields.get("title", answer.reason),
        fields.get("detail", text[:500].decode(errors="replace")),
        float(retry_after) if retry_after.isdecimal() else None,
    )
