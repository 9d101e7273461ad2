"""Shell commands for the pages of Kafka Connect: requests to its REST interface by curl; see ``commands``."""

from __future__ import annotations

from collections.abc import Sequence

from .commands import Command, line


def connectors(urls: Sequence[str]) -> Command:
    """The connectors of each worker, with their states."""
    return Command("\n".join(line("curl", "-s", f"{url}/connectors?expand=info&expand=status") for url in urls))


def connector(url: str) -> Command:
    """``url``: of the state of one connector."""
    return Command(line("curl", "-s", url))


def change(method: str, url: str) -> Command:
    return Command(line("curl", "-s", "-X", method, url))
