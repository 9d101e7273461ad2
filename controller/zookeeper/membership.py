"""A broker's membership in the cluster, from one ZooKeeper session to the next.

When the session has expired, other brokers may have registered, changed configs, become controller. So, in Kafka's order
(KafkaController ``Expire`` and ``RegisterBrokerAndReelect``): the controller gives up what it was about to do and resigns; only
then a new session is opened; the broker registers under a new epoch; configs are read again; the controller stands for
election. While the session is only suspected the controller does not act. After that, too, everything is read again, because
ZooKeeper's watches are lost with the connection. The broker goes on leading its partitions meanwhile, as in Kafka.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

import trio

from ...base.errors import KafkaError
from ...base.seams import Clock
from ...metadata.types import BrokerRegistration
from .active.controller import ZooKeeperController
from .config_store import ConfigStore
from .registration import register_broker, register_when_free, update_broker
from .store.cluster_store import SessionExpiredError, StoreError, StoreFailedError
from .store.session import BrokerSession, SessionState

logger = logging.getLogger(__name__)

RETRY_SECONDS = 0.1


class Membership:
    """``join`` once, then ``run`` in a task of its own."""

    def __init__(
        self,
        session: BrokerSession,
        registration: BrokerRegistration,
        configs: ConfigStore,
        controller: ZooKeeperController,
        clock: Clock,
    ) -> None:
        self._session = session
        self._registration = registration
        self._configs = configs
        self._controller = controller
        self._clock = clock
        self._registered_in = -1
        self.watch_losses: list[Callable[[], None]] = []
        """Called when the watches of others at the session may be lost: they have to read again what they watch."""
        self.broker_epoch = -1
        """The zxid of this broker's registration (KIP-380); another one with each session."""

    async def join(self) -> None:
        """Register the broker and let it stand for election. Raises KafkaError, StoreError."""
        self.broker_epoch = await register_when_free(self._session, self._registration, self._clock)
        self._registered_in = self._session.session_id
        await self._controller.start()

    async def change(self, registration: BrokerRegistration) -> None:
        """Store the broker's changed registration. Raises StoreError; the next session registers it in any case."""
        self._registration = registration
        if self._registered_in == self._session.session_id:
            await update_broker(self._session, registration, self._clock)

    async def run(self) -> None:
        """Follow the session's life. Ends when the store has failed."""
        seen = 0
        while True:
            seen = await self._session.wait_change(seen)
            state = self._session.state
            try:
                if state is SessionState.SUSPECTED:
                    logger.warning(
                        "The cluster store does not respond: partitions keep their leaders, and changes of leaders, topics "
                        "or settings wait"
                    )
                    self._controller.suspend()
                elif state is SessionState.CONNECTED:
                    await self._catch_up()
                else:
                    logger.warning("The session at the cluster store has expired")
                    await self._controller.resign()
                    seen = await self._rejoin()
            except StoreFailedError as error:
                logger.error("The broker is no longer in the cluster: %s", error)
                return

    async def _catch_up(self) -> None:
        """The session was suspected, and is connected again."""
        logger.info("The cluster store answers again")
        try:
            await self._configs.start()
        except SessionExpiredError:
            return
        self._notify_watchers()
        self._controller.resume()

    def _notify_watchers(self) -> None:
        for listener in self.watch_losses:
            listener()

    async def _rejoin(self) -> int:
        """Become a member again, however long it takes; returns the session's ``changes`` before anything was read in it."""
        said = ""
        while True:
            try:
                await self._session.renew()
                seen = self._session.changes
                await self._register()
                await self._configs.start()
                self._notify_watchers()
                await self._controller.elect()
            except SessionExpiredError:
                continue
            except StoreFailedError:
                raise
            except (StoreError, KafkaError) as error:
                level = logging.DEBUG if str(error) == said else logging.WARNING
                logger.log(level, "The broker is not back in the cluster yet: %s", error)
                said = str(error)
                await trio.sleep(RETRY_SECONDS)
                continue
            logger.info("The broker is back in the cluster, with epoch %d", self.broker_epoch)
            return seen

    async def _register(self) -> None:
        """Once in each session."""
        session_id = self._session.session_id
        if self._registered_in != session_id:
            self.broker_epoch = await register_broker(self._session, self._registration, self._clock)
            self._registered_in = session_id
