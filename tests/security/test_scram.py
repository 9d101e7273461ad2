"""SCRAM: the example of RFC 7677, both sides against each other and against kafka-python's client, and what is refused."""

from __future__ import annotations

import base64
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.net.sasl.scram import ScramClient as KafkaPythonClient

from ottla.security.principal import Principal
from ottla.security.sasl import AuthenticationError
from ottla.security.scram import (
    ScramCredential,
    ScramMechanism,
    credential_from_salted_password,
    new_credential,
    parse_credential,
)
from ottla.security.scram_exchange import ScramClient, ScramServer, ScramUser

SHA_256, SHA_512 = ScramMechanism.SHA_256, ScramMechanism.SHA_512

# https://www.rfc-editor.org/rfc/rfc7677#section-3
NAME, PASSWORD, SALT = "user", "pencil", base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
CLIENT_NONCE, SERVER_NONCE = "rOprNGfwEbeRWgbNEkqO", "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
NONCE = CLIENT_NONCE + SERVER_NONCE
CLIENT_FIRST = f"n,,n=user,r={CLIENT_NONCE}".encode()
SERVER_FIRST = f"r={NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode()
CLIENT_FINAL = f"c=biws,r={NONCE},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=".encode()
SERVER_FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="

CREDENTIALS = {mechanism: new_credential(mechanism, PASSWORD, salt=SALT) for mechanism in ScramMechanism}


def knows(credential: ScramCredential, *names: str, expires_ms: int | None = None) -> Callable[[str], ScramUser | None]:
    """Finds these users only, each with the same credential."""
    return lambda name: ScramUser(Principal("User", name), credential, expires_ms) if name in names else None


def nobody(_name: str) -> None:
    return None


def server_for(mechanism: ScramMechanism = SHA_256, *names: str, nonce: str | None = SERVER_NONCE) -> ScramServer:
    return ScramServer(mechanism, knows(CREDENTIALS[mechanism], *(names or (NAME,))), nobody, nonce)


def refusal(server: ScramServer, token: bytes) -> AuthenticationError:
    with pytest.raises(AuthenticationError) as caught:
        server.respond(token)
    assert server.outcome is None
    return caught.value


def test_the_server_side_of_the_example() -> None:
    server = server_for()
    assert server.respond(CLIENT_FIRST) == SERVER_FIRST
    assert server.outcome is None
    assert server.respond(CLIENT_FINAL) == SERVER_FINAL
    assert server.outcome is not None
    assert server.outcome.principal == Principal("User", NAME)


def test_the_client_side_of_the_example() -> None:
    client = ScramClient(SHA_256, NAME, PASSWORD, nonce=CLIENT_NONCE)
    assert client.respond(b"") == CLIENT_FIRST
    assert client.respond(SERVER_FIRST) == CLIENT_FINAL
    assert client.respond(SERVER_FINAL) is None


@pytest.mark.parametrize("mechanism", ScramMechanism)
@pytest.mark.parametrize("name", ["alice", "a=b,c", "=2C", "=3D2C", "a b@c/d", "<default>"])
def test_the_two_sides_agree(mechanism: ScramMechanism, name: str) -> None:
    server, client = server_for(mechanism, name, nonce=None), ScramClient(mechanism, name, PASSWORD)
    challenge = b""
    while (token := client.respond(challenge)) is not None:
        challenge = server.respond(token)
    assert server.outcome is not None
    assert server.outcome.principal.name == name


@pytest.mark.parametrize("mechanism", ScramMechanism)
def test_kafka_pythons_client_agrees(mechanism: ScramMechanism) -> None:
    server, client = server_for(mechanism, nonce=None), KafkaPythonClient(NAME, PASSWORD, mechanism.sasl_name)
    client.process_server_first_message(server.respond(client.first_message()))
    client.process_server_final_message(server.respond(client.final_message()))
    assert server.outcome is not None


@pytest.mark.parametrize(
    "token",
    [
        b"",
        b"n,,n=user",
        b"y,,n=user,r=x",  # wants channel binding, if the server has it
        b"p=tls-unique,,n=user,r=x",
        b"n,,m=x,n=user,r=x",  # an extension that must be understood
        b"n,,n=,r=x",
        b"n,,n=us=er,r=x",
        b"n,,n=us,er,r=x",
        b"n,,n=user,r=",
        b"n,,n=user,r=\xc3\xa4",
        b"n,,n=us\xc3\xa4r,r=x",
        b"n,,n=us\0er,r=x",
        b"n,,n=user,r=a b",
        b"n,,n=user,r=x,",
        b"n,,n=user,r=x,1=y",
        b"\n" + CLIENT_FIRST,
        CLIENT_FIRST + b"\n",
    ],
)
def test_first_messages_that_are_none(token: bytes) -> None:
    assert not (refusal(server_for(), token)).is_shown


def test_an_unknown_user_is_not_told_so() -> None:
    error = refusal(server_for(), b"n,,n=bob,r=x")
    assert "bob" in str(error)
    assert not error.is_shown


def test_nobody_acts_for_another() -> None:
    error = refusal(server_for(), b"n,a=bob,n=user,r=x")
    assert error.is_shown
    server_for().respond(b"n,a=user,n=user,r=x")


def test_a_weak_credential_is_of_no_use() -> None:
    weak = new_credential(SHA_256, PASSWORD, 4095)
    assert not (refusal(ScramServer(SHA_256, knows(weak, NAME), nobody), CLIENT_FIRST)).is_shown


@pytest.mark.parametrize(
    "token",
    [
        b"",
        CLIENT_FIRST,
        CLIENT_FINAL.replace(NONCE.encode(), CLIENT_NONCE.encode()),
        CLIENT_FINAL.replace(NONCE.encode(), b"x" + NONCE.encode()),
        CLIENT_FINAL.replace(b"p=d", b"p=e"),
        CLIENT_FINAL.replace(b"c=biws", b"c=eSws"),  # the proof does not fit what the message says of the channel
        CLIENT_FINAL[:-1],
        CLIENT_FINAL.rpartition(b"p=")[0] + b"p=",
        CLIENT_FINAL.rpartition(b"p=")[0] + b"p=AAAA",
        CLIENT_FINAL + b",x=y",
    ],
)
def test_final_messages_that_prove_nothing(token: bytes) -> None:
    server = server_for()
    server.respond(CLIENT_FIRST)
    assert not (refusal(server, token)).is_shown


def test_a_token_is_looked_for_among_tokens() -> None:
    owner = ScramUser(Principal("User", "owner", token_authenticated=True), CREDENTIALS[SHA_256], expires_ms=1234)
    server = ScramServer(SHA_256, nobody, {"id1": owner}.get)
    client = ScramClient(SHA_256, "id1", PASSWORD, is_token=True)
    challenge = b""
    while (token := client.respond(challenge)) is not None:
        challenge = server.respond(token)
    assert server.outcome is not None
    assert server.outcome.principal == owner.principal
    assert server.outcome.expires_ms == 1234
    refusal(ScramServer(SHA_256, nobody, {"id1": owner}.get), b"n,,n=id1,r=x")
    refusal(ScramServer(SHA_256, nobody, {"id1": owner}.get), b"n,,n=id1,r=x,tokenauth=false")


@pytest.mark.parametrize(
    "challenge",
    [
        b"",
        b"e=other-error",
        SERVER_FIRST.replace(CLIENT_NONCE.encode(), b"another"),
        SERVER_FIRST.replace(SERVER_NONCE.encode(), b""),
        SERVER_FIRST.replace(b"i=4096", b"i=4095"),
        SERVER_FIRST.replace(b"i=4096", b"i=99999999"),  # it would compute for a minute
        SERVER_FIRST.replace(b"i=4096", b"i=" + b"9" * 5000),
    ],
)
def test_a_client_does_not_prove_its_password_to_just_any_broker(challenge: bytes) -> None:
    client = ScramClient(SHA_256, NAME, PASSWORD, nonce=CLIENT_NONCE)
    client.respond(b"")
    with pytest.raises(AuthenticationError):
        client.respond(challenge)


@pytest.mark.parametrize("challenge", [b"", b"v=AAAA", b"e=invalid-proof", SERVER_FINAL.replace(b"6r", b"7r")])
def test_a_client_wants_the_broker_to_know_the_password(challenge: bytes) -> None:
    client = ScramClient(SHA_256, NAME, PASSWORD, nonce=CLIENT_NONCE)
    client.respond(b"")
    client.respond(SERVER_FIRST)
    with pytest.raises(AuthenticationError):
        client.respond(challenge)


@given(st.one_of(st.binary(max_size=300), st.from_regex(r"n,,n=[a-z=,]*,r=.*", fullmatch=True).map(str.encode)))
def test_no_bytes_are_a_way_in(token: bytes) -> None:
    refusal(server_for(SHA_256, "\0 not one that can be named"), token)


def test_credentials_in_the_store_are_kafkas() -> None:
    text = (  # written by kafka-configs of Kafka 3.9
        "salt=NTFmbnVhdXgxNXdvMjZhenlwNjhnMnc4Zg==,stored_key=qkmMa6Qy3wE88prSl1ItI40j28Ef42wHQD2XvNLIqGg=,"
        "server_key=ec66wAX4hkxC0l+lNOoIcLVUBYs4l0x7eGqMnDXtK1k=,iterations=4096"
    )
    credential = parse_credential(text)
    assert credential.iterations == 4096
    assert credential.salt == b"51fnuaux15wo26azyp68g2w8f"
    assert credential.render() == text
    assert "stored" not in repr(credential)


@pytest.mark.parametrize(
    "text", ["", "salt=AA==", "salt=A,stored_key=AA==,server_key=AA==,iterations=1", "salt,stored_key,x,iterations"]
)
def test_a_damaged_credential(text: str) -> None:
    with pytest.raises(ValueError, match="a SCRAM credential"):
        parse_credential(text)


def test_a_salted_password_makes_the_same_credential() -> None:
    salted = SHA_512.salted_password(PASSWORD, SALT, 4096)
    assert credential_from_salted_password(SHA_512, SALT, salted, 4096) == CREDENTIALS[SHA_512]
    assert new_credential(SHA_512, PASSWORD) != CREDENTIALS[SHA_512]
