"""A broker with users, passwords and access rules, for tests of authorization in the console."""

from __future__ import annotations

from ottla.security.acl import AclBinding, AclEntry, Operation, Permission, ResourcePattern, ResourceType
from ottla.security.authorizer_settings import ACL_AUTHORIZER
from ottla.security.entities import USERS, Entity
from ottla.security.scram import ScramMechanism, new_credential

from ..memory_broker import HOST, PORT
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
    assert await browser.services.commands.create_acls([AclBinding(pattern, entry) for entry in entries]) == [
        None
    ] * len(entries)


async def set_password(browser: Browsing, user: str, password: str | None) -> None:
    """Set a SCRAM password; None removes the user."""
    mechanism = ScramMechanism.SHA_256
    credentials = {} if password is None else {mechanism.sasl_name: new_credential(mechanism, password).render()}
    await browser.services.cluster.configs.change(Entity(USERS, user), lambda before: credentials)
