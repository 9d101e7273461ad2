"""Parsing of submitted forms, with a check that the form is the console's own.

A form has the visitor's token in the field ``token`` (``parts.token`` in a template); one without it is refused, whatever its
``Origin`` says.
"""

from __future__ import annotations

import hmac
from urllib.parse import parse_qsl

from starlette.requests import Request

from .visitor import current

_TYPE = "application/x-www-form-urlencoded"
_MOST_FIELDS = 1000


class RefusedFormError(Exception):
    """The form is not one of this console's, or is from an earlier session. ``str()`` is a sentence."""


async def read_form(request: Request) -> dict[str, str]:
    """The fields of a form that was sent by this visitor, without the token; the last where one is there twice.

    Lines end with a line feed. Raises RefusedFormError.
    """
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _TYPE:
        raise RefusedFormError(f"A form is sent as {_TYPE}.")
    try:
        text = (await request.body()).decode("ascii")
        given = dict(parse_qsl(text, keep_blank_values=True, max_num_fields=_MOST_FIELDS, errors="strict"))
    except ValueError:
        raise RefusedFormError("The form cannot be read.") from None
    token = given.pop("token", "")
    if not hmac.compare_digest(token.encode(), current().form_token.encode()):
        raise RefusedFormError("The form is not of this session. Go back, load its page again, and send it again.")
    return {name: value.replace("\r\n", "\n") for name, value in given.items()}
