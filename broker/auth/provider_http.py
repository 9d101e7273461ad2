"""Blocking HTTP requests to an identity provider, for its keys and for this broker's tokens.

They are for a worker thread.

How an https provider's certificate is checked is set by the ``ssl.`` options of the listener's JAAS text (Kafka:
JaasOptionsUtils), which mean what the settings of these names mean; without them the authorities of the system are trusted.
Errors contain nothing that was sent or received.
"""

from __future__ import annotations

import http.client
import ssl
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from email.message import Message
from pathlib import Path

_HTTP_SECONDS = 10.0
"""How long a provider may be silent."""


class ProviderError(Exception):
    """The provider gave no usable answer. ``str()`` is one line for the user."""


def provider_context(options: Mapping[str, str]) -> ssl.SSLContext:
    """The TLS configuration for an https provider, by the options of a JAAS text. Raises SettingError."""
    given = {name: value for name, value in options.items() if name.startswith("ssl.")}
    if not given:
        return ssl.create_default_context()
    from ...security.tls_context import client_context
    from ...security.tls_material import read_material
    from ...security.tls_settings import TlsSettings

    settings = TlsSettings.from_properties(given)
    return client_context(settings, read_material(settings, lambda path: Path(path).read_bytes()))


def read_provider(
    url: str,
    most_bytes: int,
    context: ssl.SSLContext | None,
    body: bytes | None = None,
    authorization: str | None = None,
) -> bytes:
    """The content of a URL (file, http, https), or the response to a POST where a ``body`` is given. Raises ProviderError."""
    parts = urllib.parse.urlsplit(url)
    try:
        if parts.scheme == "file":
            with open(urllib.request.url2pathname(parts.path), "rb") as file:
                data = file.read(most_bytes + 1)
        elif parts.scheme in ("http", "https"):
            data = _read_http(url, most_bytes, context, body, authorization)
        else:
            raise ProviderError("neither a file, http nor https URL")
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise ProviderError(str(error) or type(error).__name__) from None
    if len(data) > most_bytes:
        raise ProviderError(f"more than {most_bytes} bytes")
    return data


def _read_http(
    url: str, most_bytes: int, context: ssl.SSLContext | None, body: bytes | None, authorization: str | None
) -> bytes:
    opener = urllib.request.OpenerDirector()  # no proxies, and no redirects to other kinds of URL
    handlers = [
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(context=context or ssl.create_default_context()),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
    ]
    if authorization is None:
        handlers.append(_SafeRedirects())  # with a secret no redirect is followed: it must not go to another server
    for handler in handlers:
        opener.add_handler(handler)
    request = urllib.request.Request(url, data=body, headers={"Accept": "application/json"})
    if authorization is not None:
        request.add_header("Authorization", authorization)
    with opener.open(request, timeout=_HTTP_SECONDS) as response:
        data: bytes = response.read(most_bytes + 1)
        return data


class _SafeRedirects(urllib.request.HTTPRedirectHandler):
    """Redirects, but not from https to http, where anybody on the way could change the keys."""

    def redirect_request(
        self, req: urllib.request.Request, fp: object, code: int, msg: str, headers: Message, newurl: str
    ) -> urllib.request.Request | None:
        if req.type == "https" and urllib.parse.urlsplit(newurl).scheme != "https":
            raise urllib.error.URLError("redirected from https to another protocol")
        return super().redirect_request(req, fp, code, msg, headers, newurl)  # type: ignore[arg-type]
