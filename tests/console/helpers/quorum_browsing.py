"""Nodes of a KRaft quorum whose brokers have consoles, in one loop and on one network in memory."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

from ottla.base.seams import InlineWorkers
from ottla.broker.config_file import load_config
from ottla.broker.controller_only import ControllerOnlyServer
from ottla.broker.server import BrokerServer
from ottla.console.broker_console import ConsoleSide

from ...broker.helpers.controller_world import ControllerWorld, formed
from .browsing import Browsing


class ConsoleWorld(ControllerWorld):
    """Each broker has a console at ``nodeN:8080``."""

    def make_server(self, node_id: int, **own: str) -> BrokerServer | ControllerOnlyServer:
        if "broker" not in self.roles[node_id]:
            return super().make_server(node_id, **own)
        properties = self.properties(node_id, console_listener=f"node{node_id}:8080", **own)
        return BrokerServer(
            load_config(properties),
            network=self.network,
            workers=InlineWorkers(),
            disk=self.disk(node_id),
            make_console=ConsoleSide,
        )

    def browsing(self, node_id: int) -> Browsing:
        """A browser at the console of a broker."""
        server = self.lives[node_id].server
        assert isinstance(server, BrokerServer)
        return Browsing(server, self.network)


def console_world(roles: dict[int, str]) -> AbstractAsyncContextManager[ConsoleWorld]:
    """A cluster that was formatted and runs."""
    return formed(ConsoleWorld, roles)
