"""``ottla cluster unregister``: removes a broker for good from the cluster's metadata (UnregisterBroker, KIP-631).

While it is registered the controller holds it for a broker that is down: what its release lacks cannot be finalized, and new
topics may get replicas there. A broker that runs, or has replicas, is left alone; kafka-cluster.sh unregisters it as well.
"""

from __future__ import annotations

from contextlib import closing

import kafka.errors

from ....base.wording import counted
from ....wire.messages.unregister_broker import UnregisterBrokerRequest
from ..client import ClusterConnection
from ..cluster_view import find_topics
from ..running import ToolError, refusal
from ..wire_request import WireRequest


def unregister(connection: ClusterConnection, broker_id: int) -> None:
    """Raises ToolError for a broker that is not registered, runs, or has replicas; KafkaError."""
    with closing(connection.admin()) as admin:
        known = {each["broker_id"]: each for each in admin.registered_brokers()}
        if broker_id in known and not known[broker_id].get("is_fenced"):
            raise ToolError(f"broker {broker_id} runs: stop it first")
        held = [p for topic in find_topics(admin, None) for p in topic.partitions if broker_id in p.replicas]
        if held:
            raise ToolError(
                f"broker {broker_id} has replicas of {counted(len(held), 'partition')}: move them first, by "
                f"'ottla cluster drain {broker_id} --replicas'"
            )
        try:
            response = admin.ask(WireRequest(UnregisterBrokerRequest(broker_id=broker_id), 0, 0))
        except kafka.errors.IncompatibleBrokerVersion:
            raise ToolError("brokers of a cluster on ZooKeeper are registered only while they run") from None
    if response.error_code:
        raise ToolError(refusal(response.error_code, response.error_message))
    print(f"Broker {broker_id} is registered no more.")
