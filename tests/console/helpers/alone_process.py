"""``ottla console`` as a process, whose pages are read as by a browser."""

from __future__ import annotations

import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from .browsing import Page

_LIMIT_S = 120


@contextmanager
def console_of(bootstrap: str, *arguments: str) -> Iterator[Callable[[str], Page]]:
    """A context with a function that returns the page at an address beginning with /."""
    with console_at(bootstrap, *arguments) as console:

        def page(target: str) -> Page:
            with urllib.request.urlopen(f"{console}{target}", timeout=_LIMIT_S) as answer:
                return Page(answer.read().decode())

        yield page


@contextmanager
def console_at(bootstrap: str, *arguments: str) -> Iterator[str]:
    """A context with the address of the console, with http:// and without a / at the end."""
    command = [sys.executable, "-m", "ottla", "console", "-b", bootstrap, "--listen", "127.0.0.1:0", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    address = process.stdout.readline().partition("http://")[2].strip().rstrip("/")
    assert address, "it has ended"
    try:
        yield f"http://{address}"
    finally:
        process.terminate()
        assert process.wait(_LIMIT_S) == 0
        process.stdout.close()
