#!/usr/bin/env python3
"""Takes runs from firelock, in Python 3.9 or newer without packages: verifies the signature, notes each run once in SQLite,
answers, and then does the work.

    WEBHOOK_SECRET=whsec_... ./receiver.py      several secrets: with spaces between them
                                                PORT (9000), DIRECTORY (runs), in which it remembers
"""

import base64
import contextlib
import hashlib
import hmac
import http.server
import json
import os
import re
import sqlite3
import threading
import time

SECRETS = os.environ["WEBHOOK_SECRET"].split()
DIRECTORY = os.environ.get("DIRECTORY", "runs")
TOLERANCE_SECONDS = 300
MOST_BYTES = 16 * 1024 * 1024
# Longer than firelock keeps runs (FIRELOCK_RETENTION_DAYS): so long may a run be sent again.
KEEP_SECONDS = 32 * 86400

news = threading.Event()


def work(run):
    """Put your work here. It may be done twice if the process dies in the middle of it."""
    print(f"{run['runId']}: done", flush=True)


def is_signed(headers, body):
    """Whether one of the secrets has signed the body as it arrived, at most five minutes ago."""
    run_id = headers.get("webhook-id", "")
    timestamp = headers.get("webhook-timestamp", "")
    is_number = re.fullmatch("[0-9]{1,12}", timestamp) is not None
    if not is_number or abs(time.time() - int(timestamp)) > TOLERANCE_SECONDS:
        return False
    signatures = headers.get("webhook-signature", "").encode("latin-1").split(b" ")
    is_right = False
    for secret in SECRETS:
        key = base64.b64decode(secret[len("whsec_") :])
        digest = hmac.new(key, f"{run_id}.{timestamp}.".encode("latin-1") + body, hashlib.sha256).digest()
        for signature in signatures:
            is_right |= hmac.compare_digest(signature, b"v1," + base64.b64encode(digest))
    return is_right


def note(run_id, attempt, body):
    """Answers the highest attempt that was here. The run is in the database when this returns, however often it comes."""
    with transaction() as database:
        database.execute(
            "INSERT INTO runs (run_id, attempt, body) VALUES (?, ?, ?)"
            " ON CONFLICT (run_id) DO UPDATE SET attempt = max(attempt, excluded.attempt)",
            (run_id, attempt, body),
        )
        (highest,) = database.execute("SELECT attempt FROM runs WHERE run_id = ?", (run_id,)).fetchone()
    news.set()
    return highest


@contextlib.contextmanager
def transaction():
    database = sqlite3.connect(os.path.join(DIRECTORY, "runs.sqlite"), timeout=10)
    try:
        with database:
            yield database
    finally:
        database.close()


class Receiver(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # A sender that stops in the middle does not hold a thread for ever.
    timeout = 60

    def do_POST(self):
        length = self.headers.get("content-length", "")
        if not re.fullmatch("[0-9]{1,9}", length) or int(length) > MOST_BYTES:
            self.close_connection = True
            return self.answer(413, {"error": "the body is too large, or has no length"})
        body = self.rfile.read(int(length))
        if not is_signed(self.headers, body):
            return self.answer(401, {"error": "the signature is not right"})
        try:
            run = json.loads(body)
            run_id, attempt = str(run["runId"]), int(run["attempt"])
        except (ValueError, KeyError, TypeError):
            return self.answer(400, {"error": "the body is no run of firelock"})
        try:
            highest = note(run_id, attempt, body)
        except sqlite3.Error as error:
            return self.answer(503, {"error": str(error)})
        if attempt < highest:
            return self.answer(409, {"error": f"attempt {highest} was here"})
        return self.answer(202, {"executionId": f"job-{run_id}"})

    def answer(self, status, fields):
        text = json.dumps(fields).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


def work_forever():
    while True:
        news.clear()
        with transaction() as database:
            rows = database.execute("SELECT run_id, body FROM runs WHERE done_at IS NULL ORDER BY rowid").fetchall()
        failed = False
        for run_id, body in rows:
            try:
                work(json.loads(body))
                with transaction() as database:
                    database.execute("UPDATE runs SET done_at = ? WHERE run_id = ?", (time.time(), run_id))
            except Exception as error:  # One bad run does not stop the others.
                failed = True
                print(f"{run_id}: {error}; again later", flush=True)
        news.wait(10 if failed else None)


def main():
    os.makedirs(DIRECTORY, exist_ok=True)
    with transaction() as database:
        database.execute(
            "CREATE TABLE IF NOT EXISTS runs"
            " (run_id TEXT PRIMARY KEY, attempt INTEGER NOT NULL, body BLOB NOT NULL, done_at REAL)"
        )
        database.execute("DELETE FROM runs WHERE done_at < ?", (time.time() - KEEP_SECONDS,))
    threading.Thread(target=work_forever, daemon=True).start()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "9000"))), Receiver)
    print(f"receiver listens on http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
