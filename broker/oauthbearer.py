"""OAUTHBEARER on a listener: which tokens its settings accept, and what this broker shows to others.

With ``sasl.oauthbearer.jwks.endpoint.url`` tokens are those that the identity provider has signed. Without it anybody can
make up tokens, which is for tests; unlike Kafka, whose default this is, Ottla does so only if asked: by an option of the JAAS
text whose name begins with ``unsecured``, or by the name of Kafka's class for it. The names of Kafka's two classes are taken
for what they stand for; there are no others.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from ..base.seams import Clock, SystemClock, Workers
from ..base.settings import SettingError
from ..handlers.services import Services
from ..security.jaas import OAUTHBEARER_MODULE
from ..security.jwks import JwksError
from ..security.oauthbearer import OAUTHBEARER, OAuthBearerClient, OAuthBearerServer
from ..security.oauthbearer_tokens import (
    BearerToken,
    SignedTokenRules,
    SignedTokens,
    UnsecuredTokenRules,
    UnsecuredTokens,
    login_extensions,
    unsecured_token,
)
from ..security.sasl import AuthenticationError, SaslClient, SaslServer
from .jwks_source import JwksSource
from .listener_config import ListenerConfig
from .oauthbearer_settings import OauthbearerSettings
from .sasl_mechanisms import Background, jaas_property, login_module

logger = logging.getLogger(__name__)

_HANDLER = "sasl.server.callback.handler.class"
_PACKAGE = "org.apache.kafka.common.security.oauthbearer."
_SIGNED_HANDLERS = (
    _PACKAGE + "OAuthBearerValidatorCallbackHandler",
    _PACKAGE + "secured.OAuthBearerValidatorCallbackHandler",
)
_UNSECURED_HANDLER = _PACKAGE + "internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"

Validate = Callable[[str], BearerToken]


class OAuthBearerMechanism:
    """One listener's."""

    def __init__(self, config: ListenerConfig) -> None:
        module = login_module(config, OAUTHBEARER, OAUTHBEARER_MODULE)
        self._options = dict(module.options) if module is not None else {}
        self._settings = config.settings(OauthbearerSettings, OAUTHBEARER)
        self._listener = config.listener
        self._source: JwksSource | None = None
        self._rules = UnsecuredTokenRules()
        self._validate: Validate | None = None
        if self._settings.jwks_endpoint_url is not None:
            self._source = _source(self._settings, self._settings.jwks_endpoint_url)
        else:
            self._rules = self._unsecured_rules(config)
        self._check_handler(config)

    @property
    def background(self) -> Background | None:
        """Reads the provider's keys again; where there are none, says once what that means."""
        return self._warn if self._source is None else self._source.run

    async def _warn(self, _workers: Workers) -> None:
        logger.warning(
            "Listener %s accepts OAUTHBEARER tokens that nobody has signed: anybody can be anybody there",
            self._listener,
        )

    def _unsecured_rules(self, config: ListenerConfig) -> UnsecuredTokenRules:
        is_asked = any(name.startswith("unsecured") for name in self._options)
        if not is_asked and config.value(_HANDLER, OAUTHBEARER) != _UNSECURED_HANDLER:
            raise SettingError(
                "sasl.oauthbearer.jwks.endpoint.url",
                "null",
                f"{OAUTHBEARER} needs the key set of an identity provider; tokens that nobody has signed, for tests, are taken "
                "when sasl.jaas.config has an option like unsecuredLoginStringClaim_sub",
            )
        try:
            return UnsecuredTokenRules.from_options(self._options)
        except ValueError as error:
            raise SettingError(jaas_property(config, OAUTHBEARER), "[hidden]", str(error)) from None

    def _check_handler(self, config: ListenerConfig) -> None:
        given = config.value(_HANDLER, OAUTHBEARER)
        expected = (_UNSECURED_HANDLER,) if self._source is None else _SIGNED_HANDLERS
        if given is not None and given not in expected:
            raise SettingError(_HANDLER, given, f"only {' and '.join(expected)} can be named here")

    def server(self, services: Services) -> SaslServer:
        if self._validate is None:
            self._validate = self._validator(services.clock)
        return OAuthBearerServer(self._validate)

    def _validator(self, clock: Clock) -> Validate:
        source, settings = self._source, self._settings
        if source is None:
            return UnsecuredTokens(self._rules, clock.now_ms).validate
        rules = SignedTokenRules(
            frozenset(settings.expected_audience),
            settings.expected_issuer,
            settings.clock_skew_seconds,
            settings.scope_claim_name,
            settings.sub_claim_name,
        )
        return SignedTokens(rules, lambda: source.keys, source.read_again, clock.now_ms).validate

    def client(self) -> SaslClient:
        if self._source is not None:
            raise AuthenticationError("between brokers OAUTHBEARER takes tokens that nobody has signed, and no others")
        try:
            token = unsecured_token(self._options, SystemClock().now_ms())
        except ValueError as error:
            raise AuthenticationError(str(error)) from None
        return OAuthBearerClient(token, login_extensions(self._options))


def _source(settings: OauthbearerSettings, url: str) -> JwksSource:
    """Raises SettingError: a file has to be there from the start, a provider may come later."""
    source = JwksSource(
        url,
        settings.jwks_endpoint_refresh_ms,
        settings.jwks_endpoint_retry_backoff_ms,
        settings.jwks_endpoint_retry_backoff_max_ms,
    )
    try:
        source.begin()
    except JwksError as error:
        raise SettingError("sasl.oauthbearer.jwks.endpoint.url", url, str(error)) from None
    return source
