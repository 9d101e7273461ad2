"""A broker with users, passwords and access rules, for tests of authorization in the console."""

from __future__ import annotations

import uuid

from ottla.controller.quorum.active.result import ControllerResult
from ottla.controller.quorum.snapshot_records import acl_record, credential_record
from ottla.security.acl import AclBinding, AclEntry, Operation, Permission, ResourcePattern, ResourceType
from ottla.security.authorizer_settings import ACL_AUTHORIZER
from ottla.security.scram import ScramMechanism, new_credential
from ottla.testing.controller_commands import wait_applied
from ottla.wire.messages.access_records import RemoveAccessControlEntryRecord, RemoveUserScramCredentialRecord
from ottla.wire.schema import Message

from ...helpers.memory_broker import HOST, PORT
from .browsing import Answer, Browsing

USERS_OF_PLAIN = 'user_admin="admins-secret" user_alice="alices-secret" user_bob="bobs-secret"'
SECURED = {
    "listeners": f"SASL://{HOST}:{PORT}",
    "listener.security.protocol.map": "SASL:SASL_PLAINTEXT",
    "inter.broker.listener.name": "SASL",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    "listener.name.sasl.plain.sasl.jaas.config": (
        f"org.apache.kafka.common.security.plain.PlainLoginModule required {USERS_OF_PLAIN};"
    ),
    "authorizer.class.name": ACL_AUTHORIZER,
    "super.users": "User:admin",
    "connection.failed.authentication.delay.ms": "0",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
}
WRITES = {**SECURED, "console.allow.writes": "true"}


async def log_in(browser: Browsing, user: str, password: str | None = None, following: str = "") -> Answer:
    """Log in by the login page."""
    page = (await browser.get(f"/login?next={following}")).page
    fields = {**page.button_form(), "user": user, "password": password or f"{user}s-secret"}
    return await browser.post("/login", fields)


async def allow(
    browser: Browsing, user: str, operation: Operation, resource_type: ResourceType, name: str, *more: Operation
) -> None:
    pattern = ResourcePattern(resource_type, name)
    entries = [AclEntry(f"User:{user}", Permission.ALLOW, "*", each) for each in (operation, *more)]
    await write(browser, *(acl_record(uuid.uuid4().bytes, AclBinding(pattern, entry)) for entry in entries))


async def forbid(browser: Browsing, resource_type: ResourceType, name: str) -> None:
    """Remove all rules of a resource."""
    pattern = ResourcePattern(resource_type, name)
    found = [acl_id for acl_id, (at, _) in browser.services.metadata.image.acl_ids.newest().items() if at == pattern]
    assert found
    await write(browser, *(RemoveAccessControlEntryRecord(id=acl_id) for acl_id in found))


async def set_password(browser: Browsing, user: str, password: str | None) -> None:
    """Set a SCRAM password; None removes the user."""
    mechanism = ScramMechanism.SHA_256
    if password is None:
        await write(browser, RemoveUserScramCredentialRecord(name=user, mechanism=mechanism))
    else:
        await write(browser, credential_record(user, mechanism, new_credential(mechanism, password)))


async def write(browser: Browsing, *records: Message) -> None:
    """Have the broker's controller write records; returns once the broker knows of them."""
    assert browser.server.controller is not None
    controller = browser.server.controller.node
    versioned = [(record, 0) for record in records]
    await controller.carry_out(lambda context: ControllerResult(versioned, response=True))
    await wait_applied(controller, browser.services.metadata)
