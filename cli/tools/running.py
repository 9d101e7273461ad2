"""The run of a tool: an error as one line, a quiet end at a closed pipe, and the exit codes.

0 is done, 1 failed, 2 asked for wrongly, 130 interrupted. SIGTERM interrupts as Ctrl-C does.
"""

from __future__ import annotations

import logging
import os
import re
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import NoReturn

import kafka.errors

from ..nearest_path import meant_path

INTERRUPTED = 130
_CODE = re.compile(r"Unexpected error in .*\[Error (\d+)\]")
_FILLER = "Returned by the broker when "


class ToolError(Exception):
    """A tool cannot do what it was told. ``str()`` is one line for users that says what to do about it."""

    exit_code = 1


class UsageError(ToolError):
    """Options that make no sense, by themselves or together."""

    exit_code = 2


def run_tool(debug: bool, tool: Callable[..., int | None], *arguments: object, **named: object) -> int:
    """Call the tool; the exit code."""
    logging.basicConfig(stream=sys.stderr, level=logging.INFO if debug else logging.CRITICAL + 1)
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        code = tool(*arguments, **named) or 0
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        discard_output()
        return 0
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        if debug:
            traceback.print_exc()
        if not debug and not isinstance(error, ToolError | kafka.errors.KafkaError | OSError | ValueError):
            return _report(f"{type(error).__name__}: {error} (--debug shows where)", 1)
        return _report(explain(error), error.exit_code if isinstance(error, ToolError) else 1)


def explain(error: BaseException) -> str:
    """What to tell users of an error."""
    if isinstance(error, ToolError):
        return str(error)
    if isinstance(error, kafka.errors.BrokerResponseError):
        words = (", ".join(sorted(each)) if isinstance(each, set | frozenset) else str(each) for each in error.args)
        return refusal(error.errno, " ".join(words))
    if isinstance(error, kafka.errors.KafkaTimeoutError) and "bootstrap" in str(error):
        return (
            "the brokers take connections and do not answer this client: security.protocol, sasl.mechanism and the password have "
            "to be those of the listener (--command-config)"
        )
    if isinstance(
        error, kafka.errors.KafkaTimeoutError | kafka.errors.NodeNotReadyError | kafka.errors.KafkaConnectionError
    ):
        return f"the brokers do not answer: {error}"
    if isinstance(error, OSError):
        return f"{error.filename}: {error.strerror}{_near(error)}" if error.filename else str(error)
    if isinstance(error, kafka.errors.KafkaError) and (found := _CODE.search(str(error))) is not None:
        return refusal(int(found[1]), None)
    return str(error) or type(error).__name__


def _near(error: OSError) -> str:
    return meant_path(Path(os.fsdecode(error.filename))) if isinstance(error, FileNotFoundError) else ""


def refusal(code: int, message: str | None) -> str:
    """What a broker answered: its own words where it gave some, and the name that Kafka has for the error."""
    kind = kafka.errors.for_code(code)
    name = getattr(kind, "message", None) or kind.__name__
    words = (message or "").strip() or getattr(kind, "description", "") or "the broker refused"
    first_line = words.splitlines()[0].rstrip(".").removeprefix(_FILLER)
    if name.endswith("AUTHORIZATION_FAILED") and "authori" not in first_line.lower():
        first_line = f"not authorized: {first_line}"  # kafka-python names the thing and nothing else
    return first_line if name in first_line else f"{first_line} ({name})"


def discard_output() -> None:
    """Standard output is not read any more: let the interpreter flush what is left into nothing."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _report(line: str, code: int) -> int:
    print(f"ottla: {line}", file=sys.stderr)
    return code


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt
