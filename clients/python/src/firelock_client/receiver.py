"""Takes runs that firelock sends: verifies, remembers, has the work of each run done once, answers."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from typing import Any, TypedDict

from .callback import Callback, HandedJob, Jobs
from .errors import Later, Refused, said_by
from .signature import SignatureError, Verifier
from .store import Reply, RunStore, SqliteStore


class HandedRun(TypedDict, total=False):
    """A run as firelock hands it over. `runId` is the same in each attempt, `attempt` is higher in each."""

    runId: str
    runName: str | None
    scheduleId: str | None
    scheduledFor: str
    trigger: str
    attempt: int
    recovery: dict[str, Any] | None
    dependencies: list[dict[str, Any]]
    payload: Any


OnError = Callable[[BaseException, "str | None"], None]


def write_error(error: BaseException, run_id: str | None) -> None:
    print(f"firelock_client: run {run_id or '-'}: {error}", file=sys.stderr, flush=True)


class Receiver:
    """A WSGI application; other servers call `handle`. `secrets` None: nothing is verified, and everybody can start work.

    With `callback` it answers at once, calls `work` with the run and a HandedJob in a thread, and reports the end: for schedules
    with `completion: "callback"`."""

    def __init__(
        self,
        secrets: str | Iterable[str] | None,
        work: Callable[[HandedRun], Any] | Callable[[HandedRun, HandedJob], Any],
        store: RunStore | None = None,
        *,
        callback: Callback | None = None,
        tolerance_seconds: float = 300,
        max_body_bytes: int = 16 * 1024 * 1024,
        now: Callable[[], float] = time.time,
        on_error: OnError = write_error,
    ) -> None:
        self._verifier = None if secrets is None else Verifier(secrets, tolerance_seconds, now)
        self._work: Callable[..., Any] = work
        self._store = SqliteStore() if store is None else store
        self._jobs = None if callback is None else Jobs(callback, work, self._store, on_error)
        self._max_body_bytes = max_body_bytes
        self._on_error = on_error
        self._under_way: dict[str, Future[Reply]] = {}

    def handle(self, method: str, headers: Mapping[str, str], body: bytes) -> Reply:
        """Answers one request. The body is what arrived, byte for byte: a signature is of its bytes."""
        run_id = next((value for name, value in headers.items() if name.lower() == "webhook-id"), None)
        if method in ("GET", "HEAD"):
            return _error(405, "a run comes by POST", {"allow": "POST"})
        try:
            if self._verifier is not None:
                self._verifier.verify(headers, body)
            run = _read(body)
            if run is None:
                return _error(400, "the body is no run of firelock")
            if run["runId"] != run_id:  # A lookup or a cancellation is signed as well.
                return _error(400, "webhook-id is not the run of the body")
            return self._take(run)
        except SignatureError as error:
            return _error(401, str(error))
        except Exception as error:  # The store is away, most likely: firelock is to try again.
            self._on_error(error, run_id)
            return _error(503, "the receiver cannot take it now", {"retry-after": "5"})

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        length = environ.get("CONTENT_LENGTH") or "0"
        if not length.isdecimal() or int(length) > self._max_body_bytes:
            reply = _error(413, "the body is too large")
        else:
            headers = {
                name[5:].replace("_", "-").lower(): value for name, value in environ.items() if name.startswith("HTTP_")
            }
            reply = self.handle(environ["REQUEST_METHOD"], headers, environ["wsgi.input"].read(int(length)))
        body = reply.body.encode()
        start_response(f"{reply.status} firelock", [*reply.headers.items(), ("content-length", str(len(body)))])
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [body]

    def _take(self, run: HandedRun) -> Reply:
        run_id, attempt = run["runId"], run["attempt"]
        verdict = self._store.begin(run_id, attempt)
        if verdict.state == "stale":
            return _error(409, f"attempt {attempt} is older than attempt {verdict.seen}, which was here")
        if self._jobs is not None:
            return _reply(202, {}) if self._jobs.take(run, verdict) else _busy()
        if verdict.reply is not None:
            return verdict.reply
        if verdict.state == "busy":
            under_way = self._under_way.get(run_id)
            return _busy() if under_way is None else under_way.result()
        end: Future[Reply] = Future()
        self._under_way[run_id] = end
        try:
            end.set_result(self._do(run))
        except BaseException as error:
            end.set_exception(error)
        finally:
            if self._under_way.get(run_id) is end:  # Once it is released, the next attempt may have begun.
                del self._under_way[run_id]
        return end.result()

    def _do(self, run: HandedRun) -> Reply:
        run_id, attempt = run["runId"], run["attempt"]
        try:
            result = self._work(run)
            reply = _reply(200, {} if result is None else result)
        except BaseException as error:
            self._on_error(error, run_id)
            self._store.release(run_id, attempt)
            if isinstance(error, KeyboardInterrupt):
                raise
            return _failure(error)
        try:
            self._store.finish(run_id, attempt, reply)
        except Exception as error:  # It is done: any answer but 2xx would have it done again.
            self._on_error(error, run_id)
        return reply


def _busy() -> Reply:
    return _error(503, "another process is working on the run", {"retry-after": "5"})


def _read(body: bytes) -> HandedRun | None:
    try:
        run = json.loads(body)
    except ValueError:
        return None
    is_one = isinstance(run, dict) and isinstance(run.get("runId"), str) and "payload" in run
    return run if is_one and type(run.get("attempt")) is int and run["attempt"] > 0 else None


def _reply(status: int, result: Any, headers: Mapping[str, str] = {}) -> Reply:
    return Reply(status, {"content-type": "application/json", **headers}, json.dumps(result))


def _error(status: int, error: str, headers: Mapping[str, str] = {}) -> Reply:
    return _reply(status, {"error": error}, headers)


def _failure(error: BaseException) -> Reply:
    if isinstance(error, Refused):
        return _error(422, str(error))
    if isinstance(error, Later):
        return _error(503, str(error), {"retry-after": str(math.ceil(error.seconds))})
    return _error(500, said_by(error))
