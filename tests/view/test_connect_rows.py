"""What a worker of Kafka Connect tells is read whatever it is, without the secrets in it, and once for one cluster."""

from __future__ import annotations

import json

import pytest

from ottla.view.connect_rows import (
    MOST_TRACE,
    ConnectorRow,
    ConnectWorkerRow,
    hidden,
    once,
    read_connectors,
    read_message,
    read_tasks,
    read_topics,
    read_worker,
)

STATUS = {"connector": {"state": "RUNNING", "worker_id": "a:8083"}, "tasks": []}


def one(config: object, status: object = STATUS, kind: object = "sink", place: str = "p:1") -> ConnectorRow:
    body = json.dumps({"c": {"info": {"config": config, "type": kind}, "status": status}}).encode()
    (row,) = read_connectors(body, place)
    return row


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("database.password", "x"),
        ("DB_PASSWD", "x"),
        ("sasl.oauthbearer.client.credentials", "x"),
        ("aws.secret.access.key", "x"),
        ("aws.access.key.id", "x"),
        ("snowflake.private.key", "x"),
        ("apiKey", "x"),
        ("azure.account_key", "x"),
        ("github.token", "x"),
        ("producer.override.sasl.jaas.config", "x"),
        ("ssl.keystore.key", "x"),
        ("ssl.key.password", "x"),
        ("value.converter.basic.auth.user.info", "user:x"),
        ("http.headers.authorization", "Bearer x"),
        ("connection.uri", "mongodb://shop:x@db:27017"),
        ("connection.url", "jdbc:sqlserver://db;user=shop;Password = x"),
        ("connection.string", "DefaultEndpointsProtocol=https;AccountKey=x"),
        ("database.password", "${file:f:k}x"),
    ],
)
def test_secrets_are_hidden(name: str, value: str) -> None:
    assert hidden(name, value)
    row = one({name: value})
    assert row.config == ((name, None),)
    assert repr(value) not in repr(row)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("key.converter", "org.apache.kafka.connect.storage.StringConverter"),
        ("transforms.key.type", "ValueToKey"),
        ("message.key.columns", "a:b"),
        ("primary.key.fields", "id"),
        ("database.user", "shop"),
        ("connection.url", "jdbc:postgresql://db:5432/shop"),
        ("ssl.keystore.location", "/etc/keystore.p12"),
        ("ssl.truststore.type", "PEM"),
        ("query", "select a from b where key = 5"),
        ("database.password", "${file:/etc/secrets:password}"),
        ("database.password", ""),
    ],
)
def test_the_rest_is_shown(name: str, value: str) -> None:
    assert one({name: value}).config == ((name, value),)


def test_names_and_values_of_any_length_are_looked_at() -> None:
    assert not hidden("auth" * 250_000, "://" + ":" * 1_000_000)
    assert hidden("x", "://" + ":" * 1_000_000 + "@")


@pytest.mark.parametrize("body", [b"", b"[]", b"1", b"<html>", b'{"a": 1}', b'{"a": ', b"[" * 100_000])
def test_what_is_no_list_of_connectors_is_refused(body: bytes) -> None:
    with pytest.raises((ValueError, RecursionError)):
        read_connectors(body, "p:1")


@pytest.mark.parametrize("part", [None, 1, "x", [], [[1]], {"connector": 1, "tasks": [1, {"id": "x", "state": 5}]}])
def test_parts_of_other_types_are_left_out(part: object) -> None:
    row = one(part, part, part)
    assert row.name == "c"
    assert row.state == "not known"
    assert row.topics == ()
    assert all(task.number == -1 for task in row.tasks)


def test_a_row_has_what_the_worker_tells() -> None:
    tasks = [
        {"id": 2, "state": "FAILED", "worker_id": "b:8083", "trace": "x" * 50_000},
        {"id": 0, "state": "RUNNING", "worker_id": "a:8083"},
        {"id": 1, "state": "UNASSIGNED", "worker_id": "a:8083"},
    ]
    config = {"connector.class": "org.x.ToFile", "topics": "orders, prices,,", "topics.regex": "a.*"}
    row = one(config, {"connector": {"state": "PAUSED", "worker_id": "a:8083"}, "tasks": tasks})
    assert (row.short_class, row.kind, row.state, row.worker) == ("ToFile", "sink", "PAUSED", "a:8083")
    assert (row.running, row.failed, row.unassigned, row.has_failed, row.is_failed) == (1, 1, 1, True, False)
    assert [task.number for task in row.tasks] == [0, 1, 2]
    assert len(row.tasks[2].trace) == MOST_TRACE
    assert (row.topics, row.topics_regex, row.group) == (("orders", "prices"), "a.*", "connect-c")
    assert one({"consumer.override.group.id": "g"}).group == "g"
    source = one({"topics": "orders", "topics.regex": "a.*"}, kind="source")
    assert (source.topics, source.topics_regex, source.group) == ((), "", None)


def test_halves_of_surrogates_are_replaced() -> None:
    body = b'{"\\ud800": {"info": {"config": {"\\udfff": "\\udc00"}}}}'
    (row,) = read_connectors(body, "p:1")
    assert row.name.encode() == b"?"
    assert row.config == (("?", "?"),)


def test_two_workers_of_a_cluster_tell_of_one_connector() -> None:
    config = {"topics": "orders"}
    first, second = one(config, place="a:1"), one(config, place="b:1")
    other = one(config, {"connector": {"state": "FAILED", "worker_id": "c:1"}}, place="c:1")
    workers = [ConnectWorkerRow(row.place, "", (row,)) for row in (first, second, other)]
    assert [row.place for row in once(workers)] == ["a:1", "c:1"]


def test_other_answers() -> None:
    assert read_topics(b'{"c": {"topics": ["b", "a", "b", 1]}}', "c") == ("a", "b")
    assert read_topics(b'{"d": {"topics": ["b"]}}', "c") == ()
    assert read_worker(b'{"version": "4.3.1", "kafka_cluster_id": "id"}') == ("4.3.1", "id")
    assert [task.state for task in read_tasks(b'{"tasks": [{"id": 0, "state": "RESTARTING"}]}')] == ["RESTARTING"]
    assert read_message(b'{"message": "a rebalance"}') == "a rebalance"
    for body in (b"", b"<html>", b"[]", b'{"message": 5}', b"[" * 100_000):
        assert read_message(body) == ""
