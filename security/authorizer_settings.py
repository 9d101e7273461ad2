"""Settings of the authorizer."""

from __future__ import annotations

from ..base.settings import ConfigValueType, Settings, setting
from .principal import parse_principal

ACL_AUTHORIZER = "kafka.security.authorizer.AclAuthorizer"
STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


def super_users(text: str) -> frozenset[str]:
    """The principals of ``super.users``, separated by semicolons, because names may have commas. Raises ValueError."""
    return frozenset(str(parse_principal(part.strip())) for part in text.split(";") if part.strip())


def _why_not_super_users(text: str) -> str | None:
    try:
        super_users(text)
    except ValueError as error:
        return str(error)
    return None


class AuthorizerSettings(Settings):
    """Access control, and the principals that are exempt from it."""

    authorizer_class_name: str = setting(
        "authorizer.class.name",
        default="",
        kind=ConfigValueType.CLASS,
        choices=("", ACL_AUTHORIZER, STANDARD_AUTHORIZER),
        doc="Kafka's name of its authorizer; empty: no access control. Both names select the same authorizer, "
        "with the rules of AclAuthorizer.",
    )
    super_users: str = setting(
        "super.users",
        default="",
        check=_why_not_super_users,
        doc="Principals with all rights, such as User:admin, separated by semicolons. Brokers of a cluster must "
        "be among them, or have CLUSTER_ACTION.",
    )
    allow_everyone_if_no_acl_found: bool = setting(
        "allow.everyone.if.no.acl.found",
        default=False,
        doc="Whether all principals may use a resource without access rules.",
    )
