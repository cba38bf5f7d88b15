"""Every vector of clients/vectors.json: python3 -m unittest discover -s tests (clients/README.md says how to read them)."""

from __future__ import annotations

import http.server
import json
import pathlib
import sys
import tempfile
import threading
import unittest
import urllib.parse
from typing import Any

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "python" / "src"))

from firelock_client import Later, Receiver, Refused, SignatureError, SqliteStore, Verifier, work  # noqa: E402

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
            with self.subTest(vector["name"]), tempfile.TemporaryDirectory() as directory:
                self.receive(vector["steps"], f"{directory}/runs.sqlite")

    def receive(self, steps: list[dict[str, Any]], path: str) -> None:
        step: dict[str, Any] = {}
        worked = 0

        def do(run: Any) -> Any:
            nonlocal worked
            worked += 1
            return act(step.get("do", []))

        store = SqliteStore(path)
        for step in steps:
            receiver = Receiver(VECTORS["secrets"], do, store, now=now, on_error=ignore)
            if "restart" in step:
                store.close()
                store = SqliteStore(path)
                continue
            request = VECTORS["requests"][step["request"]]
            reply = receiver.handle(request["method"], request["headers"], request["body"].encode())
            self.assertEqual((step["request"], reply.status, worked), (step["request"], step["status"], step["worked"]))
            if "body" in step:
                self.assertEqual(json.loads(reply.body), step["body"])
            self.assertEqual(reply.headers.get("retry-after"), step.get("retryAfter"))
        store.close()


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

    def play(self, script: dict[str, Any]) -> None:
        play = Play(script)
        server = Server(play)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        names = {"leaseSeconds": "lease_seconds", "logSeconds": "log_seconds"}
        options: dict[str, Any] = {"lease_seconds": 3600, "log_seconds": 3600}
        options |= {names.get(name, name): value for name, value in script.get("options", {}).items()}
        ended = None
        try:
            work(
                "q",
                lambda run, job: act(run["payload"]["do"], job, play),
                url=f"http://127.0.0.1:{server.server_port}/cron",
                token=TOKEN,
                worker_id="w",
                stop=play.stop,
                on_error=ignore,
                **options,
            )
        except Exception as error:
            ended = str(error)
        finally:
            server.shutdown()
            server.server_close()
        left = [step for step in play.left if "optional" not in step]
        self.assertEqual(([], [], script.get("ends")), (play.faults, left, ended))


if __name__ == "__main__":
    unittest.main()
