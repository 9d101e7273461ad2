"""Connection diagnosis: the reason why a listener refuses a client, found with one connection.

kafka-python tries again for seconds, whatever the reason, and keeps that to its log. Here a certificate that is not trusted, a
wrong password and the like are found at once. Where a connection is closed, another one shows whether the listener wants TLS or
SASL instead. What may be better the next time (no answer, a connection that is closed for no reason known) is left to the client,
which tries again; only when that has failed is it told of here, too.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Any

from ...base.addresses import join_host_port
from ...base.errors import ErrorCode
from ...wire.messages.api_versions import ApiVersionsRequest
from ...wire.messages.metadata import MetadataRequest
from ...wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from .direct_requests import HOW, ClosedConnectionError, ask, authenticate, secured
from .plain_probe import Connect
from .running import ToolError


def check_entrance(
    connect: Connect, host: str, port: int, options: Mapping[str, Any], *, has_failed: bool = False
) -> None:
    """Raises ToolError when the listener refuses a client with these options of kafka-python, for good; OSError when there is no
    connection at all. ``has_failed``: the client has tried for long, so a closed connection is told of whatever it means.
    """
    address, protocol = join_host_port(host, port), options.get("security_protocol", "PLAINTEXT")
    plain = connect()
    try:
        with secured(plain, host, options) as connection:
            ask(connection, ApiVersionsRequest(), 0)
            if protocol.startswith("SASL"):
                authenticate(connection, host, address, options)
            else:
                try:
                    ask(connection, MetadataRequest(topics=[]), 1)
                except ClosedConnectionError:
                    _check_sasl(connect, host, address, options)
                    raise
    except ssl.SSLCertVerificationError as error:
        raise ToolError(_untrusted(address, error)) from None
    except ssl.SSLError as error:
        if (why := _tls_refusal(address, protocol, error)) is not None:
            raise ToolError(why) from None
    except ClosedConnectionError as error:
        if (why := _other_side(connect, address, protocol)) is None and has_failed:
            other = f"its listener may have another security.protocol than {protocol}"
            why = f"{address} closes the connection {error}: {other} {HOW}"
        if why is not None:
            raise ToolError(why) from None
    except OSError:
        return  # the client tries for itself
    finally:
        plain.close()


def _check_sasl(connect: Connect, host: str, address: str, options: Mapping[str, Any]) -> None:
    """Raises ToolError where a listener that has closed the connection of a client without SASL takes a handshake, OSError."""
    with secured(connect(), host, options) as connection:
        ask(connection, ApiVersionsRequest(), 0)
        shaken: SaslHandshakeResponse = ask(connection, SaslHandshakeRequest(mechanism=""), 1)
    if shaken.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
        protocol = options.get("security_protocol", "PLAINTEXT")
        wanted = "SASL_SSL" if protocol == "SSL" else "SASL_PLAINTEXT"
        raise ToolError(
            f"{address} wants SASL ({', '.join(shaken.mechanisms)}), and security.protocol is {protocol}: "
            f"it has to be {wanted} {HOW}"
        )


def _other_side(connect: Connect, address: str, protocol: str) -> str | None:
    """Whether it is the other one of TLS and plain text that the listener answers in; None where that is not known."""
    is_sasl = protocol.startswith("SASL")
    try:
        if protocol.endswith("SSL"):
            with connect() as connection:
                ask(connection, ApiVersionsRequest(), 0)
            return _no_tls(address, protocol)
        if _answers_tls(connect):
            wanted = "SASL_SSL" if is_sasl else "SSL, or SASL_SSL"
            return f"{address} answers with TLS, and security.protocol is {protocol}: it has to be {wanted} {HOW}"
    except OSError:
        pass
    return None


def _answers_tls(connect: Connect) -> bool:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # nothing is sent: any certificate is an answer
    with connect() as plain:
        try:
            context.wrap_socket(plain).close()
        except ssl.SSLError as error:
            return "ALERT" in (error.reason or "")
    return True


def _untrusted(address: str, error: ssl.SSLCertVerificationError) -> str:
    why = error.verify_message.rstrip(".")
    if "mismatch" in why.lower():
        return f"the certificate of {address} is not accepted: {why}"
    return (
        f"the certificate of {address} is not trusted: {why}; ssl.truststore.location has to name the authority that signed it "
        f"{HOW}"
    )


def _tls_refusal(address: str, protocol: str, error: ssl.SSLError) -> str | None:
    """What a failure of TLS says for good; None for one that may pass."""
    reason = (error.reason or "").replace("_", " ").lower()
    if "certificate required" in reason or "handshake failure" in reason:
        return f"{address} refuses the connection ({reason}): it may want a certificate (ssl.keystore.location)"
    if "alert" in reason:
        return f"{address} refuses the connection: {reason}"
    if "wrong version number" in reason or "record layer failure" in reason or "http request" in reason:
        return _no_tls(address, protocol)
    return None


def _no_tls(address: str, protocol: str) -> str:
    return f"{address} does not speak TLS, and security.protocol is {protocol} {HOW}"
