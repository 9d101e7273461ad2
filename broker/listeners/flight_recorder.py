"""The last requests of a connection, written to a file when it ends with a protocol error.

While there is no error this costs next to nothing: a connection's receive buffer is filled from its beginning to at least the
middle before it is used again, so the last requests are still in it, one behind the other. When the buffer is used again, that is
once per 8 KiB received, ``MOST_KEPT`` bytes of what was there before are copied; large requests are thereby kept with their first
bytes only.

Files are called ``protocol-error-<UTC time>-<number>.json``, lie in the first log directory and are read by ``python -m
ottla.wire decode FILE``. At most ``MOST_FILES`` are kept, those of earlier runs included, each of about a MiB at most; and at
most one is written per second. Of requests with passwords or tokens only the head is kept. A connection records nothing when
its host has had the same error before, so that one client does not push out the recordings of others.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
from collections import deque
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ...base.seams import Clock, Workers
from ...log.disk import Disk, join
from ...wire.api_keys import ApiKey

if TYPE_CHECKING:
    from ...wire.recorded import Frame

logger = logging.getLogger(__name__)

MOST_FRAMES = 32
MOST_KEPT = 16 * 1024
MOST_FILES = 16
WITH_SECRETS = (
    ApiKey.SASL_AUTHENTICATE,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
    ApiKey.RENEW_DELEGATION_TOKEN,
    ApiKey.EXPIRE_DELEGATION_TOKEN,
    ApiKey.ALTER_CONFIGS,
    ApiKey.INCREMENTAL_ALTER_CONFIGS,
)
"""The APIs whose requests have passwords or tokens in them."""
_HEAD_BYTES = 8
"""API key, version and correlation id."""
_PAUSE_SECONDS = 1.0
PREFIX = "protocol-error-"


class FlightRecorder:
    """Writes recordings into ``folder``."""

    def __init__(self, disk: Disk, folder: str, clock: Clock, workers: Workers) -> None:
        self._disk = disk
        self._folder = folder
        self._clock = clock
        self._workers = workers
        self._count = 0
        self._last = -_PAUSE_SECONDS

    async def record(self, peer: str, listener: str, error: str, earlier: bytes, buffer: bytes) -> str | None:
        """Write the last frames of ``earlier`` and ``buffer``, and return the path; None when it is too soon, or fails."""
        from ...wire.recorded import recording_text

        now = self._clock.elapsed()
        if now - self._last < _PAUSE_SECONDS:
            return None
        self._last = now
        self._count += 1
        time = datetime.fromtimestamp(self._clock.now_ms() / 1000, UTC)
        path = join(self._folder, f"{PREFIX}{time:%Y%m%dT%H%M%S}-{self._count}.json")
        frames = last_frames(earlier, buffer)
        text = recording_text(time.isoformat(timespec="milliseconds"), peer, listener, error, frames)
        try:
            await self._workers.run(self._write, path, text.encode())
        except OSError as failure:
            logger.warning("the last requests of %s cannot be written to %s: %s", peer, path, failure)
            return None
        return path

    def _write(self, path: str, data: bytes) -> None:
        names = [name for name in self._disk.names(self._folder) if name.startswith(PREFIX)]
        for name in sorted(names, key=_age)[: max(len(names) - MOST_FILES + 1, 0)]:
            with contextlib.suppress(FileNotFoundError):
                self._disk.remove(join(self._folder, name))
        self._disk.write_file(path, data, sync=False, sync_name=False)


def _age(name: str) -> tuple[str, int]:
    """Sorts the names of recordings by the time of each, and within a second by number."""
    time, _, number = name.removeprefix(PREFIX).removesuffix(".json").rpartition("-")
    return time, int(number) if number.isdigit() else 0


def last_frames(earlier: bytes, buffer: bytes) -> list[Frame]:
    """The last ``MOST_FRAMES`` frames, with at most ``MOST_KEPT`` bytes of each."""
    from ...wire.recorded import split_frames

    frames: deque[Frame] = deque(maxlen=MOST_FRAMES)
    frames.extend(split_frames(earlier, MOST_KEPT))
    frames.extend(split_frames(buffer, MOST_KEPT))
    return [_without_secrets(frame) for frame in frames]


def _without_secrets(frame: Frame) -> Frame:
    if int.from_bytes(frame.data[:2]) in WITH_SECRETS:
        return dataclasses.replace(frame, data=frame.data[:_HEAD_BYTES])
    return frame
