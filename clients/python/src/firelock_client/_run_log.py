"""What a run prints, on its way to the daemon."""

from __future__ import annotations

import threading
from collections.abc import Callable

from ._calls import is_final

PART_BYTES = 65_536  # The daemon takes no more in one call.
KEPT_BYTES = 262_144  # While the daemon is away; then the oldest give way, and their place in the log is a gap.


class RunLog:
    """`append` may be called again with an offset that was written already: the daemon then takes what is new."""

    def __init__(self, append: Callable[[int, bytes], None]) -> None:
        self._append = append
        self._kept = bytearray()
        self._offset = 0
        self._is_off = False
        self._has_failed = False
        self._lock = threading.Lock()
        self._sending = threading.Lock()

    def write(self, text: str) -> bool:
        """True: there is enough for a part, and the last one could be sent."""
        with self._lock:
            if self._is_off:
                return False
            self._kept += text.encode(errors="replace")
            surplus = len(self._kept) - KEPT_BYTES
            if surplus > 0:
                while surplus < len(self._kept) and _is_continuation(self._kept[surplus]):
                    surplus += 1
                self._forget(self._offset + surplus)
            return len(self._kept) >= PART_BYTES and not self._has_failed

    def flush(self) -> None:
        """Sends what is there, part after part. Raises as `append` does: once where that is final, and keeps no more then."""
        with self._sending:
            while True:
                with self._lock:
                    offset, part = self._offset, self._part()
                if not part:
                    return
                try:
                    self._append(offset, part)
                except Exception as error:
                    with self._lock:
                        self._has_failed, self._is_off = True, is_final(error)
                        if self._is_off:
                            self._kept.clear()
                    raise
                with self._lock:
                    self._has_failed = False
                    self._forget(offset + len(part))

    def _part(self) -> bytes:
        length = min(len(self._kept), PART_BYTES)
        while length < len(self._kept) and length > PART_BYTES - 3 and _is_continuation(self._kept[length]):
            length -= 1
        return bytes(self._kept[:length])

    def _forget(self, end: int) -> None:
        """Up to this offset, unless that has given way already."""
        if end > self._offset:
            del self._kept[: end - self._offset]
            self._offset = end


def _is_continuation(byte: int) -> bool:
    return byte & 0xC0 == 0x80
