"""Every vector of clients/vectors.json: python3 -m unittest discover -s tests (clients/README.md says how to read them)."""

from __future__ import annotations

import contextlib
import http.server
import json
import pathlib
import sys
import tempfile
import threading
import unittest
import urllib.parse
from collections.abc import Iterator
from typing import Any

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "python" / "src"))

from firelock_client import Callback, Later, Receiver, Refused, SignatureError, SqliteStore, Verifier, work  # noqa: E402

VECTORS = json.loads((ROOT / "vectors.json").read_text())
TOKEN = "secret"
HUNG_AFTER_SECONDS = 120


def now() -> float:
    return VECTORS["now"]


def ignore(error: BaseException, run_id: str | None) -> None:
    pass


def act(actions: list[dict[str, Any]], job: Any = None, play: Play | None = None) -> Any:
    """Does what a vector says that the work does."""
    for action in actions:
        if "log" in action:
            job.log(action["log"] * action.get("times", 1))
        if "progress" in action:
            job.progress = action["progress"]
        if "until" in action:
            play.wait(action["until"])
        if "wait" in action:
            job.cancelled.wait(HUNG_AFTER_SECONDS)
        if "stop" in action:
            play.stop.set()
        if "later" in action:
            raise Later(action["later"], action["message"])
        if "refuse" in action:
            raise Refused(action["refuse"])
        if "exit" in action:
            sys.exit(action["exit"])
        if "fail" in action:
            raise ValueError(action["fail"])
        if "return" in action:
            return action["return"]
    return None


class Signatures(unittest.TestCase):
    def test_each(self) -> None:
        for vector in VECTORS["signatures"]:
            with self.subTest(vector["name"]):
                verifier = Verifier(vector["secrets"], now=now)
                try:
                    verifier.verify(vector["headers"], vector["body"].encode())
                    is_right = True
                except SignatureError:
                    is_right = False
                self.assertEqual(is_right, vector["isRight"])

    def test_what_is_no_secret(self) -> None:
        for secret in VECTORS["badSecrets"]:
            with self.subTest(secret), self.assertRaisesRegex(ValueError, "a secret is"):
                Verifier(secret)


class Receivers(unittest.TestCase):
    def test_each(self) -> None:
        for vector in VECTORS["receivers"]:
            with self.subTest(vector["name"]):
                self.receive(vector["steps"])

    def test_each_that_answers_first(self) -> None:
        for vector in VECTORS["callbacks"]:
            with self.subTest(vector["name"]):
                play = Play({"steps": [step for step in vector["steps"] if "path" in step]})
                with serving(play) as url:
                    self.receive(vector["steps"], play, Callback(url, TOKEN, vector.get("heartbeatSeconds", 3600)))
                self.assertEqual(([], []), (play.faults, play.left))

    def test_work_that_exits(self) -> None:
        """It is answered, and may be done again: nothing is held for ever."""
        attempts = [{"request": f"attempt {n}", "status": 500, "worked": n, "do": [{"exit": 3}]} for n in (1, 2)]
        self.receive([{**one, "body": {"error": "SystemExit(3)"}} for one in attempts])

    def receive(self, steps: list[dict[str, Any]], play: Play | None = None, callback: Callback | None = None) -> None:
        actions: list[dict[str, Any]] = []
        worked = made = 0

        def do(run: Any, job: Any = None) -> Any:
            nonlocal worked
            worked += 1
            return act(actions, job, play)

        with tempfile.TemporaryDirectory() as directory:
            store = receiver = None
            for step in [{"restart": True}, *steps]:
                if "restart" in step:
                    if store is not None:
                        store.close()
                    store = SqliteStore(f"{directory}/runs.sqlite")
                    receiver = Receiver(VECTORS["secrets"], do, store, callback=callback, now=now, on_error=ignore)
                elif "path" in step:
                    made += 1
                    play.wait(made)
                else:
                    actions = step.get("do", [])
                    self.hand_over(receiver, step)
                if "worked" in step:
                    self.assertEqual((step, worked), (step, step["worked"]))
            store.close()

    def hand_over(self, receiver: Receiver, step: dict[str, Any]) -> None:
        request = VECTORS["requests"][step["request"]]
        reply = receiver.handle(request["method"], request["headers"], request["body"].encode())
        self.assertEqual((step["request"], reply.status), (step["request"], step["status"]))
        if "body" in step:
            self.assertEqual(json.loads(reply.body), step["body"])
        self.assertEqual(reply.headers.get("retry-after"), step.get("retryAfter"))


class Play:
    """Serves what a script says: the worker has to ask for just that."""

    def __init__(self, script: dict[str, Any]) -> None:
        self.left = list(script["steps"])
        self.count = len(self.left)
        self.faults: list[str] = []
        self.last: dict[str, Any] = {}
        self.stop = threading.Event()
        self.changed = threading.Condition()

    def wait(self, asked: int) -> None:
        with self.changed:
            self.changed.wait_for(lambda: self.count - len(self.left) >= asked, HUNG_AFTER_SECONDS)

    def answer(self, path: str, authorization: str | None, body: bytes) -> Any:
        with self.changed:
            together = next((n for n, step in enumerate(self.left) if "together" not in step), len(self.left))
            for step in self.left[: max(1, together)]:
                if is_asked_for(step, path, authorization, body):
                    self.left.remove(step)
                    self.last = step
                    self.changed.notify_all()
                    if "stop" in step:
                        self.stop.set()
                    return step["answer"]
            if self.last.get("mayRepeat") and is_asked_for(self.last, path, authorization, body):
                return self.last["answer"]
            self.faults.append(f"{path} {body[:200]!r}")
            self.stop.set()
            return {"status": 409}


def is_asked_for(step: dict[str, Any], address: str, authorization: str | None, sent: bytes) -> bool:
    path, _, query = address.partition("?")
    if path != f"/cron/api/v1{step['path']}" or authorization != f"Bearer {TOKEN}":
        return False
    if dict(urllib.parse.parse_qsl(query)) != step.get("query", {}):
        return False
    if "text" in step:
        return sent.decode() == step["text"] * step.get("times", 1)
    return "body" not in step or json.loads(sent) == step["body"]


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, play: Play) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.play = play

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Those who hang up are no news."""


@contextlib.contextmanager
def serving(play: Play) -> Iterator[str]:
    server = Server(play)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/cron"
    finally:
        server.shutdown()
        server.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        answer = self.server.play.answer(self.path, self.headers.get("authorization"), body)
        if answer == "close":
            return
        if answer == "hold":
            self.rfile.read(1)  # Ends when the worker hangs up.
            return
        if answer == "endless":
            self.send_response(200)
            self.end_headers()
            with contextlib.suppress(OSError):  # Ends when the worker hangs up.
                while True:
                    self.wfile.write(b" " * 1024 * 1024)
            return
        self.send_response(answer["status"])
        for name, value in answer.get("headers", {}).items():
            self.send_header(name, value)
        self.send_header("content-type", f"application/{'' if answer['status'] < 400 else 'problem+'}json")
        self.end_headers()
        self.wfile.write(json.dumps(answer.get("body", {})).encode())

    def log_message(self, *words: Any) -> None:
        pass


class Workers(unittest.TestCase):
    def test_each(self) -> None:
        for script in VECTORS["workers"]:
            with self.subTest(script["name"]):
                self.play(script)

    def test_work_that_exits(self) -> None:
        claim = {"path": "/queues/q/claim"}
        run = {"id": "r1", "attempts": 1, "payload": {"do": [{"exit": 3}]}}
        report = {"status": "failed", "error": "SystemExit(3)", "retry": True, "attempt": 1, "workerId": "w"}
        steps = [
            {**claim, "answer": {"status": 200, "body": {"items": [run]}}},
            {"path": "/runs/r1/complete", "body": report, "answer": {"status": 200}},
            {**claim, "answer": "hold", "stop": True},
        ]
        self.play({"steps": steps})

    def play(self, script: dict[str, Any]) -> None:
        play = Play(script)
        names = {"leaseSeconds": "lease_seconds", "logSeconds": "log_seconds"}
        options: dict[str, Any] = {"lease_seconds": 3600, "log_seconds": 3600}
        options |= {names.get(name, name): value for name, value in script.get("options", {}).items()}
        ended = None
        with serving(play) as url:
            try:
                work(
                    "q",
                    lambda run, job: act(run["payload"]["do"], job, play),
                    url=url,
                    token=TOKEN,
                    worker_id="w",
                    stop=play.stop,
                    on_error=ignore,
                    **options,
                )
            except Exception as error:
                ended = str(error)
        left = [step for step in play.left if "optional" not in step]
        self.assertEqual(([], [], script.get("ends")), (play.faults, left, ended))


if __name__ == "__main__":
    unittest.main()
