"""Metrics of the broker process: its state, its build, its one event loop."""

from __future__ import annotations

from .family import Family, MetricType, families_of, gauge

BROKER_STATE = gauge(
    "kafka_server_kafkaserver_brokerstate",
    "",
    "1 while the broker starts, 3 while it runs, 6 while a controlled shutdown moves its leaderships, 7 while it stops.",
    "kafka.server:type=KafkaServer,name=BrokerState",
)
BUILD = gauge(
    "ottla_build_info",
    "version commit",
    "1, with the version and the commit of this build; the commit is unknown if it was not installed from one (Kafka: "
    "app-info).",
)
HANDLERS_IDLE = gauge(
    "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent",
    "",
    "The share of the last minute, 0 to 1, in which the event loop, which handles all requests, used no CPU time.",
    "kafka.server:type=KafkaRequestHandlerPool,name=RequestHandlerAvgIdlePercent",
)
NETWORK_IDLE = gauge(
    "kafka_network_socketserver_networkprocessoravgidle_percent",
    "",
    "The same value as RequestHandlerAvgIdlePercent: the same loop handles the network.",
    "kafka.network:type=SocketServer,name=NetworkProcessorAvgIdlePercent",
)
DISK_READ = gauge(
    "kafka_server_kafkaserver_linux_disk_read_bytes",
    "",
    "Bytes that the process has read from disks; only on Linux.",
    "kafka.server:type=KafkaServer,name=linux-disk-read-bytes",
)
DISK_WRITTEN = gauge(
    "kafka_server_kafkaserver_linux_disk_write_bytes",
    "",
    "Bytes that the process has written to disks; only on Linux.",
    "kafka.server:type=KafkaServer,name=linux-disk-write-bytes",
)
LOOP_LAG = Family(
    "ottla_loop_lag_seconds",
    MetricType.HISTOGRAM,
    (),
    "By how many seconds a timer that is set four times a second fires late: requests wait as long for the event loop.",
)
LOOP_TASKS = gauge("ottla_loop_tasks", "", "Tasks of the event loop.")

FAMILIES: tuple[Family, ...] = families_of(globals())
