"""Settings of SASL (mechanisms, identities, limits), each optionally with the prefix of a listener and of a mechanism."""

from __future__ import annotations

from ...base.settings import ConfigValueType, Settings, setting

DEFAULT_MECHANISM = "GSSAPI"


class SaslSettings(Settings):
    """SASL on a listener, or for one of its mechanisms (``ListenerConfig.settings``)."""

    enabled_mechanisms: tuple[str, ...] = setting(
        "sasl.enabled.mechanisms",
        default=(DEFAULT_MECHANISM,),
        doc="Mechanisms of a SASL listener: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER. It must be set, "
        "because Kafka's default GSSAPI is not served.",
    )
    inter_broker_mechanism: str | None = setting(
        "sasl.mechanism.inter.broker.protocol",
        default=None,
        doc="Mechanism by which this broker authenticates at other brokers; by default the first enabled one "
        "(Kafka's default GSSAPI is not served).",
    )
    controller_mechanism: str | None = setting(
        "sasl.mechanism.controller.protocol",
        default=None,
        doc="The same for the controllers of a KRaft cluster. SCRAM is not available there.",
    )
    jaas_config: str | None = setting(
        "sasl.jaas.config",
        kind=ConfigValueType.PASSWORD,
        default=None,
        doc="Login module and options of one mechanism, read with the prefix listener.name.NAME.MECHANISM. only: username and "
        "password are this broker's own at other brokers, each user_NAME=PASSWORD is a user of PLAIN. There is no JAAS file.",
    )
    server_max_receive_size: int = setting(
        "sasl.server.max.receive.size",
        default=524288,
        at_least=0,
        doc="Largest frame of a client that is not yet authenticated, in bytes.",
    )
    connections_max_reauth_ms: int = setting(
        "connections.max.reauth.ms",
        kind=ConfigValueType.LONG,
        default=0,
        doc="Time after which a client must authenticate again (KIP-368); 0: never.",
    )
