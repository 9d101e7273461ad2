"""The list of all faults."""

from __future__ import annotations

from collections.abc import Sequence

from .fault import Fault
from .machine_faults import (
    ClockJump,
    EmptyDisk,
    FullDisk,
    NoDescriptors,
    SlowFsync,
)
from .network_faults import (
    CutBroker,
    CutClients,
    CutFollowers,
    CutFromCoordination,
    CutHalves,
    CutOneWay,
    SlowLink,
)
from .process_faults import (
    ControllerChange,
    ControllerChangeWhileMoving,
    Kill,
    KillLong,
    KillSeveral,
    Pause,
    PauseShort,
    RollingRestart,
    Stop,
)
from .quorum_faults import (
    CutController,
    CutFromActive,
    KillController,
    KillControllers,
    PauseController,
    PauseControllers,
)
from .zookeeper_faults import KillZooKeeper, PauseZooKeeper

FAULTS: Sequence[type[Fault]] = (
    Kill,
    KillLong,
    KillSeveral,
    Stop,
    RollingRestart,
    Pause,
    PauseShort,
    KillZooKeeper,
    PauseZooKeeper,
    CutBroker,
    CutHalves,
    CutOneWay,
    CutFromCoordination,
    CutFollowers,
    CutClients,
    SlowLink,
    FullDisk,
    EmptyDisk,
    SlowFsync,
    ClockJump,
    NoDescriptors,
    ControllerChange,
    ControllerChangeWhileMoving,
    KillController,
    KillControllers,
    PauseController,
    PauseControllers,
    CutController,
    CutFromActive,
)
