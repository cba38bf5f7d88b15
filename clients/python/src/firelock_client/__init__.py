"""A receiver of what firelock sends, and a worker for its queues."""

from .callback import Callback, HandedJob
from .errors import Later, Problem, Refused
from .receiver import HandedRun, Receiver
from .signature import SignatureError, Verifier
from .store import Reply, RunStore, SqliteStore, Verdict
from .worker import Job, work

__all__ = [
    "Callback",
    "HandedJob",
    "HandedRun",
    "Job",
    "Later",
    "Problem",
    "Receiver",
    "Refused",
    "Reply",
    "RunStore",
    "SignatureError",
    "SqliteStore",
    "Verdict",
    "Verifier",
    "work",
]
