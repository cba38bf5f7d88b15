"""What a receiver remembers of runs."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Literal, Protocol


@dataclass(frozen=True)
class Reply:
    status: int
    headers: dict[str, str]
    body: str


@dataclass(frozen=True)
class Verdict:
    """`new`: work on it. `done`: this was answered. `busy`: it is being worked on. `stale`: a higher attempt was seen."""

    state: Literal["new", "done", "busy", "stale"]
    reply: Reply | None = None
    seen: int = 0


class RunStore(Protocol):
    """If several processes share the work, write one for your database: `begin` decides in one transaction, with the run's
    id as primary key. Keep runs for as long as firelock does (FIRELOCK_RETENTION_DAYS), and two days more."""

    def begin(self, run_id: str, attempt: int) -> Verdict:
        """Notes the attempt and says what to do with it: of two calls at once for a run, one is `new`."""

    def finish(self, run_id: str, attempt: int, reply: Reply) -> None:
        """The work is done: from now on the run is `done`. When this returns, it outlives the process."""

    def release(self, run_id: str, attempt: int) -> None:
        """The work has failed: another attempt may do it. The attempt stays noted."""


_EVERY_SO_MANY = 1000


class SqliteStore:
    """Remembers runs in a file, also over kills and power failures; for one process at a time, as the file is locked. Without
    a path it forgets everything when the process ends, and before that all but the newest 10,000."""

    def __init__(self, path: str = ":memory:", keep_days: float = 32) -> None:
        self._keep_seconds = keep_days * 86_400
        self._most = 10_000 if path == ":memory:" else -1
        self._busy: set[str] = set()
        self._begun = 0
        self._lock = threading.Lock()
        self._database = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._database.execute("PRAGMA locking_mode = EXCLUSIVE")
        with self._transaction():
            self._database.execute(
                "CREATE TABLE IF NOT EXISTS runs"
                " (run_id TEXT PRIMARY KEY, attempt INTEGER NOT NULL, reply TEXT, seen_at REAL NOT NULL)"
            )
            self._forget_old()

    def begin(self, run_id: str, attempt: int) -> Verdict:
        with self._transaction():
            row = self._database.execute("SELECT attempt, reply FROM runs WHERE run_id = ?", (run_id,)).fetchone()
            if row is not None and attempt < row[0]:
                return Verdict("stale", seen=row[0])
            self._note(run_id, attempt, None)
            self._begun += 1
            if self._begun % _EVERY_SO_MANY == 0:
                self._forget_old()
            if row is not None and row[1] is not None:
                return Verdict("done", reply=Reply(**json.loads(row[1])))
            if run_id in self._busy:
                return Verdict("busy")
            self._busy.add(run_id)
        return Verdict("new")

    def finish(self, run_id: str, attempt: int, reply: Reply) -> None:
        with self._transaction():
            self._busy.discard(run_id)
            self._note(run_id, attempt, json.dumps(asdict(reply)))

    def release(self, run_id: str, attempt: int) -> None:
        with self._lock:
            self._busy.discard(run_id)

    def close(self) -> None:
        self._database.close()

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._lock:
            self._database.execute("BEGIN EXCLUSIVE")
            try:
                yield
            except BaseException:
                self._database.execute("ROLLBACK")
                raise
            self._database.execute("COMMIT")

    def _note(self, run_id: str, attempt: int, reply: str | None) -> None:
        self._database.execute(
            "INSERT INTO runs (run_id, attempt, reply, seen_at) VALUES (?, ?, ?, ?) ON CONFLICT (run_id) DO UPDATE"
            " SET attempt = max(attempt, excluded.attempt), reply = coalesce(excluded.reply, reply),"
            " seen_at = excluded.seen_at",
            (run_id, attempt, reply, time.time()),
        )

    def _forget_old(self) -> None:
        self._database.execute("DELETE FROM runs WHERE seen_at < ?", (time.time() - self._keep_seconds,))
        if self._most > 0:
            newest = "SELECT run_id FROM runs ORDER BY seen_at DESC LIMIT ?"
            self._database.execute(f"DELETE FROM runs WHERE run_id NOT IN ({newest})", (self._most,))
