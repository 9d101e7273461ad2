"""A trio loop in a thread of its own, in which other threads run functions.

A caller waits until its function is done, whatever runs in its own thread: plain code, asyncio, or another trio loop. What the
function raises is raised to the caller; expected errors come without the frames of the loop, which are of no use to a user.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import threading
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import trio

from ..base.errors import ErrorCode, KafkaError
from ..base.settings import SettingError
from ..broker.server import BrokerFailedError, StartError

T = TypeVar("T")

_EXPECTED = (KafkaError, TimeoutError, StartError, BrokerFailedError, SettingError)

__tracebackhide__ = True  # a failure points at the caller's line


class LoopThread:
    """A loop in a thread of its own, from ``start`` to ``stop``; ``what`` is a word for what runs there ("broker")."""

    def __init__(self, what: str, clock: trio.abc.Clock) -> None:
        self._what = what
        self._clock = clock
        self._started = threading.Event()
        self._failure: BaseException | None = None
        self._thread: threading.Thread | None = None
        self._token: trio.lowlevel.TrioToken | None = None
        self._stop_asked = trio.Event()

    # In the caller's thread

    def start(self, main: Callable[[], Awaitable[None]]) -> None:
        """Run ``main`` in the loop; returns once it calls ``wait_stop``. Raises what it raises before that."""
        self._thread = threading.Thread(target=self._run, args=(main,), name=f"ottla-{self._what}", daemon=True)
        self._thread.start()
        self._started.wait()
        if self._failure is not None:
            self._thread.join()
            raise _told(self._failure)

    def stop(self) -> None:
        """Ask ``main`` to end; returns when it has, and raises what it raised. A second call does nothing."""
        if self._thread is not None:
            self.run_soon(self._stop_asked.set)
            self._thread.join()
            self._thread = None
            if self._failure is not None:
                raise _told(self._failure)

    def run_soon(self, function: Callable[[], Any]) -> None:
        """Run ``function`` in the loop, without waiting for it; at once, in this thread, when there is no loop."""
        if self._token is not None:
            with contextlib.suppress(trio.RunFinishedError):
                self._token.run_sync_soon(function)
                return
        function()

    def call(self, function: Callable[[], Awaitable[T]]) -> T:
        """Run ``function`` in the loop and wait for what it returns or raises. Raises KafkaError when there is no loop."""
        token = self._token
        if token is None:
            raise self._not_running()
        future: concurrent.futures.Future[T] = concurrent.futures.Future()

        async def run() -> None:
            try:
                future.set_result(await function())
            except Exception as error:
                future.set_exception(error)
            finally:
                future.cancel()  # for cancellation; does nothing where there is a result

        try:
            token.run_sync_soon(lambda: trio.lowlevel.spawn_system_task(run))
        except trio.RunFinishedError:
            raise self._not_running() from None
        error = future.exception()
        if error is not None:
            raise _told(error)
        return future.result()

    def _not_running(self) -> KafkaError:
        return KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, f"the {self._what} is not running")

    # In the loop's thread

    async def wait_stop(self) -> None:
        """For ``main``, when it is ready: the caller of ``start`` goes on, and this returns when ``stop`` is called."""
        self._started.set()
        await self._stop_asked.wait()

    def _run(self, main: Callable[[], Awaitable[None]]) -> None:
        try:
            trio.run(self._main, main, clock=self._clock)
        except BaseException as error:
            self._failure = error
        finally:
            self._started.set()

    async def _main(self, main: Callable[[], Awaitable[None]]) -> None:
        self._token = trio.lowlevel.current_trio_token()
        await main()


def _told(error: BaseException) -> BaseException:
    return error.with_traceback(None) if isinstance(error, _EXPECTED) else error
