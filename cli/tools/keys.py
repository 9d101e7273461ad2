"""Single key presses on a terminal, read while a command draws on it."""

from __future__ import annotations

import contextlib
import os
import select
import sys
import time
from collections.abc import Callable, Iterator

Pressed = Callable[[float], str]
"""Waits so many seconds at most for a key; returns it, or '' if none was pressed."""


@contextlib.contextmanager
def pressed_keys() -> Iterator[Pressed]:
    """Read single keys of standard input for the length of a block; it only waits where that is no terminal.

    Ctrl-C stays an interrupt.
    """
    if not sys.stdin.isatty():
        yield _wait
        return
    import termios
    import tty

    file = sys.stdin.fileno()
    before = termios.tcgetattr(file)
    tty.setcbreak(file)
    try:
        yield _wait_for_key
    finally:
        termios.tcsetattr(file, termios.TCSADRAIN, before)


def _wait(seconds: float) -> str:
    time.sleep(seconds)
    return ""


def _wait_for_key(seconds: float) -> str:
    file = sys.stdin.fileno()
    ready, _, _ = select.select([file], [], [], seconds)
    return os.read(file, 1).decode(errors="replace") if ready else ""
