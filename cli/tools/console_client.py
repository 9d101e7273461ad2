"""The client of ``ottla top`` for a broker's console: ``/top.json``, and a login by the console's form if needed.

The console has no TLS. A password is sent only when the console asks for it, straight to it and not by a proxy, and only where
nobody but this machine's users could read it, or where the client's settings have it sent unencrypted anyway.
"""

from __future__ import annotations

import http.client
import ipaddress
import json
import re
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from typing import Any

from ...base.addresses import join_host_port
from ...security.client_security import ClientSecurity
from .running import ToolError

_SECONDS = 10.0
_PAGE = "/top.json"
_TOKEN = re.compile(r'name="token" value="([^"]+)"')
_REFUSED = {
    403: "the user name or the password is wrong",
    429: "there were too many wrong passwords; wait a minute",
    503: "the broker has not started yet",
}


class ConsoleClient:
    """One console, with a session for as long as that lasts."""

    def __init__(self, host: str, port: int, security: ClientSecurity) -> None:
        self.place = join_host_port(host, port)
        self._is_near = _is_near(host)
        self._security = security
        self._open = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPCookieProcessor()
        ).open

    def look(self) -> dict[str, Any]:
        """What the broker is doing. Raises ToolError."""
        try:
            try:
                seen = self._get(_PAGE)
            except urllib.error.HTTPError as error:
                error.close()
                if error.code != 401:
                    raise
                seen = self._log_in()
            found = json.loads(seen)
        except urllib.error.HTTPError as error:
            error.close()
            if error.code == 403 and self._security.username:
                raise ToolError(
                    f"the console at {self.place} does not show this to {self._security.username}: it takes Describe of the "
                    "cluster (CLUSTER_AUTHORIZATION_FAILED)"
                ) from None
            raise ToolError(f"the server at {self.place} is not a console of Ottla: it says {error.code}") from None
        except (OSError, ValueError, http.client.HTTPException) as error:
            why = getattr(error, "reason", error)
            raise ToolError(
                f"no console answers at {self.place} ({why}); 'ottla serve --console {self.place}' has one"
            ) from None
        if not isinstance(found, dict) or not found.keys() >= {"broker", "topics", "groups", "errors"}:
            raise ToolError(f"the server at {self.place} is not a console of Ottla")
        return found

    def _get(self, path: str, form: Mapping[str, str] | None = None) -> str:
        """What is there, or where sending a form there leads. Raises OSError."""
        data = None if form is None else urllib.parse.urlencode(form).encode()
        request = urllib.request.Request(f"http://{self.place}{path}", data, {"Origin": f"http://{self.place}"})
        with self._open(request, timeout=_SECONDS) as answer:
            return str(answer.read().decode())

    def _log_in(self) -> str:
        """Begin a session; what is looked for. Raises ToolError, OSError."""
        security = self._security
        if not security.password:
            raise ToolError(
                f"the console at {self.place} wants a log-in: sasl.jaas.config with the name and password of a user, for PLAIN "
                "or SCRAM (--command-config)"
            )
        if not self._is_near and (security.protocol, security.mechanism) != ("SASL_PLAINTEXT", "PLAIN"):
            raise ToolError(
                f"the console at {self.place} has no TLS, so the password of {security.username} is not sent there; go by "
                f"'ssh -L 8080:127.0.0.1:8080 HOST' or the like, and --console 127.0.0.1:8080"
            )
        token = _TOKEN.search(self._get("/login"))
        form = {"token": "" if token is None else token[1], "user": security.username, "password": security.password}
        try:
            return self._get("/login", {**form, "next": _PAGE})
        except urllib.error.HTTPError as error:
            if "/login" not in error.url or error.code not in _REFUSED:
                raise
            error.close()
            raise ToolError(
                f"the console at {self.place} does not let {security.username} in: {_REFUSED[error.code]}"
            ) from None


def _is_near(host: str) -> bool:
    """Whether nothing leaves this machine on the way there."""
    try:
        return host.lower() == "localhost" or ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False
