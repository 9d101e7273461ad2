"""``Problem``: the reason why an action or a page failed, and the form field concerned."""

from __future__ import annotations

from typing import NamedTuple

from ..base.errors import KafkaError
from ..view.connect_view import ConnectError
from ..view.own.broker_view import NotFoundError
from .forms import RefusedFormError
from .kafka_requests import in_words
from .questions import WrongQuestionError


class Problem(NamedTuple):
    """The reason of a failure."""

    why: str
    """A sentence."""
    status: int
    """The HTTP status of the page."""
    field: str = ""
    """The name of the form field concerned; empty if there is none."""


def problem_of(error: Exception) -> Problem:
    """What the page says of it."""
    match error:
        case KafkaError():
            status = 403 if error.code.name.endswith("_AUTHORIZATION_FAILED") else 409
            return Problem(f"Kafka's answer: {in_words(error)}", status)
        case ConnectError():
            return Problem(str(error), 409)
        case RefusedFormError():
            return Problem(str(error), 403)
        case NotFoundError():
            return Problem(str(error), 404)
        case WrongQuestionError():
            return Problem(str(error), 400, error.field)
        case _:
            raise AssertionError(f"{type(error).__name__} is not an error that a form expects")
