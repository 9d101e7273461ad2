"""Settings of OAUTHBEARER (KIP-768), each optionally with the prefix of a listener and of a mechanism."""

from __future__ import annotations

from ...base.settings import ConfigValueType, Settings, setting


class OauthbearerSettings(Settings):
    """Tokens of an identity provider, with which clients authenticate (SASL's OAUTHBEARER)."""

    jwks_endpoint_url: str | None = setting(
        "sasl.oauthbearer.jwks.endpoint.url",
        default=None,
        doc="Address of the provider's JSON Web Key Set: a file, http or https URL. Without it OAUTHBEARER "
        "accepts only unsigned tokens, and only if sasl.jaas.config has an option whose name begins with "
        "unsecured.",
    )
    jwks_endpoint_refresh_ms: int = setting(
        "sasl.oauthbearer.jwks.endpoint.refresh.ms",
        kind=ConfigValueType.LONG,
        default=3600 * 1000,
        at_least=1,
        doc="Interval at which the key set is read again. A token with an unknown key causes this at once.",
    )
    jwks_endpoint_retry_backoff_ms: int = setting(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
        kind=ConfigValueType.LONG,
        default=100,
        at_least=1,
        doc="Pause after a failed read of the key set. It doubles each time.",
    )
    jwks_endpoint_retry_backoff_max_ms: int = setting(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
        kind=ConfigValueType.LONG,
        default=10_000,
        at_least=1,
        doc="Time after a failure in which reading is retried. After it the previous keys stay in use.",
    )
    token_endpoint_url: str | None = setting(
        "sasl.oauthbearer.token.endpoint.url",
        default=None,
        doc="Source of this broker's token for other brokers. It is a file URL, or an http or https URL for a "
        "login with clientId, clientSecret and scope of sasl.jaas.config.",
    )
    server_callback_handler_class: str | None = setting(
        "sasl.server.callback.handler.class",
        kind=ConfigValueType.CLASS,
        default=None,
        doc="With OAUTHBEARER, Kafka's class for signed or for unsigned tokens, whichever fits the other "
        "settings. Other classes are refused.",
    )
    login_callback_handler_class: str | None = setting(
        "sasl.login.callback.handler.class",
        kind=ConfigValueType.CLASS,
        default=None,
        doc="The same for this broker's own token: Kafka's class for sasl.oauthbearer.token.endpoint.url, or the one for "
        "unsigned tokens.",
    )
    expected_audience: tuple[str, ...] = setting(
        "sasl.oauthbearer.expected.audience",
        default=(),
        doc="Audiences: a token must name one of them, or none if there are none here.",
    )
    expected_issuer: str | None = setting(
        "sasl.oauthbearer.expected.issuer", default=None, doc="The issuer that a token must name, if set."
    )
    clock_skew_seconds: int = setting(
        "sasl.oauthbearer.clock.skew.seconds",
        default=30,
        at_least=0,
        doc="Allowed difference between the provider's clock and this machine's.",
    )
    scope_claim_name: str = setting(
        "sasl.oauthbearer.scope.claim.name", default="scope", doc="The claim with a token's scope."
    )
    sub_claim_name: str = setting(
        "sasl.oauthbearer.sub.claim.name", default="sub", doc="The claim that names the principal."
    )
