"""Authentication on a SASL listener: no request is handled before its client is known (KIP-43, KIP-152, KIP-368).

A conversation is: ApiVersions, if the client wishes; SaslHandshake, which names the mechanism; then the mechanism's tokens, after
a handshake of version 1 in SaslAuthenticate requests, after one of version 0 each as the whole of a frame. Anything else ends the
connection, without a response. Where a session can expire the gate goes on taking every frame: it lets requests through until
then, and begins another conversation when the client sends another handshake.

The rules are those of Kafka's SaslServerAuthenticator and KafkaChannel, except for one: a request of another API in the place of
SaslAuthenticate is not answered ILLEGAL_SASL_STATE, because for this every request would have to be read before its client is
known.
"""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from ...base.errors import ErrorCode, ProtocolError
from ...base.network import Part
from ...handlers.call import CloseConnection, NodeCall
from ...handlers.connection_context import ConnectionContext
from ...handlers.node_services import NodeServices
from ...security.principal import Principal
from ...security.sasl import Authenticated, AuthenticationError, SaslServer
from ...wire.api_keys import ApiKey
from ...wire.codec import decode
from ...wire.headers import RequestHeader, decode_request_header, response_header_encoder
from ...wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from ...wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from ...wire.schema import Message
from ..auth.sasl_mechanism import Mechanism
from ..auth.sasl_mechanisms import enabled_mechanisms
from ..auth.sasl_settings import SaslSettings
from ..listener_config import ListenerConfig
from .dispatch import Answer, answer, framed
from .gate import AuthenticationFailedError
from .monitor import Authentication, Monitor

_SIZE = struct.Struct(">i")
_ERROR_CODE = struct.Struct(">8xh")
"""In the response to ApiVersions, behind size and correlation id."""
_REAUTHENTICATION_INTERVAL = 1.0
"""In seconds, as in Kafka (KafkaChannel ``MIN_REAUTH_INTERVAL_ONE_SECOND_NANOS``)."""


@dataclasses.dataclass(frozen=True, slots=True)
class SaslListener:
    """The settings for the conversations of one listener."""

    mechanisms: Mapping[str, Mechanism]
    session_ms: Mapping[str, int]
    """By mechanism, after how many milliseconds at most a client has to authenticate itself again; 0 for never."""
    frame_limit: int
    """The largest frame taken before the client is known, in bytes."""


def sasl_listener(config: ListenerConfig) -> SaslListener:
    """What the settings say. Raises SettingError."""
    mechanisms = enabled_mechanisms(config)
    session_ms = {name: config.settings(SaslSettings, name).connections_max_reauth_ms for name in mechanisms}
    return SaslListener(mechanisms, session_ms, config.settings(SaslSettings).server_max_receive_size)


_Take = Callable[[NodeCall, memoryview], Awaitable[list[Part] | None]]


class SaslGate:
    """The gate of one connection; it writes the client's principal into the connection's ``context``."""

    def __init__(
        self, context: ConnectionContext, services: NodeServices, monitor: Monitor, listener: SaslListener
    ) -> None:
        self.is_open = False
        self.frame_limit: int | None = listener.frame_limit
        self._context = context
        self._services = services
        self._monitor = monitor
        self._listener = listener
        self._conversation: _Conversation | None = _Conversation(listener, services)
        self._mechanism = ""
        self._last_beginning = -_REAUTHENTICATION_INTERVAL
        context.is_authenticating = True

    async def take(self, call: NodeCall, frame: memoryview) -> Answer:
        if self._conversation is None:
            if not self._begins_anew(frame):
                self._check_session()
                return await answer(call, frame)
            self._last_beginning = self._services.clock.elapsed()
            self.frame_limit = self._listener.frame_limit
            self._conversation = _Conversation(
                self._listener, self._services, _Session(self._mechanism, self._context.principal)
            )
        is_first = self._mechanism == ""
        try:
            parts = await self._conversation.take(call, frame)
        except AuthenticationFailedError:
            self._count(Authentication.FAILED if is_first else Authentication.FAILED_AGAIN)
            raise
        if self._conversation.outcome is not None:
            self._enter(self._conversation, self._conversation.outcome)
            self._count(Authentication.SUCCESSFUL if is_first else Authentication.SUCCESSFUL_AGAIN)
        return parts

    def _count(self, what: Authentication) -> None:
        self._monitor.authentications[self._context.listener, what] += 1

    def _begins_anew(self, frame: memoryview) -> bool:
        """Whether this is the first request of another conversation, of which there is at most one a second."""
        if bytes(frame[:2]) != ApiKey.SASL_HANDSHAKE.to_bytes(2):
            return False
        return self._services.clock.elapsed() - self._last_beginning >= _REAUTHENTICATION_INTERVAL

    def _check_session(self) -> None:
        expires = self._context.session_expires
        if expires is not None and self._services.clock.elapsed() > expires:
            self._count(Authentication.EXPIRED)
            raise CloseConnection("the client has not authenticated itself again in time")

    def _enter(self, conversation: _Conversation, outcome: Authenticated) -> None:
        self._context.principal = outcome.principal
        self._context.is_authenticating = False
        self._context.session_expires = conversation.session_expires
        self._mechanism = conversation.mechanism
        self._conversation = None
        self.frame_limit = None
        self.is_open = conversation.session_expires is None


@dataclasses.dataclass(frozen=True, slots=True)
class _Session:
    """The first authentication of a client: later ones must have the same mechanism and principal."""

    mechanism: str
    principal: Principal


class _Conversation:
    """One authentication."""

    def __init__(self, listener: SaslListener, services: NodeServices, earlier: _Session | None = None) -> None:
        self.mechanism = ""
        self.outcome: Authenticated | None = None
        """Who the client is; None until the end."""
        self.session_expires: float | None = None
        """Set at the end: when the session ends, by ``Clock.elapsed`` in seconds; None for never."""
        self._listener = listener
        self._services = services
        self._earlier = earlier
        self._take: _Take = self._take_beginning
        self._knows_versions = earlier is not None
        self._server: SaslServer | None = None

    async def take(self, call: NodeCall, frame: memoryview) -> list[Part] | None:
        """The response to the next frame. Raises AuthenticationFailedError."""
        return await self._take(call, frame)

    # --- which mechanism ----------------------------------------------------------------------------------------------

    async def _take_beginning(self, call: NodeCall, frame: memoryview) -> list[Part] | None:
        try:
            header, start = decode_request_header(frame)
        except ProtocolError as error:
            raise AuthenticationFailedError(f"no request of SASL: {error}", []) from None
        if header.api_key == ApiKey.API_VERSIONS and not self._knows_versions:
            parts = await answer(call, frame)
            assert isinstance(parts, list)
            # After an error the client asks again, with a version that is served.
            said = b"".join(part for part in parts if isinstance(part, bytes))
            self._knows_versions = _ERROR_CODE.unpack_from(said)[0] == ErrorCode.NONE
            return parts
        if header.api_key != ApiKey.SASL_HANDSHAKE:
            raise _unexpected(header, "handshake")
        request: SaslHandshakeRequest = _decoded(SaslHandshakeRequest, header, frame[start:])
        return self._shake_hands(header, request.mechanism)

    def _shake_hands(self, header: RequestHeader, name: str) -> list[Part]:
        response = SaslHandshakeResponse(mechanisms=list(self._listener.mechanisms))
        mechanism = self._listener.mechanisms.get(name)
        if mechanism is None:
            response.error_code = ErrorCode.UNSUPPORTED_SASL_MECHANISM
            why = f"SASL mechanism {name!r} is not among those enabled: {', '.join(self._listener.mechanisms)}"
            raise AuthenticationFailedError(why, _framed(header, response))
        if self._earlier is not None and self._earlier.mechanism != name:
            # The handshake succeeds, and the next frame ends the connection: so does Kafka's SaslServerAuthenticator.
            self._take = self._refuse_mechanism
        else:
            self._server = mechanism.server(self._services)
            self._take = self._take_request if header.api_version else self._take_bare
        self.mechanism = name
        return _framed(header, response)

    async def _refuse_mechanism(self, _call: NodeCall, _frame: memoryview) -> list[Part] | None:
        assert self._earlier is not None
        raise AuthenticationFailedError(
            f"SASL mechanism '{self.mechanism}' requested by client is not supported for re-authentication of mechanism "
            f"'{self._earlier.mechanism}'",
            [],
        )

    # --- its tokens ---------------------------------------------------------------------------------------------------

    async def _take_request(self, _call: NodeCall, frame: memoryview) -> list[Part] | None:
        try:
            header, start = decode_request_header(frame)
        except ProtocolError as error:
            raise AuthenticationFailedError(f"no request of SASL: {error}", []) from None
        if header.api_key != ApiKey.SASL_AUTHENTICATE:
            raise _unexpected(header, "authentication")
        request: SaslAuthenticateRequest = _decoded(SaslAuthenticateRequest, header, frame[start:])
        try:
            token = self._respond(bytes(request.auth_bytes))
        except AuthenticationError as error:
            response = SaslAuthenticateResponse(
                error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=self._told(error)
            )
            raise AuthenticationFailedError(self._logged(error), _framed(header, response)) from None
        lifetime_ms = 0 if self.outcome is None else self._begin_session(self.outcome)
        return _framed(header, SaslAuthenticateResponse(auth_bytes=token, session_lifetime_ms=lifetime_ms))

    async def _take_bare(self, _call: NodeCall, frame: memoryview) -> list[Part] | None:
        try:
            token = self._respond(bytes(frame))
        except AuthenticationError as error:
            raise AuthenticationFailedError(self._logged(error), []) from None
        if self.outcome is not None:
            self._begin_session(self.outcome)
        return [_SIZE.pack(len(token)) + token]

    def _respond(self, token: bytes) -> bytes:
        assert self._server is not None
        response = self._server.respond(token)
        outcome = self._server.outcome
        if outcome is not None and self._earlier is not None and self._earlier.principal != outcome.principal:
            was, now = self._earlier.principal, outcome.principal
            raise AuthenticationError(
                f"Cannot change principals during re-authentication from {was.type}.{was.name}: {now.type}.{now.name}",
                is_shown=True,
            )
        self.outcome = outcome
        return response

    def _begin_session(self, outcome: Authenticated) -> int:
        """The lifetime of the session, in milliseconds; 0: it never ends (``session_expires`` is None), or has ended already."""
        clock = self._services.clock
        limits = []
        if outcome.expires_ms is not None:
            limits.append(max(0, outcome.expires_ms - clock.now_ms()))
        if self._listener.session_ms[self.mechanism] > 0:
            limits.append(self._listener.session_ms[self.mechanism])
        if not limits:
            return 0
        self.session_expires = clock.elapsed() + min(limits) / 1000
        return min(limits)

    def _told(self, error: AuthenticationError) -> str:
        """The error message for the client."""
        if error.is_shown:
            return str(error)
        return (
            f"Authentication failed during {self._kind} due to invalid credentials with SASL mechanism {self.mechanism}"
        )

    def _logged(self, error: AuthenticationError) -> str:
        why = "" if error.__cause__ is None else f" ({error.__cause__})"
        return f"failed {self._kind} by {self.mechanism}: {error}{why}"

    @property
    def _kind(self) -> str:
        return "authentication" if self._earlier is None else "re-authentication"


def _unexpected(header: RequestHeader, stage: str) -> AuthenticationFailedError:
    name = ApiKey(header.api_key).name
    return AuthenticationFailedError(f"Unexpected Kafka request of type {name} during SASL {stage}.", [])


def _decoded(request_class: type[Message], header: RequestHeader, body: memoryview) -> Any:
    """The request. Raises AuthenticationFailedError, also for a version that is not served."""
    if header.api_version not in request_class.valid_versions:
        why = f"{ApiKey(header.api_key).name} version {header.api_version} is not served"
        raise AuthenticationFailedError(why, [])
    try:
        return decode(request_class, header.api_version, body, ignore_rest=True)
    except ProtocolError as error:
        raise AuthenticationFailedError(f"a malformed {ApiKey(header.api_key).name}: {error}", []) from None


def _framed(header: RequestHeader, response: Message) -> list[Part]:
    encode_header = response_header_encoder(header.api_key, header.api_version)
    return framed(encode_header(header.correlation_id), header.api_version, response)
