"""Reserved ports, for a test's own servers and for the later starts of a broker."""

from __future__ import annotations

import contextlib
import errno
import socket

from ..base.addresses import join_host_port, split_host_port

_ADDRESSES = ("listeners", "metrics.listener")


class HeldPort:
    """A port for a server of the test's own, reserved until ``close``, also before the server listens and between its starts.

    It is bound here, without listening: a server that sets SO_REUSEADDR, as all do, can listen there all the same. It is a free
    port unless ``number`` is given; OSError, whose ``strerror`` names the address, where that is taken, or ``host`` is not an
    address of this machine.
    """

    def __init__(self, number: int = 0, host: str = "127.0.0.1") -> None:
        family, _, _, _, address = socket.getaddrinfo(
            host or None, number, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        self._socket = socket.socket(family)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind(address)
        except OSError as error:
            self._socket.close()
            why = "the port is in use" if error.errno == errno.EADDRINUSE else error.strerror
            raise OSError(error.errno, f"cannot listen on {join_host_port(host, number)}: {why}") from None
        self.number = int(self._socket.getsockname()[1])

    def close(self) -> None:
        """Release the port."""
        self._socket.close()


class HeldPorts:
    """The free ports that a broker was given, also for its later starts, until ``close``."""

    def __init__(self) -> None:
        self._held: list[HeldPort] = []

    def fill_in(self, properties: dict[str, str]) -> dict[str, str]:
        """The properties with a reserved port in place of each port 0, in the listeners and the address of the metrics."""
        filled = {name: self._filled(properties[name]) for name in _ADDRESSES if name in properties}
        return {**properties, **filled}

    def _filled(self, addresses: str) -> str:
        return ",".join(self._fill(address.strip()) for address in addresses.split(","))

    def _fill(self, address: str) -> str:
        before, separator, host_port = address.rpartition("://")
        # A malformed or foreign address stays as it is: the broker refuses it.
        with contextlib.suppress(ValueError, OSError):
            host, port = split_host_port(host_port)
            if port == 0:
                self._held.append(HeldPort(0, host))
                return f"{before}{separator}{join_host_port(host, self._held[-1].number)}"
        return address

    def close(self) -> None:
        """Release the ports."""
        for port in self._held:
            port.close()
        self._held.clear()
