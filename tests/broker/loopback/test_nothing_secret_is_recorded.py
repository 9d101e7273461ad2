"""Recordings of protocol errors have no password in them: nothing of an authentication, and of requests with secrets the head."""

from __future__ import annotations

import struct

import pytest
import trio

from ottla.base.memory_network import MemoryConnection
from ottla.base.seams import InlineWorkers, SystemClock
from ottla.broker.listeners.flight_recorder import FlightRecorder
from ottla.broker.listeners.monitor import Monitor
from ottla.log.memory_disk import MemoryDisk
from ottla.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.wire.messages.renew_delegation_token import RenewDelegationTokenRequest
from ottla.wire.recorded import decoded_recording
from ottla.wire.schema import Message

from ...helpers.memory_broker import frame
from ..helpers.guarded_connection import LIMIT, framed, guarded, heard
from ..helpers.protocol_errors import GARBAGE, HastyClock

SECRET = b"correct horse battery staple"


def recordings(disk: MemoryDisk) -> list[bytes]:
    return [disk.read_file(f"/data/{name}") for name in disk.names("/data")]


def with_recorder(monitor: Monitor) -> MemoryDisk:
    disk = MemoryDisk()
    disk.make_dir("/data")
    monitor.recorder = FlightRecorder(disk, "/data", HastyClock(), InlineWorkers())
    return disk


async def closed(client: MemoryConnection) -> None:
    with trio.fail_after(20):
        while await client.receive():
            pass


async def test_nothing_of_an_authentication_is_recorded() -> None:
    async with guarded() as (client, _, monitor):
        disk = with_recorder(monitor)
        await client.send([framed(SECRET) + framed(b"open") + frame(ApiVersionsRequest(), 0, 7) + GARBAGE])
        assert [await heard(client) for _ in range(2)] == [SECRET, b"open"]
        await closed(client)
    (recorded,) = recordings(disk)
    assert SECRET.hex() not in recorded.decode()
    shown = decoded_recording(recorded.decode())["requests"]
    assert [request["header"]["correlation_id"] for request in shown[-2:]] == [7, 666]


async def test_nothing_of_a_frame_that_is_too_large_then_is_recorded() -> None:
    async with guarded() as (client, _, monitor):
        disk = with_recorder(monitor)
        await client.send([struct.pack(">i", LIMIT + 1) + SECRET])
        await closed(client)
    (recorded,) = recordings(disk)
    assert SECRET.hex() not in recorded.decode()


@pytest.mark.parametrize(
    ("request_with_secret", "version"),
    [
        (
            AlterUserScramCredentialsRequest(
                upsertions=[
                    ScramCredentialUpsertion(
                        name="alice", mechanism=1, iterations=4096, salt=b"salt", salted_password=SECRET
                    )
                ]
            ),
            0,
        ),
        (RenewDelegationTokenRequest(hmac=SECRET, renew_period_ms=1), 2),
        (
            IncrementalAlterConfigsRequest(
                resources=[
                    AlterConfigsResource(
                        resource_type=4,
                        resource_name="1",
                        configs=[AlterableConfig(name="p", config_operation=0, value=SECRET.decode())],
                    )
                ]
            ),
            1,
        ),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_of_requests_with_secrets_the_head_is_recorded(request_with_secret: Message, version: int) -> None:
    disk = MemoryDisk()
    disk.make_dir("/data")
    recorder = FlightRecorder(disk, "/data", SystemClock(), InlineWorkers())
    sent = frame(request_with_secret, version, 5) + GARBAGE
    await recorder.record("test:1", "PLAINTEXT", "garbage", b"", sent)
    (recorded,) = recordings(disk)
    assert SECRET.hex() not in recorded.decode()
    first, _ = decoded_recording(recorded.decode())["requests"]
    assert bytes.fromhex(first["hex"])[:2] == request_with_secret.api_key.to_bytes(2)
