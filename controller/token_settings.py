"""Settings of delegation tokens (KIP-48)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..base.settings import ConfigValueType, Settings, setting

if TYPE_CHECKING:
    from ..security.delegation import Lifetimes


class DelegationTokenSettings(Settings):
    """Delegation tokens, with which a client authenticates in a user's name."""

    secret_key: str | None = setting(
        "delegation.token.secret.key",
        kind=ConfigValueType.PASSWORD,
        default=None,
        doc="Secret that the passwords of delegation tokens are made with, the same on all brokers; without it there are none.",
    )
    master_key: str | None = setting(
        "delegation.token.master.key",
        kind=ConfigValueType.PASSWORD,
        default=None,
        doc="An older name of delegation.token.secret.key, which is used if both are given.",
    )
    max_lifetime_ms: int = setting(
        "delegation.token.max.lifetime.ms",
        kind=ConfigValueType.LONG,
        default=7 * 24 * 3600 * 1000,
        at_least=1,
        doc="How long a delegation token can be renewed.",
    )
    expiry_time_ms: int = setting(
        "delegation.token.expiry.time.ms",
        kind=ConfigValueType.LONG,
        default=24 * 3600 * 1000,
        at_least=1,
        doc="How long a delegation token is valid before it has to be renewed.",
    )
    expiry_check_interval_ms: int = setting(
        "delegation.token.expiry.check.interval.ms",
        kind=ConfigValueType.LONG,
        default=3600 * 1000,
        at_least=1,
        doc="How often expired delegation tokens are removed; no client can authenticate with them, removed or not.",
    )

    @property
    def secret(self) -> str | None:
        """The secret under either name; None where there are to be no tokens."""
        return self.secret_key or self.master_key or None

    @property
    def lifetimes(self) -> Lifetimes:
        from ..security.delegation import Lifetimes  # few brokers have tokens

        return Lifetimes(self.max_lifetime_ms, self.expiry_time_ms)
