"""Ten tasks of a person at the console, in Chromium: each takes at most four clicks from the overview (``helpers.clicks``).

They are those of the table in docs/console.md.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING
from urllib.request import urlopen

import kafka.errors
import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic
from kafka.structs import OffsetAndMetadata

from ottla.compat_tests.session import eventually
from ottla.compat_tests.wire_client import Connection
from ottla.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest

from .helpers.clicks import Clicks
from .helpers.served import Served, serving
from .helpers.windows import SIZES, log_in, window

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (tools/setup.sh test)")
if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext
expect = playwright.expect
pytestmark = pytest.mark.slow

DAY_MS = 86_400_000
ORDERS = 60


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A broker with a shop's traffic: a producer that stays, a group that is stuck, and one that is gone."""
    with serving(tmp_path_factory.mktemp("shop")) as served, traffic(served):
        yield served


@contextmanager
def traffic(served: Served) -> Iterator[None]:
    address = served.address
    with closing(KafkaAdminClient(bootstrap_servers=address)) as admin:
        admin.create_topics([NewTopic("orders", 3, 1), NewTopic("orders-test", 3, 1), NewTopic("payments", 1, 1)])
    yesterday = int(time.time() * 1000) - DAY_MS
    writer = KafkaProducer(bootstrap_servers=address, client_id="web-shop")
    for number in range(ORDERS):
        order = {"order": {"id": number, "state": "PAID"}, "note": "x" * (2000 if number % 3 == 1 else 10)}
        where = {"partition": number % 3, "timestamp_ms": yesterday if number < ORDERS // 2 else None}
        writer.send("orders", json.dumps(order).encode(), key=b"customer-%d" % number, **where)
    writer.send(
        "dead-letters", b'{"order": {"id": "seventeen"}}', key=b"customer-17", headers=[("error", b"no number")]
    )
    writer.flush()
    commit(address, "billing", {("orders", number): 5 for number in range(3)})
    loading = {"transactional_id": "payments/1", "transaction_timeout_ms": 15 * 60_000}
    with closing(KafkaProducer(bootstrap_servers=address, **loading)) as loader:
        loader.init_transactions()
        loader.begin_transaction()
        loader.send("payments", b"paid").get(timeout=60)
        writer.send("payments", b"behind").get(timeout=60)
        reader = KafkaConsumer(
            "payments", bootstrap_servers=address, group_id="ledger", isolation_level="read_committed"
        )
        while not reader.assignment():
            reader.poll(100)
        reader.commit({TopicPartition("payments", 0): OffsetAndMetadata(0, "", -1)})
        yield
        reader.close()
        loader.abort_transaction()
    writer.close()


def commit(address: str, group: str, offsets: dict[tuple[str, int], int]) -> None:
    """Commit offsets of a group that has no members afterwards."""
    with closing(KafkaConsumer(bootstrap_servers=address, group_id=group)) as consumer:
        consumer.commit({TopicPartition(*key): OffsetAndMetadata(offset, "", -1) for key, offset in offsets.items()})


@pytest.fixture
def visit(chromium: Browser, shop: Served) -> Iterator[BrowserContext]:
    yield from window(chromium, shop.console, *SIZES["desk"])


def test_find_the_order_with_id_17(visit: BrowserContext) -> None:
    clicks = Clicks(visit.new_page())
    clicks.find("orders")
    clicks.link("Records")
    clicks.type("Field", "$.order.id")
    clicks.type_and_enter("Value", "17")
    expect(clicks.shown.locator("#rows tr")).to_have_count(1)
    expect(clicks.shown.locator("#rows")).to_contain_text("customer-17")


def test_why_is_the_ledger_stuck(visit: BrowserContext) -> None:
    """A transaction that nobody ends holds it back."""
    clicks = Clicks(visit.new_page())
    clicks.find("ledger")
    clicks.link("held back by a transaction")
    expect(clicks.shown.get_by_role("heading", name="payments/1")).to_be_visible()
    expect(clicks.shown).to_contain_text("Ongoing")
    expect(clicks.shown.get_by_role("row").filter(has_text="payments")).to_contain_text("payments-0")


def test_who_writes_to_orders(visit: BrowserContext) -> None:
    clicks = Clicks(visit.new_page())
    clicks.find("orders")
    clicks.link("Who writes")
    expect(clicks.shown.get_by_role("row").filter(has_text="web-shop")).to_have_count(3)


def test_replay_yesterday_into_a_test_topic(visit: BrowserContext, shop: Served) -> None:
    clicks = Clicks(visit.new_page())
    clicks.find("orders")
    clicks.link("Copy records…")
    clicks.type("To the topic", "orders-test")
    clicks.button("Yesterday")
    expect(clicks.shown).to_contain_text(f"{ORDERS // 2} records of orders")
    expect(clicks.shown.locator("pre.command")).to_contain_text("ottla consume")
    clicks.button(f"Copy {ORDERS // 2} records")
    expect(clicks.shown).to_contain_text(f"{ORDERS // 2} records of orders were written to orders-test")
    expect(clicks.shown).to_contain_text("That is all of it.")
    with closing(KafkaConsumer(bootstrap_servers=shop.address)) as consumer:
        ends = consumer.end_offsets([TopicPartition("orders-test", number) for number in range(3)])
    assert sum(ends.values()) == ORDERS // 2


def test_set_retention_to_one_day(visit: BrowserContext, shop: Served) -> None:
    clicks = Clicks(visit.new_page())
    clicks.find("payments")
    clicks.link("without end")
    clicks.type_and_enter("Value", str(DAY_MS))
    expect(clicks.shown.get_by_role("row").filter(has_text="retention.ms")).to_contain_text(str(DAY_MS))
    clicks.button("Change setting")
    expect(clicks.shown).to_contain_text(f"and is {DAY_MS}.")


def test_what_was_changed_in_a_topics_settings(visit: BrowserContext, shop: Served) -> None:
    make_topic(shop, "changed", "max.message.bytes", "1234")
    clicks = Clicks(visit.new_page())
    clicks.find("changed")
    clicks.link("Settings")
    clicks.link("Only those of this topic")
    expect(clicks.shown.locator("tbody tr")).to_have_count(1)
    expect(clicks.shown.locator("tbody tr")).to_contain_text("max.message.bytes")


def make_topic(served: Served, name: str, setting: str, value: str) -> None:
    with closing(Connection(served.address)) as client:
        configs = [CreatableTopicConfig(name=setting, value=value)]
        topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1, configs=configs)
        client.call(CreateTopicsRequest(topics=[topic]), 5)
    # The console has the list of topics for a second, or longer on a busy machine.
    eventually(lambda: urlopen(f"{served.console}/find?q={name}", timeout=30).url.endswith(f"/topics/{name}"))


def test_which_client_gets_errors_and_why(visit: BrowserContext, shop: Served) -> None:
    make_topic(shop, "imports", "max.message.bytes", "100")
    with (
        closing(KafkaProducer(bootstrap_servers=shop.address, client_id="old-importer")) as producer,
        pytest.raises(kafka.errors.MessageSizeTooLargeError),
    ):
        producer.send("imports", b"x" * 500).get(timeout=60)
    clicks = Clicks(visit.new_page())
    row = clicks.shown.get_by_role("row").filter(has_text="old-importer")
    expect(row).to_contain_text("MESSAGE_TOO_LARGE")
    expect(row.locator("td.why")).not_to_be_empty()
    clicks.link("old-importer")
    clicks.link_of_row("MESSAGE_TOO_LARGE", "Produce")
    expect(clicks.shown).to_contain_text("imports")


def test_skip_a_poison_record(visit: BrowserContext, shop: Served) -> None:
    commit(shop.address, "mailer", {("orders", number): 5 for number in range(3)})
    clicks = Clicks(visit.new_page())
    clicks.find("mailer")
    clicks.link_of_row("orders 1", "Skip one…")
    expect(clicks.shown.get_by_role("row").filter(has_text="orders-1").locator("td")).to_have_text(
        ["5", "0", "20", "6"]
    )
    clicks.button("Reset offsets")
    expect(clicks.shown.get_by_role("status").last).to_contain_text("1 offset is skipped")
    with closing(KafkaConsumer(bootstrap_servers=shop.address, group_id="mailer")) as consumer:
        assert [consumer.committed(TopicPartition("orders", number)) for number in range(3)] == [5, 6, 5]


def test_which_partition_is_the_biggest_and_where(visit: BrowserContext) -> None:
    clicks = Clicks(visit.new_page())
    clicks.menu("Topics")
    clicks.link("Size")
    clicks.link_of_row("orders", "orders")
    fact = clicks.shown.locator("dl.facts div").filter(has_text="Largest partition")
    expect(fact).to_contain_text(re.compile(r"1: [\d.]+ KiB, leader 1"))
    clicks.link("1")
    expect(clicks.shown.get_by_role("heading", name="Log of orders-1")).to_be_visible()
    expect(clicks.shown.locator("dl.facts div").filter(has_text="Folder")).to_contain_text("shop")


def test_send_a_corrected_record_again(visit: BrowserContext, shop: Served) -> None:
    clicks = Clicks(visit.new_page())
    clicks.find("dead-letters")
    clicks.link("Records")
    clicks.link("Edit 0:0 and send it again")
    clicks.type("Topic", "corrected")
    clicks.type("Value", '{"order": {"id": 17}}')
    with closing(KafkaAdminClient(bootstrap_servers=shop.address)) as admin:
        admin.create_topics([NewTopic("corrected", 1, 1)])
    clicks.button("Send record")
    expect(clicks.shown).to_contain_text("The record is in corrected-0 at offset 0.")
    with closing(KafkaConsumer("corrected", bootstrap_servers=shop.address, auto_offset_reset="earliest")) as consumer:
        record = next(iter(consumer))
    assert (record.key, record.value) == (b"customer-17", b'{"order": {"id": 17}}')
    assert [*record.headers] == [("error", b"no number")]


def test_who_may_read_payroll(chromium: Browser, secured: Served) -> None:
    login = {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": "admin",
        "sasl_plain_password": "admins-secret",
    }
    with closing(KafkaAdminClient(bootstrap_servers=secured.address, **login)) as admin:
        admin.create_topics([NewTopic("payroll", 1, 1)])
        admin.create_acls([rule("User:alice", "payroll")])
    for context in window(chromium, secured.console, *SIZES["desk"]):
        page = context.new_page()
        page.goto("/")
        log_in(page, "admin", "admins-secret")
        expect(page.locator("#pages")).to_contain_text("admin")
        clicks = Clicks(page)
        clicks.find("payroll")
        clicks.link("Access rules")
        row = clicks.shown.get_by_role("row").filter(has_text="payroll")
        expect(row).to_contain_text("User:alice")
        expect(row).to_contain_text("READ")


def rule(user: str, topic: str) -> object:
    from kafka.admin import ACL, ACLOperation, ACLPermissionType, ResourcePattern, ResourceType

    return ACL(user, "*", ACLOperation.READ, ACLPermissionType.ALLOW, ResourcePattern(ResourceType.TOPIC, topic))


def test_why_is_billing_stuck(visit: BrowserContext) -> None:
    """The last one, for a group is without members for a minute before the overview says so."""
    clicks = Clicks(visit.new_page())
    finding = clicks.shown.locator(".findings li").filter(has_text="billing")
    expect(finding).to_contain_text("no member")
    clicks.link("billing")
    expect(clicks.shown).to_contain_text("Nobody reads for it: the lag grows with what is produced.")
