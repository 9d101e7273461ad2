"""The interface of SASL authentication, which handles a connection's frames until the client is known.

A ``Gate`` takes the frames of a connection instead of dispatch. What it lets through (ApiVersions before the authentication,
any request of a client whose session can expire) it gives to ``dispatch.answer`` itself.
"""

from __future__ import annotations

from typing import Protocol

from ...base.network import Part
from ...handlers.call import NodeCall
from .dispatch import Answer


class AuthenticationFailedError(Exception):
    """The client failed to authenticate: after connection.failed.authentication.delay.ms it is told, and disconnected.

    ``str()`` is for the log, and has no secret in it.
    """

    def __init__(self, why: str, answer: list[Part]) -> None:
        super().__init__(why)
        self.answer = answer
        """The framed response; empty where the protocol has none."""


class Gate(Protocol):
    """The authentication of one connection. Its fields are plain attributes, which change in ``take`` only."""

    is_open: bool
    """Whether every frame goes to dispatch from now on, past the gate.

    The gate of a session that expires stays closed, and passes on what it takes.
    """
    frame_limit: int | None
    """The size of the largest frame taken, in bytes (sasl.server.max.receive.size).

    None as soon as the client is known: then the limit of requests holds (socket.request.max.bytes), and the connection may stay.
    """

    async def take(self, call: NodeCall, frame: memoryview) -> Answer:
        """Handle one frame; returns the framed response as dispatch does.

        Raises AuthenticationFailedError; ProtocolError, CloseConnection and AnswersLost as dispatch does.
        """
        ...
