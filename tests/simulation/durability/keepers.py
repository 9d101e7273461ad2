"""Who keeps the metadata in a trial: a store, or a quorum of controllers, with or without eligible leader replicas (KIP-966)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

from ..cluster.stage import Stage
from ..cluster.store_stage import perform
from ..outcome import Result
from ..quorum.stage import perform_on_quorum
from ..run import Mode
from .events import Event, Setting, Trial


class Keeper(NamedTuple):
    """See the module. ``perform`` runs a script."""

    name: str
    perform: Callable[..., Result]
    has_elr: bool = False

    def lost(self, setting: Setting, event: Event, seed: int, mode: Mode = Mode.POWER) -> int:
        """How many records one seed loses."""
        found = 0

        async def script(stage: Stage) -> None:
            nonlocal found
            trial = Trial(stage, setting)
            await event(trial)
            await stage.heal()
            found = await trial.lost()

        result = self.perform(script, mode=mode, seed=seed, acks=setting.acks, topic_configs=setting.topic_configs)
        assert result.violations == [], "\n".join([*result.events, *result.violations])
        return found


_ON_QUORUM = functools.partial(perform_on_quorum, controllers=1)
"""No column has a fault of a controller."""
STORE = Keeper("ZooKeeper", functools.partial(perform, controller=4))
QUORUM = Keeper("quorum", functools.partial(_ON_QUORUM, has_elr=False))
QUORUM_WITH_ELR = Keeper("quorum with ELR", functools.partial(_ON_QUORUM, has_elr=True), has_elr=True)
KEEPERS = (STORE, QUORUM, QUORUM_WITH_ELR)
