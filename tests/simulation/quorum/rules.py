"""The rules of KRaft that breakages replace: the one place that knows where each of them is enforced."""

from __future__ import annotations

from ottla.controller.quorum.active import alter_partition, broker_states, brokers, controller, partition_changes
from ottla.controller.quorum.active.controller import ActiveController
from ottla.controller.quorum.active.heartbeats import BrokerHeartbeats
from ottla.controller.quorum.active.state import ControllerState
from ottla.controller.quorum.loader import MetadataLoader
from ottla.controller.raft.node import RaftNode
from ottla.controller.raft.quorum_state import QuorumState
from ottla.replication.isr import PendingExpand, PendingShrink

from ..cluster.rules import Rule

# The active controller and its log
OPERATION = Rule("_run", (ActiveController,))
RENOUNCE = Rule("renounce", (ActiveController,))
LEADER_NOTICE = Rule("_notify_leader", (RaftNode,))
APPLIED_BATCH = Rule("apply", (ControllerState,))
ACTIVATION = Rule("activate", (controller,))

# Brokers, as the controller knows them
FIRST_SESSIONS = Rule("begin", (BrokerHeartbeats,))
FENCE = Rule("fence", (broker_states,))
STALE_BROKER = Rule("fence_stale_broker", (controller,))
HEARTBEAT = Rule("process_heartbeat", (controller,))
LOWEST_OFFSET = Rule("lowest_active_offset", (BrokerHeartbeats,))
IDENTITY = Rule("_check_identity", (brokers,))
PREVIOUS_LIFE = Rule("end_previous_life", (broker_states,))

# Partitions, as the controller decides on them
MEMBER = Rule("_is_eligible", (alter_partition,))
PROPOSAL = Rule("_why_not", (alter_partition,))
ELIGIBLE = Rule("_eligible_replicas", (partition_changes,))
ELECTION = Rule("elect", (partition_changes,))

# Brokers
COMMIT = Rule("commit", (QuorumState,))
TAKEN_RECORD = Rule("_take", (MetadataLoader,))
MEMBERS_UNTIL_SHRUNK = Rule("maximal_isr", (PendingShrink,))
MEMBERS_UNTIL_EXPANDED = Rule("maximal_isr", (PendingExpand,))
MEMBERS_PROPOSED = Rule("proposed", (PendingExpand,))
