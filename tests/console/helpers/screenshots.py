"""``make screenshots``: what each page of the console looks like, in docs/console, and docs/console.md with all of them.

A broker of its own is started, with what the tests in Chromium have, and each kind of page is shown once (``every_page``).
"""

from __future__ import annotations

import base64
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

from kafka import KafkaAdminClient, KafkaProducer

import ottla
from ottla.compat_tests.wire_client import Connection
from ottla.log.disk import OsDisk
from ottla.wire.messages.create_topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest

from .alone_process import console_at
from .every_page import FIRST_OF_CONNECT, every_page, kind_of
from .recorded_connect import recorded_connect
from .served import fill, serving, serving_users

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

DOCS = Path(__file__).resolve().parents[3] / "docs"
FOLDER = DOCS / "console"
PAGE = DOCS / "console.md"
BEGIN, END = "<!-- screenshots -->\n", "<!-- end of screenshots -->\n"
MOST_BYTES = 60_000
_SIZE = {"width": 1280, "height": 800}
_PHONE = {"width": 420, "height": 800}
_SETTLED_MS = 5_000
"""After this time the charts have more than one point."""
_DRAWN_MS = 400
"""After this time the side bar has its state, and charts their size."""
_QUALITIES = (0.72, 0.5, 0.3)
_AS_WEBP = """async ([png, quality]) => {
    const image = new Image();
    image.src = "data:image/png;base64," + png;
    await image.decode();
    const canvas = document.createElement("canvas");
    canvas.width = image.width;
    canvas.height = image.height;
    canvas.getContext("2d").drawImage(image, 0, 0);
    return canvas.toDataURL("image/webp", quality).split(",")[1];
}"""


def name_of(kind: str) -> str:
    """A file's name for a kind of page: ``topics-one-records`` for ``/topics/*/records``."""
    return "-".join(re.findall(r"[a-z-]+", kind.replace("*", "one").replace("#", "one"))) or "overview"


def take(browser: Browser, console: str, pages: Mapping[str, str]) -> list[tuple[str, str]]:
    """Write two pictures of each page, by its kind; the names of the pictures, and the headings of the pages."""
    context = browser.new_context(viewport=_SIZE, base_url=console, color_scheme="light", locale="en-GB")
    page, converter = context.new_page(), browser.new_page()
    taken = []
    for kind, address in pages.items():
        page.goto(address)
        page.evaluate("document.querySelectorAll('details').forEach(each => each.removeAttribute('open'))")
        if kind == "/":
            page.wait_for_timeout(_SETTLED_MS)
        heading = page.locator("h1").first.inner_text()
        for size, end in ((_PHONE, "-phone"), (_SIZE, "")):
            page.set_viewport_size(size)
            (FOLDER / f"{name_of(kind)}{end}.webp").write_bytes(_picture(page, converter))
        taken.append((name_of(kind), heading))
    return taken


def _picture(page: Page, converter: Page) -> bytes:
    """What is seen of the page, as WebP of at most ``MOST_BYTES`` if it can be made so small."""
    page.wait_for_timeout(_DRAWN_MS)
    png = base64.b64encode(page.screenshot()).decode()
    picture = b""
    for quality in _QUALITIES:
        picture = base64.b64decode(converter.evaluate(_AS_WEBP, [png, quality]))
        if len(picture) <= MOST_BYTES:
            break
    return picture


@contextmanager
def balancing() -> Iterator[str]:
    """The console of a cluster that has got a third broker, and a topic on the first two."""
    with patch.object(OsDisk, "space", lambda disk, path: (1 << 40, 1 << 39)), ottla.Cluster(3) as cluster:
        with closing(Connection(cluster.brokers[cluster.controller() or 1].bootstrap_servers)) as client:
            assignments = [
                CreatableReplicaAssignment(partition_index=number, broker_ids=[1 + number % 2, 2 - number % 2])
                for number in range(6)
            ]
            topic = CreatableTopic(name="orders", num_partitions=-1, replication_factor=-1, assignments=assignments)
            client.call(CreateTopicsRequest(topics=[topic]), 5)
        with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers) as producer:
            for number in range(6):
                producer.send("orders", b"x" * (100_000 + 50_000 * number), partition=number)
        with console_at(cluster.bootstrap_servers) as console:
            yield console


@contextmanager
def connecting(bootstrap: str) -> Iterator[str]:
    """The console of a cluster with the connectors that were recorded."""
    with recorded_connect() as connect, closing(KafkaAdminClient(bootstrap_servers=bootstrap)) as client:
        connect.answers["GET /"][1]["kafka_cluster_id"] = client.describe_cluster()["cluster_id"]
        with console_at(bootstrap, "--allow-writes", "--connect-url", connect.url) as console:
            yield console


def main() -> None:
    from playwright.sync_api import sync_playwright

    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    with tempfile.TemporaryDirectory(prefix="ottla-screenshots-") as folder, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        with serving(Path(folder, "open")) as served:
            fill(served.address)
            pages = every_page(served.console)
            del pages["/cluster/plan"]  # of one broker there is nothing to plan
            taken = take(browser, served.console, pages)
            with connecting(served.address) as console:
                taken += take(browser, console, {kind_of(address): address for address in FIRST_OF_CONNECT})
        with balancing() as console:
            taken += take(browser, console, {"/cluster/plan": "/cluster/plan"})
        users = Path(folder, "users")
        users.mkdir()
        with serving_users(users) as served:
            taken += take(browser, served.console, {"/login": "/login"})
        browser.close()
    text = PAGE.read_text()
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    rows = (f"| ![{text}](console/{name}.webp) | ![](console/{name}-phone.webp) |\n" for name, text in taken)
    PAGE.write_text(f"{before}{BEGIN}\n| 1280 pixels | 420 pixels |\n|---|---|\n{''.join(rows)}\n{END}{after}")
    for file in sorted(FOLDER.iterdir()):
        size = file.stat().st_size
        print(f"{size:>7,} {file.name}")
        assert size <= MOST_BYTES, f"{file.name} is too large for the documentation"


if __name__ == "__main__":
    main()
