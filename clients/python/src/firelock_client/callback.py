"""Work behind an answer 202: heartbeats, and the report of its end."""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ._calls import CALL_ERRORS, Calls, every, is_final, seconds_until_again
from .errors import Later, said_by
from .store import Reply, RunStore, Verdict


@dataclass(frozen=True)
class Callback:
    """Where the daemon is, with its base path if it has one, and a token of role worker. Heartbeats: a third of the schedule's
    `completionTimeoutSeconds`, so that two may be lost."""

    url: str
    token: str | None = None
    heartbeat_seconds: float = 20


class HandedJob:
    """What work behind an answer has to do with its run. `cancelled` is set when the run was cancelled, or sent to somebody else:
    then nobody wants the result."""

    def __init__(self) -> None:
        self.cancelled = threading.Event()
        self.progress: float | None = None
        """How much is done, from 0 to 1; the next heartbeat tells it."""


@dataclass
class _Led:
    run: Any
    attempt: int
    """The highest that has come: an older one has no say any more."""
    job: HandedJob = field(default_factory=HandedJob)


class Jobs:
    def __init__(
        self,
        callback: Callback,
        work: Callable[[Any, HandedJob], Any],
        store: RunStore,
        on_error: Callable[[BaseException, str | None], None],
    ) -> None:
        self._calls = Calls(callback.url, callback.token)
        self._heartbeat_seconds = callback.heartbeat_seconds
        self._work = work
        self._store = store
        self._on_error = on_error
        self._led: dict[str, _Led] = {}
        self._lock = threading.Lock()

    def take(self, run: Any, verdict: Verdict) -> bool:
        """True: it will be worked on, and reported. False: another process works on it, or the work is being cancelled."""
        run_id, attempt = run["runId"], run["attempt"]
        with self._lock:
            known = self._led.get(run_id)
            if verdict.state == "busy" if known is None else known.job.cancelled.is_set():
                return False
            if known is not None:
                known.attempt = max(known.attempt, attempt)
                return True
            led = self._led[run_id] = _Led(run, attempt)
        threading.Thread(target=self._lead, args=(led, verdict), name=f"run {run_id}").start()
        return True

    def _lead(self, led: _Led, verdict: Verdict) -> None:
        run_id = led.run["runId"]
        try:
            # Done, and firelock has not heard of it: only the report is missing.
            outcome = self._outcome(led) if verdict.reply is None else json.loads(verdict.reply.body)
            if outcome is not None and outcome["status"] == "succeeded":
                if verdict.reply is None:
                    self._remember(led, outcome)
                while not self._leave(led, self._report(led, outcome)):
                    pass
                return
            reported = led.attempt if outcome is None else self._report(led, outcome)
            # In this order: what comes between is answered "busy", and not taken for a job that is under way.
            self._leave(led)
            self._store.release(run_id, led.attempt)
            if led.attempt > reported:
                # Opened again, and taken here while the report was on its way.
                again = self._store.begin(run_id, led.attempt)
                if again.state == "new":
                    self.take({**led.run, "attempt": led.attempt}, again)
        except Exception as error:
            self._on_error(error, run_id)
            self._leave(led)

    def _outcome(self, led: _Led) -> dict[str, Any] | None:
        stop_beats = every(self._heartbeat_seconds, lambda: self._beat(led))
        try:
            result = self._work(led.run, led.job)
            json.dumps(result)
            return {"status": "succeeded", "result": result}
        except BaseException as error:
            self._on_error(error, led.run["runId"])
            if led.job.cancelled.is_set():
                return None
            later = {"retry": True} if isinstance(error, Later) else {}
            return {"status": "failed", "error": said_by(error), **later}
        finally:
            stop_beats()

    def _remember(self, led: _Led, outcome: dict[str, Any]) -> None:
        """Before it is reported. Where that fails, it is done nevertheless."""
        run_id = led.run["runId"]
        try:
            self._store.finish(run_id, led.attempt, Reply(202, {}, json.dumps(outcome)))
        except Exception as error:
            self._on_error(error, run_id)

    def _beat(self, led: _Led) -> None:
        run_id, attempt = led.run["runId"], led.attempt
        progress = {} if led.job.progress is None else {"progress": led.job.progress}
        try:
            self._calls.act(run_id, "heartbeat", {"attempt": attempt, **progress})
        except CALL_ERRORS as error:
            self._on_error(error, run_id)
            with self._lock:
                # Cancelled, ended, or sent to somebody else; unless a higher attempt has come here meanwhile.
                if is_final(error) and led.attempt == attempt:
                    led.job.cancelled.set()

    def _report(self, led: _Led, outcome: dict[str, Any]) -> int:
        """Until firelock takes it, or refuses it for good: a run without a report would be done again. Returns whose it was."""
        run_id, failures = led.run["runId"], 0
        while True:
            attempt = led.attempt
            try:
                self._calls.act(run_id, "complete", {**outcome, "attempt": attempt})
                return attempt
            except CALL_ERRORS as error:
                self._on_error(error, run_id)
                # A higher attempt may have come while this was asked: then that one has the say.
                if is_final(error) and led.attempt == attempt:
                    return attempt
                failures += 1
                pause = seconds_until_again(error, failures)
            time.sleep(pause)

    def _leave(self, led: _Led, reported: float = math.inf) -> bool:
        """False: a higher attempt than that has come, and has to be reported."""
        with self._lock:
            if led.attempt > reported:
                return False
            if self._led.get(led.run["runId"]) is led:
                del self._led[led.run["runId"]]
            return True
