"""Works on the runs of a queue."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ._calls import CALL_ERRORS, Calls, every, is_final, seconds_until_again, until_taken
from ._run_log import RunLog
from .errors import Problem, Refused, said_by
from .receiver import OnError, write_error

MOST_PER_CLAIM = 100
LOG_TRIES = 3
MOST_OF_ERROR = 4096


class Job:
    """What the work has to do with its run. `cancelled` is set when the run was cancelled, or is not this worker's any more:
    then nobody wants the result."""

    def __init__(self, log: Callable[[str], None]) -> None:
        self.cancelled = threading.Event()
        self.progress: float | None = None
        """How much is done, from 0 to 1; the next heartbeat tells it."""
        self.log = log
        """Appends to the run's log."""


Handler = Callable[[dict[str, Any], Job], Any]


def work(
    queue: str,
    handler: Handler,
    *,
    url: str,
    token: str | None = None,
    stop: threading.Event | None = None,
    worker_id: str | None = None,
    concurrency: int = 1,
    prefetch: int = 0,
    lease_seconds: float = 60,
    wait_seconds: float = 20,
    log_seconds: float = 1,
    refusals: type[BaseException] | tuple[type[BaseException], ...] = Refused,
    on_error: OnError = write_error,
) -> None:
    """Claims runs and has the handler work on each, in threads, until `stop` is set: then it claims no more, releases what
    has not begun, and returns when the rest is done and reported.

    What the handler returns goes to firelock as JSON. An exception that is one of `refusals` ends the run as failed, for
    good; after any other one it is tried again. `concurrency` runs are worked on at once, `prefetch` more are claimed ahead.
    Heartbeats come at a third of the lease, and `log_seconds` is how often the log is sent. Raises Problem if the daemon
    refuses the worker, for its token for example."""
    stop = threading.Event() if stop is None else stop
    worker_id = worker_id or f"worker-{uuid.uuid4()}"
    calls = Calls(url, token)
    worker = _Worker(handler, calls, stop, worker_id, concurrency, lease_seconds, log_seconds, refusals, on_error)
    worker.claim_until_stopped(queue, concurrency + prefetch, wait_seconds)


@dataclass
class _Worker:
    handler: Handler
    calls: Calls
    stop: threading.Event
    worker_id: str
    slots: int
    """For runs that are being worked on."""
    lease_seconds: float
    log_seconds: float
    refusals: type[BaseException] | tuple[type[BaseException], ...]
    on_error: OnError
    held: int = 0
    led: dict[str, tuple[Job, threading.Thread]] = field(default_factory=dict)
    changed: threading.Condition = field(default_factory=threading.Condition)

    def claim_until_stopped(self, queue: str, most: int, wait_seconds: float) -> None:
        threading.Thread(target=self._watch, daemon=True).start()
        body = {"workerId": self.worker_id, "leaseSeconds": self.lease_seconds, "waitSeconds": wait_seconds}
        failures = 0
        try:
            while True:
                with self.changed:
                    self.changed.wait_for(lambda: self.held < most or self.stop.is_set())
                    room = most - self.held
                if self.stop.is_set():
                    return
                try:
                    runs = self.calls.claim(queue, {**body, "max": min(room, MOST_PER_CLAIM)})
                    failures = 0
                except CALL_ERRORS as error:
                    if self.stop.is_set():
                        return
                    if isinstance(error, Problem) and not error.may_pass:
                        raise
                    self.on_error(error, None)
                    failures += 1
                    self.stop.wait(seconds_until_again(error, failures))
                    continue
                for run in runs:
                    self._begin(run)
        finally:
            with self.changed:
                self.changed.wait_for(lambda: self.held == 0)

    def _watch(self) -> None:
        self.stop.wait()
        self.calls.hang_up()
        with self.changed:
            self.changed.notify_all()

    def _begin(self, run: dict[str, Any]) -> None:
        """A run that comes again was lost here: the new attempt begins when the old one has heeded that."""
        speaker = {"attempt": run["attempts"], "workerId": self.worker_id}
        log = RunLog(lambda offset, part: self.calls.append(run["id"], speaker, offset, part))
        job = Job(lambda text: self._flush(run, log, job) if log.write(text) else None)
        older = self.led.get(run["id"])

        has_slot = False

        def lead() -> None:
            try:
                if older is not None:
                    self._lose(older[0])
                    older[1].join()
                self._lead(run, job, log, speaker, has_slot)
            except Exception as error:
                self.on_error(error, run["id"])
            finally:
                with self.changed:
                    if self.led.get(run["id"], (None,))[0] is job:
                        del self.led[run["id"]]
                    self.held -= 1
                    self.changed.notify_all()

        thread = threading.Thread(target=lead, name=f"run {run['id']}")
        with self.changed:
            self.held += 1
            self.led[run["id"]] = (job, thread)
            # Here, so that what was claimed first begins first.
            has_slot = self.slots > 0
            self.slots -= has_slot
        thread.start()

    def _lead(self, run: dict[str, Any], job: Job, log: RunLog, speaker: dict[str, Any], has_slot: bool) -> None:
        stop_beats = every(self.lease_seconds / 3, lambda: self._beat(run, job, speaker))
        try:
            has_slot = has_slot or self._wait_for_slot(job)
            if has_slot and not self.stop.is_set() and not job.cancelled.is_set():
                self._follow(run, job, log, speaker)
            elif not job.cancelled.is_set():
                self.calls.act(run["id"], "release", speaker)
        finally:
            stop_beats()
            with self.changed:
                self.slots += has_slot
                self.changed.notify_all()

    def _wait_for_slot(self, job: Job) -> bool:
        with self.changed:
            self.changed.wait_for(lambda: self.slots > 0 or self.stop.is_set() or job.cancelled.is_set())
            has_slot = self.slots > 0
            self.slots -= has_slot
            return has_slot

    def _follow(self, run: dict[str, Any], job: Job, log: RunLog, speaker: dict[str, Any]) -> None:
        stop_flushes = every(self.log_seconds, lambda: self._flush(run, log, job))
        try:
            outcome = self._outcome(run, job)
        finally:
            stop_flushes()
        if not job.cancelled.is_set():
            self._flush(run, log, job, LOG_TRIES)
        if not job.cancelled.is_set():
            self._report(run, outcome, speaker)

    def _outcome(self, run: dict[str, Any], job: Job) -> dict[str, Any]:
        try:
            result = self.handler(run, job)
            json.dumps(result)
            return {"status": "succeeded", "result": result}
        except BaseException as error:
            self.on_error(error, run["id"])
            outcome = {"status": "failed", "error": said_by(error)[:MOST_OF_ERROR]}
            return outcome if isinstance(error, self.refusals) else {**outcome, "retry": True}

    def _report(self, run: dict[str, Any], outcome: dict[str, Any], speaker: dict[str, Any]) -> None:
        """Until an instance takes it, also while stopping: a run without a report is done again."""
        try:
            until_taken(
                lambda: self.calls.act(run["id"], "complete", {**outcome, **speaker}),
                lambda error: self.on_error(error, run["id"]),
            )
        except Problem as error:
            self.on_error(error, run["id"])
            # A result that is too long, for example: without this the run would come again, and end the same.
            if error.status not in (404, 409) and outcome["status"] == "succeeded":
                self._report(run, {"status": "failed", "error": str(error)}, speaker)

    def _beat(self, run: dict[str, Any], job: Job, speaker: dict[str, Any]) -> None:
        progress = {} if job.progress is None else {"progress": job.progress}
        try:
            self.calls.act(run["id"], "heartbeat", {**speaker, **progress})
        except CALL_ERRORS as error:
            self.on_error(error, run["id"])
            # Else the daemon is away: whether the lease was lost meanwhile is said when it is back.
            if is_final(error):
                self._lose(job)

    def _flush(self, run: dict[str, Any], log: RunLog, job: Job, tries: int = 1) -> None:
        try:
            until_taken(log.flush, lambda error: self.on_error(error, run["id"]), tries)
        except CALL_ERRORS as error:
            self.on_error(error, run["id"])
            if isinstance(error, Problem) and error.status == 409:
                self._lose(job)

    def _lose(self, job: Job) -> None:
        job.cancelled.set()
        with self.changed:
            self.changed.notify_all()
