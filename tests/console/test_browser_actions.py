"""Logging in, and changing something, as a person does it in Chromium; at the size of a desk and of a pocket."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.structs import OffsetAndMetadata

from ottla.compat_tests.wire_client import Connection
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.list_groups import ListGroupsRequest

from .helpers.served import Served
from .helpers.windows import SIZES, log_in, open_pages, window

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (tools/setup.sh test)")
if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext
expect = playwright.expect
pytestmark = pytest.mark.slow

_NUMBERS = itertools.count()


@pytest.fixture(params=SIZES)
def outside(request: pytest.FixtureRequest, chromium: Browser, secured: Served) -> Iterator[BrowserContext]:
    """A window in which nobody has logged in."""
    yield from window(
        chromium, secured.console, *SIZES[request.param], expected="the server responded with a status of 4"
    )


def test_log_in_and_out(outside: BrowserContext) -> None:
    page = outside.new_page()
    page.goto("/groups?q=a")
    log_in(page, "admin", "wrong")
    expect(page.get_by_role("alert")).to_have_text("The user name or the password is wrong.")
    page.goto("/groups?q=a")
    log_in(page, "admin", "admins-secret")
    expect(page).to_have_url(re.compile(r"/groups\?q=a$"))
    expect(page.locator("#pages")).to_contain_text("admin")
    other = outside.new_page()
    other.goto("/")
    expect(other.get_by_role("heading", level=1)).to_be_visible()
    open_pages(page)
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_role("heading", name="Log in")).to_be_visible()
    expect(other.get_by_role("heading", name="Log in")).to_be_visible()  # what it asks for every few seconds tells it
    other.goto("/topics")
    expect(other.get_by_role("heading", name="Log in")).to_be_visible()


def test_a_user_who_may_not(outside: BrowserContext) -> None:
    admin = outside.new_page()
    admin.goto("/create-topic?name=hidden")
    log_in(admin, "admin", "admins-secret")
    if admin.get_by_role("button", name="Create topic").count():  # at the second size it is there already
        admin.get_by_role("button", name="Create topic").click()
        expect(admin.get_by_role("status").last).to_have_text(
            re.compile("The topic hidden was made, with 1 partition, 1 replica of each")
        )
    admin.goto("/topics")
    expect(admin.get_by_role("link", name="hidden", exact=True)).to_be_visible()
    open_pages(admin)
    admin.get_by_role("button", name="Log out").click()
    log_in(admin, "alice", "alices-secret")
    expect(admin).to_have_url(re.compile("/topics$"))
    expect(admin.get_by_text("0 topics")).to_be_visible()
    admin.goto("/topics/hidden")
    expect(admin.get_by_text("TOPIC_AUTHORIZATION_FAILED")).to_be_visible()
    admin.goto("/topics/hidden/delete")
    expect(admin.get_by_role("alert")).to_contain_text("TOPIC_AUTHORIZATION_FAILED")


def make_topic(served: Served, beginning: str) -> str:
    """A topic of a name that was not there before."""
    name = f"{beginning}-{next(_NUMBERS)}"
    with closing(Connection(served.address)) as client:
        topic = CreatableTopic(name=name, num_partitions=2, replication_factor=1)
        client.call(CreateTopicsRequest(topics=[topic]), 5)
    return name


def test_a_topic_is_deleted_by_typing_its_name(context: BrowserContext, served: Served) -> None:
    name = make_topic(served, "to-delete")
    page = context.new_page()
    page.goto(f"/topics/{name}")
    page.get_by_role("link", name="Delete the topic…").click()
    expect(page.get_by_text("ottla topics delete")).to_be_visible()
    page.get_by_label(f"Type {name} to confirm").fill(name)
    page.get_by_role("button", name="Delete topic").click()
    expect(page.get_by_role("status").last).to_have_text(f"The topic {name} was deleted, with its 2 partitions.")
    page.goto(f"/topics?q={name}")
    expect(page.get_by_text("No topic has that in its name.")).to_be_visible()


def test_offsets_are_reset_after_a_look(context: BrowserContext, served: Served) -> None:
    name = make_topic(served, "to-reset")
    with closing(KafkaProducer(bootstrap_servers=served.address)) as producer:
        for _ in range(5):
            producer.send(name, b"v", partition=0)
    where = TopicPartition(name, 0)
    with closing(KafkaConsumer(bootstrap_servers=served.address, group_id=name)) as consumer:
        consumer.commit({where: OffsetAndMetadata(5, "", -1)})
    page = context.new_page()
    page.goto(f"/group?id={name}")
    page.get_by_role("link", name="Reset offsets…").click()
    page.get_by_label("Where to").select_option("shift")
    page.get_by_label("Offset, number or time").fill("-3")
    page.get_by_role("button", name="Preview").click()
    row = page.get_by_role("row").filter(has_text=f"{name}-0")
    expect(row.locator("td")).to_have_text(["5", "0", "5", "2"])
    expect(page.get_by_text("kafka-consumer-groups.sh")).to_be_visible()
    page.get_by_role("button", name="Reset offsets").click()
    expect(page.get_by_role("status").last).to_contain_text("in 1 partition: 3 offsets are read again.")
    with closing(KafkaConsumer(bootstrap_servers=served.address, group_id=name)) as consumer:
        assert consumer.committed(where) == 2


def test_a_transaction_is_aborted(context: BrowserContext, served: Served) -> None:
    name = make_topic(served, "to-abort")
    producer = KafkaProducer(bootstrap_servers=served.address, transactional_id=name)
    producer.init_transactions()
    producer.begin_transaction()
    producer.send(name, b"v", partition=0).get(timeout=30)
    page = context.new_page()
    page.goto(f"/topics/{name}")
    page.get_by_role("link", name="Abort…").first.click()
    page.get_by_role("button", name="Abort transaction").click()
    expect(page.get_by_role("status").last).to_contain_text("was aborted.")
    page.goto(f"/topics/{name}")
    expect(page.get_by_role("link", name="Abort…")).to_have_count(0)
    producer.close(timeout=0)


def test_a_client_is_disconnected(context: BrowserContext, served: Served) -> None:
    client = Connection(served.address)
    client.call(ListGroupsRequest(), 4)
    page = context.new_page()
    page.goto(f"/connections?q=:{client.socket.getsockname()[1]}")
    page.get_by_role("link", name="Disconnect…").click()
    page.get_by_role("button", name="Disconnect").click()
    expect(page.get_by_role("status").last).to_contain_text("1 connection was closed")
    with pytest.raises((OSError, EOFError, AssertionError)):
        client.call(ListGroupsRequest(), 4)
    client.close()
