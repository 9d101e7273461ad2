"""The authorizer and the delegation token passwords of a node, built from its settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...base.config import Config
from ...base.seams import Clock
from ...controller.token_settings import DelegationTokenSettings
from ...metadata.published import PublishedMetadata
from ...security.authorizer_settings import AuthorizerSettings, super_users

if TYPE_CHECKING:
    from ...controller.token_passwords import TokenPasswords
    from ...security.authorizer import Authorizer
    from ...security.principal import Principal


def make_token_passwords(config: Config, metadata: PublishedMetadata, clock: Clock) -> TokenPasswords | None:
    """None where there are no delegation tokens."""
    secret = config.settings(DelegationTokenSettings).secret
    if secret is None:
        return None
    from ...controller.token_passwords import TokenPasswords  # slow to import, and few nodes need it

    return TokenPasswords(secret, metadata, clock)


def make_authorizer(config: Config, clock: Clock, own_node: Principal | None = None) -> Authorizer | None:
    """None where none is configured. It does not know any rule yet. ``own_node`` may do everything."""
    settings = config.settings(AuthorizerSettings)
    if not settings.authorizer_class_name:
        return None
    from ...security.acl_rules import AclRules  # likewise
    from ...security.audit import AuditLog
    from ...security.authorizer import Authorizer

    rules = AclRules(allow_everyone_if_no_acl_found=settings.allow_everyone_if_no_acl_found)
    users = super_users(settings.super_users)
    return Authorizer(rules, users if own_node is None else users | {str(own_node)}, AuditLog(clock.elapsed))
