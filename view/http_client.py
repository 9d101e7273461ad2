"""Requests over HTTP to services beside Kafka, a schema registry or a Connect worker: one request a connection.

Only the address that somebody has configured is asked, over http or https, and no redirection is followed. A request has a time
limit, and its response a limit of bytes, for whoever answers there may be anybody.
"""

from __future__ import annotations

import functools
import ssl
from typing import NamedTuple
from urllib.parse import urlsplit

import trio

from ..base.addresses import join_host_port

_RECEIVED_AT_ONCE = 64 * 1024


class HttpAddress(NamedTuple):
    """The address of a service, as its URL gives it."""

    is_secure: bool
    host: str
    port: int
    path: str
    """The path of the URL, without a slash at its end."""

    @property
    def place(self) -> str:
        """The host and port."""
        return join_host_port(self.host, self.port)

    @property
    def name(self) -> str:
        """The host and port, as people name it; with the path, since several services may be behind one proxy."""
        return f"{self.place}{self.path}"

    @property
    def url(self) -> str:
        return f"{'https' if self.is_secure else 'http'}://{self.name}"


class HttpResponse(NamedTuple):
    """A response, whatever its status is."""

    status: int
    body: bytes


class HttpError(OSError):
    """There is no response. ``str()`` is the end of a sentence that begins with the service's name."""


class HttpTimeoutError(HttpError):
    """There is no response in time: the request may have been carried out."""


def read_address(url: str, service: str, example: str) -> HttpAddress:
    """The address in ``url``. ``service`` names what is there. Raises ValueError with a sentence."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ValueError(f"{url} is not an address of {service}, such as {example}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise ValueError(f"{url} is not an address of {service}, such as {example}")
    if parts.username is not None or parts.password is not None:
        raise ValueError(f"the address of {service} cannot have a user name in it")
    is_secure = parts.scheme == "https"
    return HttpAddress(is_secure, parts.hostname, port or (443 if is_secure else 80), parts.path.rstrip("/"))


async def ask(
    address: HttpAddress, target: str, *, accept: str, seconds: float, most_bytes: int, method: str = "GET"
) -> HttpResponse:
    """Send a request without a body. ``target`` follows the path of the address. Raises HttpError, HttpTimeoutError."""
    import h11  # installed with the console, for which the requests are

    try:
        with trio.fail_after(seconds):
            stream = await _connected(address)
            try:
                return await _exchange(stream, address, method, target, accept, most_bytes)
            finally:
                await trio.aclose_forcefully(stream)
    except trio.TooSlowError:
        raise HttpTimeoutError(f"did not answer within {seconds:g} s") from None
    except HttpError:
        raise
    except (OSError, ValueError, h11.ProtocolError, trio.BrokenResourceError) as error:
        # trio tells of a failed TLS handshake by an empty error whose cause says why.
        why = str(error) or str(error.__cause__ or "") or type(error).__name__
        raise HttpError(f"cannot be queried: {why}") from None


async def _connected(address: HttpAddress) -> trio.abc.Stream:
    """Raises OSError."""
    if not address.is_secure:
        return await trio.open_tcp_stream(address.host, address.port)
    context = await trio.to_thread.run_sync(_trusted)
    return await trio.open_ssl_over_tcp_stream(address.host, address.port, ssl_context=context, https_compatible=True)


@functools.cache
def _trusted() -> ssl.SSLContext:
    """With the certificates that the system trusts; reading them takes longer than the loop may stand still."""
    return ssl.create_default_context()


async def _exchange(
    stream: trio.abc.Stream, address: HttpAddress, method: str, target: str, accept: str, most_bytes: int
) -> HttpResponse:
    import h11

    protocol = h11.Connection(h11.CLIENT)
    headers = [("Host", address.place), ("Accept", accept), ("Connection", "close")]
    if method != "GET":
        headers.append(("Content-Length", "0"))
    request = protocol.send(h11.Request(method=method, target=address.path + target, headers=headers))
    await stream.send_all((request or b"") + (protocol.send(h11.EndOfMessage()) or b""))
    status, body = 0, bytearray()
    while True:
        event = protocol.next_event()
        if event is h11.NEED_DATA:
            protocol.receive_data(bytes(await stream.receive_some(_RECEIVED_AT_ONCE)))
        elif isinstance(event, h11.Response):
            status = event.status_code
        elif isinstance(event, h11.Data):
            body += event.data
            if len(body) > most_bytes:
                raise HttpError(f"cannot be queried: its response is longer than {most_bytes} bytes")
        elif not isinstance(event, h11.InformationalResponse):
            return HttpResponse(status, bytes(body))
