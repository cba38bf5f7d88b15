"""What the work may raise, and what the daemon answers."""

from __future__ import annotations


class Refused(Exception):
    """Raised by the work: never. The run ends as failed, without another attempt."""


class Later(Exception):
    """Raised by the work of a receiver: not now. firelock tries again, at the earliest after so many seconds."""

    def __init__(self, seconds: float, message: str = "later") -> None:
        super().__init__(message)
        self.seconds = seconds


class Problem(Exception):
    """An answer that is an error (RFC 9457), from the daemon or from a proxy before it."""

    def __init__(self, status: int, title: str, detail: str, retry_after_seconds: float | None) -> None:
        super().__init__(f"{status} {title}: {detail}")
        self.status = status
        self.retry_after_seconds = retry_after_seconds

    @property
    def may_pass(self) -> bool:
        """Whether the same call may succeed later. If not, it would be refused again."""
        return self.status in (408, 429) or self.status >= 500


def said_by(error: BaseException) -> str:
    """For a report. `sys.exit(3)` in the work says only "3" of itself."""
    return str(error) if isinstance(error, Exception) else repr(error)
