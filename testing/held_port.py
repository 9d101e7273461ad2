"""A port that is kept for a server of the test's own."""

from __future__ import annotations

import socket


class HeldPort:
    """A port for a server of the test's own: it is not given away before the server listens, or between two starts of it.

    It is bound here, without a listener: a server that sets SO_REUSEADDR, as all do, can listen there all the same. It is a
    free one unless ``number`` says which; OSError where that is taken.
    """

    def __init__(self, number: int = 0) -> None:
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind(("127.0.0.1", number))
        except OSError:
            self._socket.close()
            raise
        self.number = int(self._socket.getsockname()[1])

    def close(self) -> None:
        """Give it back to the system."""
        self._socket.close()
