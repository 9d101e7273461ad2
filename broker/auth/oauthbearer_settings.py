"""Settings of OAUTHBEARER (KIP-768), each optionally with the prefix of a listener and of a mechanism."""

from __future__ import annotations

from ...base.settings import ConfigValueType, Settings, setting


class OauthbearerSettings(Settings):
    """Tokens of an identity provider, with which clients authenticate (SASL's OAUTHBEARER)."""

    jwks_endpoint_url: str | None = setting(
        "sasl.oauthbearer.jwks.endpoint.url",
        default=None,
        doc="Where the provider's JSON Web Key Set is: a file, http or https URL. Without it OAUTHBEARER takes tokens "
        "without a signature, and only if sasl.jaas.config asks for them with an option whose name begins with unsecured.",
    )
    jwks_endpoint_refresh_ms: int = setting(
        "sasl.oauthbearer.jwks.endpoint.refresh.ms",
        kind=ConfigValueType.LONG,
        default=3600 * 1000,
        at_least=1,
        doc="How often the key set is read again; also when a token names an unknown key.",
    )
    jwks_endpoint_retry_backoff_ms: int = setting(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
        kind=ConfigValueType.LONG,
        default=100,
        at_least=1,
        doc="How long after a failure the key set is read again; twice as long each time.",
    )
    jwks_endpoint_retry_backoff_max_ms: int = setting(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
        kind=ConfigValueType.LONG,
        default=10_000,
        at_least=1,
        doc="For how long it is tried again after a failure; then the keys that were read before stay in use.",
    )
    token_endpoint_url: str | None = setting(
        "sasl.oauthbearer.token.endpoint.url",
        default=None,
        doc="Where this broker gets its token for other brokers: a file URL, or an http or https URL at which it logs in "
        "with clientId, clientSecret and, if given, scope of sasl.jaas.config.",
    )
    server_callback_handler_class: str | None = setting(
        "sasl.server.callback.handler.class",
        kind=ConfigValueType.CLASS,
        default=None,
        doc="With OAUTHBEARER the name of Kafka's class for signed tokens, or of the one for unsigned tokens, whichever fits "
        "the other settings; no other class can be named.",
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
        doc="The audiences of which a token has to name one; without any, a token must not name one.",
    )
    expected_issuer: str | None = setting(
        "sasl.oauthbearer.expected.issuer", default=None, doc="The issuer that a token has to name, if this is given."
    )
    clock_skew_seconds: int = setting(
        "sasl.oauthbearer.clock.skew.seconds",
        default=30,
        at_least=0,
        doc="By how much the provider's clock and this machine's may differ.",
    )
    scope_claim_name: str = setting(
        "sasl.oauthbearer.scope.claim.name", default="scope", doc="The claim that has a token's scope."
    )
    sub_claim_name: str = setting(
        "sasl.oauthbearer.sub.claim.name", default="sub", doc="The claim that names the principal."
    )
