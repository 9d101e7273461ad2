"""A table of broker properties that are deprecated or removed in Kafka 4.3, each with its replacement."""

DEPRECATED = {
    "auto.include.jmx.reporter": "metric.reporters takes its place",
    "control.plane.listener.name": "Kafka 4.0 removed it together with ZooKeeper",
    "delegation.token.master.key": "delegation.token.secret.key takes its place",
    "group.coordinator.rebalance.protocols": "features of the cluster take its place, and Kafka 5.0 removes it",
    "inter.broker.protocol.version": "Kafka 4.0 removed it; metadata.version takes its place",
    "log.message.downconversion.enable": "it has no effect from Kafka 4.0 on",
    "log.message.format.version": "it has no effect, and Kafka 4.0 removed it",
    "log.message.timestamp.difference.max.ms": (
        "log.message.timestamp.before.max.ms and log.message.timestamp.after.max.ms take its place"
    ),
    "offsets.commit.required.acks": "Kafka 4.0 removed it",
    "zookeeper.connect": "Kafka 4.0 has no ZooKeeper; 'ottla migrate' moves a cluster out of it",
}
