#!/usr/bin/env python3
"""Takes runs from firelock, in Python 3.10 or newer: verifies the signature, notes each run once, answers, and then does the
work. It needs the package firelock-client (README.md says how to install it).

    WEBHOOK_SECRET=whsec_... ./receiver.py      several secrets: with spaces between them
                                                PORT (9000), DIRECTORY (runs), in which it remembers
"""

import json
import os
import pathlib
import socketserver
import threading
import wsgiref.simple_server

from firelock_client import HandedRun, Receiver, SqliteStore

DIRECTORY = pathlib.Path(os.environ.get("DIRECTORY", "runs"))
TODO = DIRECTORY / "todo"
TODO.mkdir(parents=True, exist_ok=True)
news = threading.Event()


def work(run: HandedRun) -> None:
    """Put your work here. It may be done twice if the process dies in the middle of it."""
    print(f"{run['runId']}: done", flush=True)


def note(run: HandedRun) -> dict:
    """Called once for each run; what it returns is the answer. It only notes the run, so that the answer comes soon."""
    write(run["runId"], json.dumps(run))
    news.set()
    return {"executionId": f"job-{run['runId']}"}


def write(run_id: str, text: str) -> None:
    """Whole or not at all, and on the disk before it is answered."""
    fresh = DIRECTORY / f"{run_id}.new"
    with fresh.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    fresh.rename(TODO / run_id)
    folder = os.open(TODO, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)


def work_forever() -> None:
    while True:
        news.clear()
        failed = False
        for path in sorted(TODO.iterdir()):
            try:
                work(json.loads(path.read_text()))
                path.unlink()
            except Exception as error:  # One bad run does not stop the others.
                failed = True
                print(f"{path.name}: {error}; again later", flush=True)
        news.wait(10 if failed else None)


class Server(socketserver.ThreadingMixIn, wsgiref.simple_server.WSGIServer):
    daemon_threads = True


class Handler(wsgiref.simple_server.WSGIRequestHandler):
    # A sender that stops in the middle does not hold a thread for ever.
    timeout = 60

    def log_message(self, *_: object) -> None:
        pass


# Which runs were here, and what was answered. It outlives the process.
store = SqliteStore(str(DIRECTORY / "seen.sqlite"))
receiver = Receiver(os.environ["WEBHOOK_SECRET"].split(), note, store)
threading.Thread(target=work_forever, daemon=True).start()
port = int(os.environ.get("PORT", "9000"))
server = wsgiref.simple_server.make_server("127.0.0.1", port, receiver, Server, Handler)
print(f"receiver listens on http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
