"""Settings of delegation tokens (KIP-48)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..base.settings import ConfigValueType, Settings, setting

if TYPE_CHECKING:
    from ..security.delegation import Lifetimes


class DelegationTokenSettings(Settings):
    """Delegation tokens, with which clients authenticate as a user."""

    secret_key: str | None = setting(
        "delegation.token.secret.key",
        kind=ConfigValueType.PASSWORD,
        default=None,
        doc="Secret from which the passwords of delegation tokens are derived, the same on all brokers. Without "
        "it there are no tokens.",
    )
    master_key: str | None = setting(
        "delegation.token.master.key",
        kind=ConfigValueType.PASSWORD,
        default=None,
        doc="The older name of delegation.token.secret.key, which takes precedence.",
    )
    max_lifetime_ms: int = setting(
        "delegation.token.max.lifetime.ms",
        kind=ConfigValueType.LONG,
        default=7 * 24 * 3600 * 1000,
        at_least=1,
        doc="Longest lifetime of a delegation token, with renewals.",
    )
    expiry_time_ms: int = setting(
        "delegation.token.expiry.time.ms",
        kind=ConfigValueType.LONG,
        default=24 * 3600 * 1000,
        at_least=1,
        doc="Time after which a delegation token must be renewed.",
    )
    expiry_check_interval_ms: int = setting(
        "delegation.token.expiry.check.interval.ms",
        kind=ConfigValueType.LONG,
        default=3600 * 1000,
        at_least=1,
        doc="Interval at which expired delegation tokens are removed. Clients cannot authenticate with them in "
        "the meantime.",
    )

    @property
    def secret(self) -> str | None:
        """The secret under either name; None for no tokens."""
        return self.secret_key or self.master_key or None

    @property
    def lifetimes(self) -> Lifetimes:
        from ..security.delegation import Lifetimes  # few brokers have tokens

        return Lifetimes(self.max_lifetime_ms, self.expiry_time_ms)
