"""The OAUTHBEARER mechanism of a listener: the tokens it accepts, and this broker's token for other brokers.

With ``sasl.oauthbearer.jwks.endpoint.url`` a token has to be signed by the identity provider. Without it tokens are unsigned: any
client can make them up, which is for tests only. That is Kafka's default, but Ottla accepts unsigned tokens only if the settings
say so: by an option of the JAAS text whose name begins with ``unsecured``, or by the name of Kafka's class for it. The names of
Kafka's classes select what they do in Kafka; other classes are refused.

At other brokers this one uses a token of ``sasl.oauthbearer.token.endpoint.url`` (``token_source``), or, where unsigned tokens
are accepted, one that it makes itself.
"""

from __future__ import annotations

import logging
import ssl
import urllib.parse
from collections.abc import Callable, Sequence

from ...base.seams import Clock, SystemClock, Workers
from ...base.settings import SettingError
from ...handlers.node_services import NodeServices
from ...security.jaas import OAUTHBEARER_MODULE
from ...security.jwks import JwksError
from ...security.oauthbearer import OAUTHBEARER, OAuthBearerClient, OAuthBearerServer
from ...security.oauthbearer_tokens import (
    BearerToken,
    SignedTokenRules,
    SignedTokens,
    UnsecuredTokenRules,
    UnsecuredTokens,
    login_extensions,
    unsecured_token,
)
from ...security.sasl import AuthenticationError, SaslClient, SaslServer
from ..listener_config import ListenerConfig
from .jwks_source import JwksSource
from .oauthbearer_settings import OauthbearerSettings
from .provider_http import provider_context
from .sasl_mechanism import Background, jaas_property, login_module, refuse_callbacks
from .token_source import TokenSource

logger = logging.getLogger(__name__)

_HANDLER = "sasl.server.callback.handler.class"
_LOGIN_HANDLER = "sasl.login.callback.handler.class"
_ENDPOINT = "sasl.oauthbearer.token.endpoint.url"
_PACKAGE = "org.apache.kafka.common.security.oauthbearer."
_SIGNED_HANDLERS = (
    _PACKAGE + "OAuthBearerValidatorCallbackHandler",
    _PACKAGE + "secured.OAuthBearerValidatorCallbackHandler",
)
_UNSECURED_HANDLER = _PACKAGE + "internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
_SIGNED_LOGINS = (
    _PACKAGE + "OAuthBearerLoginCallbackHandler",
    _PACKAGE + "secured.OAuthBearerLoginCallbackHandler",
)
_UNSECURED_LOGIN = _PACKAGE + "internals.unsecured.OAuthBearerUnsecuredLoginCallbackHandler"

Validate = Callable[[str], BearerToken]


class OAuthBearerMechanism:
    """The mechanism of one listener."""

    def __init__(self, config: ListenerConfig) -> None:
        module = login_module(config, OAUTHBEARER, OAUTHBEARER_MODULE)
        self._options = dict(module.options) if module is not None else {}
        self._settings = config.settings(OauthbearerSettings, OAUTHBEARER)
        self._listener = config.listener
        self._source: JwksSource | None = None
        self._rules = UnsecuredTokenRules()
        self._validate: Validate | None = None
        if self._settings.jwks_endpoint_url is not None:
            url = self._settings.jwks_endpoint_url
            self._source = _source(self._settings, url, self._context(config, url))
        else:
            self._rules = self._unsecured_rules(config)
        self._login = self._token_source(config)
        refuse_callbacks(config, OAUTHBEARER, ("sasl.client.callback.handler.class", "sasl.login.class"))
        _check_handler(config, _HANDLER, (_UNSECURED_HANDLER,) if self._source is None else _SIGNED_HANDLERS)
        _check_handler(config, _LOGIN_HANDLER, (_UNSECURED_LOGIN,) if self._login is None else _SIGNED_LOGINS)

    @property
    def background(self) -> Background | None:
        """Reads the provider's keys again and again; without a provider, warns once that tokens are not signed."""
        return self._warn if self._source is None else self._source.run

    async def _warn(self, _workers: Workers) -> None:
        logger.warning(
            "Listener %s accepts OAUTHBEARER tokens without a signature: any client can claim to be any user there",
            self._listener,
        )

    def _unsecured_rules(self, config: ListenerConfig) -> UnsecuredTokenRules:
        is_asked = any(name.startswith("unsecured") for name in self._options)
        if not is_asked and config.value(_HANDLER, OAUTHBEARER) != _UNSECURED_HANDLER:
            raise SettingError(
                "sasl.oauthbearer.jwks.endpoint.url",
                "null",
                f"{OAUTHBEARER} needs the key set of an identity provider; unsigned tokens, for tests, are accepted "
                "when sasl.jaas.config has an option like unsecuredLoginStringClaim_sub",
            )
        try:
            return UnsecuredTokenRules.from_options(self._options)
        except ValueError as error:
            raise SettingError(jaas_property(config, OAUTHBEARER), "[hidden]", str(error)) from None

    def _context(self, config: ListenerConfig, url: str) -> ssl.SSLContext | None:
        """The TLS configuration for an https provider. Raises SettingError."""
        if urllib.parse.urlsplit(url).scheme != "https":
            return None
        try:
            return provider_context(self._options)
        except SettingError as error:
            raise SettingError(jaas_property(config, OAUTHBEARER), "[hidden]", f"{error.name}: {error.why}") from None

    def _token_source(self, config: ListenerConfig) -> TokenSource | None:
        url = self._settings.token_endpoint_url
        if url is None:
            return None
        try:
            return TokenSource(url, self._options, self._context(config, url))
        except SettingError:
            raise
        except ValueError as error:
            raise SettingError(_ENDPOINT, url, str(error)) from None

    def server(self, services: NodeServices) -> SaslServer:
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

    async def client(self, workers: Workers) -> SaslClient:
        clock = SystemClock()
        extensions = login_extensions(self._options)
        if self._login is not None:
            return OAuthBearerClient(await self._login.token(clock, workers), extensions)
        if self._source is not None:
            raise AuthenticationError(f"this broker has no token for other brokers: {_ENDPOINT} is not given")
        try:
            token = unsecured_token(self._options, clock.now_ms())
        except ValueError as error:
            raise AuthenticationError(str(error)) from None
        return OAuthBearerClient(token, extensions)


def _check_handler(config: ListenerConfig, name: str, expected: Sequence[str]) -> None:
    """Raises SettingError."""
    given = config.value(name, OAUTHBEARER)
    if given is not None and given not in expected:
        raise SettingError(name, given, f"only {' and '.join(expected)} can be named here")


def _source(settings: OauthbearerSettings, url: str, context: ssl.SSLContext | None) -> JwksSource:
    """Where the keys are read from. Raises SettingError where a file is not there; a provider may be reached later."""
    source = JwksSource(
        url,
        settings.jwks_endpoint_refresh_ms,
        settings.jwks_endpoint_retry_backoff_ms,
        settings.jwks_endpoint_retry_backoff_max_ms,
        context,
    )
    try:
        source.begin()
    except JwksError as error:
        raise SettingError("sasl.oauthbearer.jwks.endpoint.url", url, str(error)) from None
    return source
