"""Two public dashboards for Kafka on a scrape: each panel that a broker of Ottla can fill finds what it asks for.

A panel is its title and what it selects, by metric and by those labels that brokers give; how it computes with them is
Prometheus' affair. Labels of the target (namespace, pod, instance, job) are those of whoever scrapes.
"""

from __future__ import annotations

import re
import urllib.request

import pytest
from kafka import KafkaConsumer, KafkaProducer
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

import ottla

TRAFFIC = "kafka_server_brokertopicmetrics_"
TOPIC = '{topic!=""}'

STRIMZI_KAFKA = {
    "Brokers Online": ["kafka_server_replicamanager_leadercount"],
    "Active Controllers": ["kafka_controller_kafkacontroller_activecontrollercount"],
    "Unclean Leader Election Rate": ["kafka_controller_controllerstats_uncleanleaderelections_total"],
    "Online Replicas": ["kafka_server_replicamanager_partitioncount"],
    "Under Replicated Partitions": ["kafka_server_replicamanager_underreplicatedpartitions"],
    "Partitions at minimum ISR": ["kafka_cluster_partition_atminisr"],
    "Partitions under minimum ISR": ["kafka_cluster_partition_underminisr"],
    "Offline Partitions Count": ["kafka_controller_kafkacontroller_offlinepartitionscount"],
    "Memory Usage": ["container_memory_usage_bytes"],
    "CPU Usage": ["container_cpu_usage_seconds_total"],
    "Available Disk Space": ["kubelet_volume_stats_available_bytes"],
    "Open File Descriptors": ["process_open_fds"],
    "JVM Memory Used": ["jvm_memory_used_bytes"],
    "JVM GC Time": ["jvm_gc_collection_seconds_sum"],
    "JVM GC Count": ["jvm_gc_collection_seconds_count"],
    "JVM Thread Count": ["jvm_threads_current"],
    "Total Incoming Byte Rate": [f"{TRAFFIC}bytesin_total{TOPIC}"],
    "Total Outgoing Byte Rate": [f"{TRAFFIC}bytesout_total{TOPIC}"],
    "Incoming Messages Rate": [f"{TRAFFIC}messagesin_total{TOPIC}"],
    "Total Produce Request Rate": [f"{TRAFFIC}totalproducerequests_total{TOPIC}"],
    "Byte Rate": [f"{TRAFFIC}bytesin_total{TOPIC}", f"{TRAFFIC}bytesout_total{TOPIC}"],
    "Messages In Per Second": [f"{TRAFFIC}messagesin_total{TOPIC}"],
    "Produce Request Rate": [
        f"{TRAFFIC}totalproducerequests_total{TOPIC}",
        f"{TRAFFIC}failedproducerequests_total{TOPIC}",
    ],
    "Fetch Request Rate": [f"{TRAFFIC}totalfetchrequests_total{TOPIC}", f"{TRAFFIC}failedfetchrequests_total{TOPIC}"],
    "Network Processor Avg Idle Percent": ["kafka_network_socketserver_networkprocessoravgidle_percent"],
    "Request Handler Avg Idle Percent": ["kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent"],
    "Disk Writes": ["kafka_server_kafkaserver_linux_disk_write_bytes"],
    "Disk Reads": ["kafka_server_kafkaserver_linux_disk_read_bytes"],
    "Connection Count per Listener": ['kafka_server_socket_server_metrics_connection_count{listener!=""}'],
    "Log Size": ['kafka_log_log_size{topic=~".+",partition=~".+"}'],
    "(variable) kafka_topic": ['kafka_cluster_partition_replicascount{topic!=""}'],
}
"""``strimzi-kafka.json`` of strimzi/strimzi-kafka-operator, commit 8541da1e (2026-08-22)."""

KAFKA_EXPORTER_OVERVIEW = {
    "Message in per second": ['kafka_topic_partition_current_offset{topic=~".+"}'],
    "Lag by Consumer Group": ['kafka_consumergroup_lag{consumergroup!="",topic=~".+"}'],
    "Message in per minute": ['kafka_topic_partition_current_offset{topic=~".+"}'],
    "Message consume per minute": ['kafka_consumergroup_current_offset{consumergroup!="",topic=~".+"}'],
    "Partitions per Topic": ['kafka_topic_partitions{topic=~".+"}'],
}
"""``kafka_exporter_overview.json`` of danielqsj/kafka_exporter, commit 953e2f17 (2026-01-08); at Grafana number 7589."""

NOT_OURS = {
    "Memory Usage": "cAdvisor's, of the container",
    "CPU Usage": "cAdvisor's, of the container",
    "Available Disk Space": "the kubelet's, of the volume",
    "JVM Memory Used": "there is no JVM",
    "JVM GC Time": "there is no JVM",
    "JVM GC Count": "there is no JVM",
    "JVM Thread Count": "there is no JVM",
}
"""The panels that a broker of Ottla cannot fill, and why; what is like them has other names: docs/metrics.md."""

PANELS = [*STRIMZI_KAFKA.items(), *KAFKA_EXPORTER_OVERVIEW.items()]

_SELECTOR = re.compile(r"([a-z_]+)(?:\{(.*)\})?")
_MATCHER = re.compile(r'(\w+)(=~|!=|=)"([^"]*)"')


def selects(selector: str, sample: Sample) -> bool:
    """Whether a sample is one of a selector's, as Prometheus has it: a label that is not there is empty."""
    matched = _SELECTOR.fullmatch(selector)
    assert matched is not None, selector
    if sample.name != matched[1]:
        return False
    for label, operator, wanted in _MATCHER.findall(matched[2] or ""):
        value = sample.labels.get(label, "")
        fits = re.fullmatch(wanted, value) is not None if operator == "=~" else value == wanted
        if fits == (operator == "!="):
            return False
    return True


@pytest.fixture(scope="module")
def samples() -> list[Sample]:
    """Of a broker that was written to, and read from by a group."""
    with ottla.Broker(properties={"metrics.listener": "127.0.0.1:0"}) as broker:
        broker.create_topic("orders", partitions=2)
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
        for number in range(10):
            producer.send("orders", b"v", partition=number % 2)
        producer.close()
        consumer = KafkaConsumer(
            "orders", bootstrap_servers=broker.bootstrap_servers, group_id="billing", auto_offset_reset="earliest"
        )
        next(consumer)
        consumer.commit()
        with urllib.request.urlopen(f"http://{broker.metrics_address}/metrics", timeout=20) as response:
            text = response.read().decode()
        consumer.close()
    return [sample for family in text_string_to_metric_families(text) for sample in family.samples]


@pytest.mark.parametrize(("panel", "selectors"), PANELS, ids=[panel for panel, _ in PANELS])
def test_a_panel_has_series(panel: str, selectors: list[str], samples: list[Sample]) -> None:
    for selector in selectors:
        is_found = any(selects(selector, sample) for sample in samples)
        assert is_found != (panel in NOT_OURS), f"{panel}: {selector}"
