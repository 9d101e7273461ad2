"""The topic-level settings are Kafka's: names, types, defaults, broker properties, and what they take."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ottla.base.settings import SettingError
from ottla.log.settings import LogManagerSettings, LogSettings

PROGRAM = Path(__file__).parents[1] / "java" / "LogConfigs.java"

VALUES = ["", " ", "-2", "-1", "0", "1", "2", "3", "14", "4096", "1048576", "2147483647", "2147483648", "-131073"]
VALUES += ["9223372036854775807", "9223372036854775808", "0.5", "1.5", "true", "FALSE", "yes", "*", "0:1", "0:1,2:3"]
VALUES += ["0:", "a:b", "delete", "compact", "compact,delete", "compact, delete", "Compact", "CreateTime"]
VALUES += ["LogAppendTime", "createtime", "producer", "gzip", "uncompressed", "none", "9", "10", "17", "18", "22", "23"]


@pytest.mark.slow
def test_as_kafka_declares_them(kafka_jars):
    topic = LogSettings.topic_settings()
    asked = [f"{name}\t{value}" for name in topic for value in VALUES]
    command = ["java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", f"{kafka_jars}/*", str(PROGRAM)]
    done = subprocess.run(command, input="\n".join(asked).encode(), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    lines = [line.split("\t") for line in done.stdout.decode().splitlines()]
    settings = {name: (kind, default, synonyms) for what, name, kind, default, synonyms in lines_of(lines, "setting")}
    ours = {}
    for name, setting in topic.items():
        synonyms = [f"{setting.name}*1"] if setting.name else []
        synonyms += [f"{fallback.name}*{fallback.factor}" for fallback in setting.fallbacks]
        ours[name] = (setting.kind.name, setting.render(setting.default), ",".join(synonyms))
    assert ours == settings
    differing: list[tuple[str, str, str]] = []
    for _, name, value, taken in lines_of(lines, "value"):
        if name == "segment.bytes" and value.isdecimal() and 14 <= int(value) < 1 << 20:
            continue  # Kafka 3.9 took them
        try:
            topic[name].parse(value)
        except SettingError:
            differing += [(name, value, "Kafka takes it")] if taken == "true" else []
        else:
            differing += [(name, value, "Kafka refuses it")] if taken == "false" else []
    assert differing == []


def lines_of(lines: list[list[str]], what: str) -> list[list[str]]:
    return [line for line in lines if line[0] == what]


def test_stronger_properties_win():
    read = LogSettings.from_properties
    assert read({}).retention_ms == 604_800_000
    assert read({"log.retention.hours": "1"}).retention_ms == 3_600_000
    assert read({"log.retention.hours": "1", "log.retention.minutes": "1"}).retention_ms == 60_000
    assert read({"log.retention.minutes": "1", "log.retention.ms": "5"}).retention_ms == 5
    assert read({"log.retention.hours": "-1"}).retention_ms == -1
    assert read({"log.roll.hours": "2"}).segment_ms == 7_200_000
    assert read({"log.flush.scheduler.interval.ms": "9"}).flush_ms == 9


def test_topic_overrides():
    broker = LogSettings.from_properties({"log.segment.bytes": "1000", "log.cleanup.policy": "compact"})
    topic = broker.with_topic_overrides({"segment.bytes": "2000", "unknown": "x"})
    assert (broker.segment_bytes, topic.segment_bytes) == (1000, 2000)
    assert (topic.is_compacted, topic.deletes_old_segments) == (True, False)
    with pytest.raises(SettingError, match=r"segment\.bytes"):
        broker.with_topic_overrides({"segment.bytes": "13"})


def test_settings_of_the_manager_have_no_topic_name():
    assert LogManagerSettings.topic_settings() == {}
    assert LogManagerSettings.from_properties({"producer.id.expiration.ms": "7"}).producer_id_expiration_ms == 7


def test_what_follows_from_settings_follows_anew_from_those_of_a_topic() -> None:
    settings = LogSettings()
    assert (settings.is_compacted, settings.max_segment_ms) == (False, settings.segment_ms)
    compacted = settings.with_topic_overrides({"cleanup.policy": "compact", "max.compaction.lag.ms": "1000"})
    assert (compacted.is_compacted, compacted.max_segment_ms) == (True, 1000)
    assert (settings.is_compacted, settings.max_segment_ms) == (False, settings.segment_ms)
