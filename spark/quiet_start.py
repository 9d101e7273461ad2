"""Hides what Spark prints on standard error while it starts, unless the start fails.

Spark has Ivy fetch its packages, which prints about fifty lines; no setting of Spark or Ivy turns that off.
"""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_STDERR = 2


@contextmanager
def quiet_start() -> Iterator[None]:
    """Hold back what processes started in this block print on standard error; show it if the block raises an Exception.

    What they print afterwards is passed on for as long as they run.
    """
    shown_to = os.dup(_STDERR)
    reader, writer = os.pipe()
    os.dup2(writer, _STDERR)
    os.close(writer)
    relay = _Relay(reader, shown_to)
    try:
        yield
    except Exception:
        relay.pass_on(what_was_held=True)
        raise
    finally:
        os.dup2(shown_to, _STDERR)
        relay.pass_on(what_was_held=False)


class _Relay:
    """Reads one descriptor to its end, in its own thread, and writes to the other after ``pass_on``."""

    def __init__(self, reader: int, shown_to: int) -> None:
        os.set_blocking(reader, False)
        self._reader = reader
        self._shown_to = shown_to
        self._held: bytearray | None = bytearray()
        self._lock = threading.Lock()
        threading.Thread(target=self._run, daemon=True, name="standard error of Spark").start()

    def pass_on(self, *, what_was_held: bool) -> None:
        """Pass on what is read from now on. Earlier output is shown or dropped; a second call has no effect."""
        with self._lock:
            if self._held is None:
                return
            # What Spark has written before this call belongs to the start, though the thread has not read it yet.
            with suppress(BlockingIOError):
                while self._take():
                    pass
            held, self._held = self._held, None
            if what_was_held:
                self._write(held)

    def _run(self) -> None:
        is_open = True
        while is_open:
            select.select([self._reader], [], [])
            with self._lock, suppress(BlockingIOError):
                is_open = self._take()
        os.close(self._reader)
        os.close(self._shown_to)

    def _take(self) -> bool:
        """Read once. Returns False at the end. Raises BlockingIOError when there is nothing yet."""
        data = os.read(self._reader, 65536)
        if self._held is None:
            self._write(data)
        else:
            self._held += data
        return bool(data)

    def _write(self, data: bytes | bytearray) -> None:
        with suppress(OSError):  # standard error is not read any more
            while data:
                data = data[os.write(self._shown_to, data) :]
