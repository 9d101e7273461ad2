"""Which tokens are accepted: signatures, key sets, times, audience and issuer; and unsecured ones."""

from __future__ import annotations

import base64
import hmac
import json
from typing import Any

import jwt
import pytest
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization

from ottla.security.jwks import JwksError, MissingKeys, parse_jwks
from ottla.security.jws import MAX_TOKEN_CHARACTERS, TokenError, parse_jws
from ottla.security.oauthbearer_tokens import (
    BearerToken,
    SignedTokenRules,
    SignedTokens,
    UnsecuredTokenRules,
    UnsecuredTokens,
    login_extensions,
    unsecured_token,
)
from ottla.tests.security.helpers.oauth_tokens import (
    NOW,
    NOW_MS,
    claims,
    ec_jwk,
    ec_key,
    jwks,
    rsa_jwk,
    rsa_key,
    signed,
    unsigned,
)


class Provider:
    """Signed tokens by the rules given, at ``now_ms``, and how often the key set was to be read again."""

    def __init__(self, rules: SignedTokenRules | None = None, keys: bytes | None = None) -> None:
        self.now_ms = NOW_MS
        self.readings = 0
        self.keys = parse_jwks(keys or jwks())
        self.tokens = SignedTokens(rules or SignedTokenRules(), lambda: self.keys, self._count, lambda: self.now_ms)

    def _count(self) -> None:
        self.readings += 1

    def validate(self, token: str) -> BearerToken:
        return self.tokens.validate(token)

    def refusal(self, token: str) -> str:
        with pytest.raises(TokenError) as refusal:
            self.tokens.validate(token)
        return str(refusal.value)


def test_a_signed_token_names_a_principal_until_it_ends() -> None:
    assert Provider().validate(signed()) == BearerToken("alice", (NOW + 600) * 1000, frozenset({"kafka"}))


@pytest.mark.parametrize("algorithm", ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"])
def test_an_rsa_key_signs_with_every_algorithm_of_rsa(algorithm: str) -> None:
    token = signed(key=rsa_key(), algorithm=algorithm, kid="rsa")
    assert Provider(keys=jwks(rsa_jwk())).validate(token).principal_name == "alice"


def test_the_algorithm_that_the_key_set_names_for_a_key_is_the_only_one() -> None:
    provider = Provider(keys=jwks(rsa_jwk(alg="RS256")))
    provider.validate(signed(key=rsa_key(), algorithm="RS256", kid="rsa"))
    assert "key set does not have" in provider.refusal(signed(key=rsa_key(), algorithm="RS512", kid="rsa"))


def test_a_token_without_a_key_id_may_be_of_any_key() -> None:
    provider = Provider(keys=jwks(ec_jwk("second"), ec_jwk("first")))
    assert provider.validate(signed(kid=None)).principal_name == "alice"


def test_another_ones_signature_is_refused() -> None:
    assert Provider().refusal(signed(key=ec_key("second"))) == "its signature is wrong"


def test_a_changed_token_is_refused() -> None:
    header, _, signature = signed().split(".")
    _, others, _ = signed(claims(sub="admin")).split(".")
    assert Provider().refusal(f"{header}.{others}.{signature}") == "its signature is wrong"


def test_a_token_cannot_choose_that_it_is_not_signed_or_signed_with_the_public_key() -> None:
    provider = Provider(keys=jwks(rsa_jwk()))
    public = (
        rsa_key().public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    assert "not signed with an algorithm" in provider.refusal(unsigned())
    unsigned_text = unsigned(header={"alg": "HS256", "kid": "rsa"}).removesuffix(".")
    forged = base64.urlsafe_b64encode(hmac.digest(public, unsigned_text.encode(), "sha256")).decode()
    assert "not signed with an algorithm" in provider.refusal(f"{unsigned_text}.{forged}")
    assert "not signed with an algorithm" in provider.refusal(unsigned(header={"alg": ["RS256"]}))


def test_critical_parameters_that_are_not_known_are_no_reason_to_accept_a_token() -> None:
    token = jwt.encode(
        claims(), ec_key("first"), algorithm="ES256", headers={"kid": "first", "crit": ["exp"], "exp": 1}
    )
    assert "critical" in Provider().refusal(token)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"exp": None}, "no claim exp"),
        ({"iat": None}, "no claim iat"),
        ({"sub": None}, "no claim sub"),
        ({"sub": " "}, "no claim sub"),
        ({"sub": 7}, "claim sub is not a text"),
        ({"sub": "alice\ud800"}, "claim sub is not Unicode"),
        ({"scope": ["a", "\udfff"]}, "claim scope is not Unicode"),
        ({"exp": "soon"}, "claim exp is not a number"),
        ({"exp": True}, "claim exp is not a number"),
        ({"exp": 10**400}, "claim exp is not a time"),
        ({"exp": -5}, "claim exp is not a time"),
        ({"exp": NOW - 30}, "expired"),
        ({"nbf": NOW + 31}, "not valid yet"),
        ({"iat": NOW + 601}, "ends before it begins"),
        ({"scope": ["a", "a"]}, "empty or repeated"),
        ({"scope": [""]}, "empty or repeated"),
        ({"scope": [1]}, "neither a text nor a list"),
        ({"aud": "someone"}, "another audience"),
    ],
)
def test_what_a_signed_token_must_say(changed: dict[str, Any], why: str) -> None:
    assert why in Provider().refusal(signed(claims(**changed)))


@pytest.mark.parametrize(
    "changed", [{"iat": NOW - 60, "exp": NOW - 29}, {"nbf": NOW + 30}, {"scope": None}, {"scope": "a b"}]
)
def test_what_is_let_pass(changed: dict[str, Any]) -> None:
    Provider().validate(signed(claims(**changed)))


def test_audience_and_issuer_are_checked_when_they_are_set() -> None:
    provider = Provider(SignedTokenRules(audiences=frozenset({"kafka", "other"}), issuer="https://id.example"))
    provider.validate(signed(claims(aud="kafka", iss="https://id.example")))
    provider.validate(signed(claims(aud=["x", "other"], iss="https://id.example")))
    assert "another audience" in provider.refusal(signed(claims(iss="https://id.example")))
    assert "another audience" in provider.refusal(signed(claims(aud="x", iss="https://id.example")))
    assert "another issuer" in provider.refusal(signed(claims(aud="kafka", iss="https://id.example/")))
    assert "another issuer" in provider.refusal(signed(claims(aud="kafka")))


def test_the_claims_of_name_and_scope_can_be_others() -> None:
    provider = Provider(SignedTokenRules(subject_claim="email", scope_claim="roles"))
    token = provider.validate(signed(claims(email="a@example", roles=["r"])))
    assert (token.principal_name, token.scope) == ("a@example", frozenset({"r"}))


def test_an_unknown_key_has_the_set_read_again_but_not_for_every_token() -> None:
    provider = Provider()
    token = signed(key=ec_key("second"), kid="second")
    assert "key set does not have" in provider.refusal(token)
    provider.refusal(token)
    assert provider.readings == 1
    provider.now_ms += 60_000
    provider.refusal(token)
    assert provider.readings == 2
    provider.keys = parse_jwks(jwks(ec_jwk("second")))
    assert provider.validate(token).principal_name == "alice"


def test_however_many_unknown_keys_clients_name_the_set_is_read_again_seldom() -> None:
    missing = MissingKeys()
    assert not missing.is_new(None, 0)
    assert not missing.is_new("k" * 1001, 0)
    assert sum(missing.is_new(str(number), 0) for number in range(1000)) == 16
    assert sum(missing.is_new(str(number), 59_999) for number in range(1000)) == 0
    assert sum(missing.is_new(str(number), 60_000) for number in range(1000)) == 16


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        "a.b",
        "a.b.c.d",
        "....",
        "!.!.!",
        "e30.e30.é",
        "W10.e30.",
        "bnVsbA.e30.",
        base64.urlsafe_b64encode(b"[" * 30_000).decode() + ".e30.",
        base64.urlsafe_b64encode(b'{"a":' * 8_000).decode() + ".e30.",
        "e30." + "A" * MAX_TOKEN_CHARACTERS + ".",
    ],
)
def test_what_is_no_token_is_refused_without_being_shown(text: str) -> None:
    with pytest.raises(TokenError) as refusal:
        parse_jws(text)
    assert len(str(refusal.value)) < 100


def test_keys_that_cannot_check_signatures_are_passed_over() -> None:
    unusable: list[Any] = [
        ec_jwk(use="enc"),
        {"kty": "oct", "k": "c2VjcmV0", "kid": "first"},
        {"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"},
        {"kty": ["RSA"]},
        "first",
    ]
    (only,) = parse_jwks(jwks(*unusable, ec_jwk()))
    assert only.key_id == "first"
    with pytest.raises(JwksError, match="no key in it"):
        parse_jwks(jwks(*unusable))


def test_a_key_that_openssl_is_not_allowed_to_use_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """As Ed25519 in FIPS mode."""

    def refuse(*_: object) -> None:
        raise UnsupportedAlgorithm("Ed25519 is not supported by this version of OpenSSL")

    monkeypatch.setattr("jwt.algorithms.OKPAlgorithm.from_jwk", refuse)
    okp = {"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}
    (only,) = parse_jwks(jwks(okp, ec_jwk()))
    assert only.key_id == "first"


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"keys": {}}', b"[" * 100_000, b"<html>"])
def test_what_is_no_key_set_is_said_to_be_none(data: bytes) -> None:
    with pytest.raises(JwksError, match="not a JSON Web Key Set"):
        parse_jwks(data)


def test_a_private_key_in_the_set_is_not_kept() -> None:
    entry = json.loads(jwt.get_algorithm_by_name("ES256").to_jwk(ec_key("first")))
    assert "d" in entry
    (key,) = parse_jwks(jwks(entry))
    assert not hasattr(key.public_key, "private_numbers")


def unsecured(**rules: Any) -> UnsecuredTokens:
    return UnsecuredTokens(UnsecuredTokenRules(**rules), lambda: NOW_MS)


def test_an_unsecured_token_names_a_principal_until_it_ends() -> None:
    assert unsecured().validate(unsigned()) == BearerToken("alice", (NOW + 600) * 1000, frozenset({"kafka"}))


@pytest.mark.parametrize(
    ("token", "why"),
    [
        (unsigned(header={"alg": "ES256"}), "unsecured ones are expected"),
        (unsigned(header={"typ": "JWT"}), "unsecured ones are expected"),
        (unsigned() + "AAAA", "unsecured ones are expected"),
        (unsigned(claims(sub="")), "no claim sub"),
        (unsigned(claims(exp=None)), "no claim exp"),
        (unsigned(claims(exp=NOW)), "expired"),
        (unsigned(claims(iat=NOW + 1)), "not valid yet"),
        (unsigned(claims(iat=NOW, exp=NOW)), "expired"),
    ],
)
def test_what_an_unsecured_token_must_say(token: str, why: str) -> None:
    with pytest.raises(TokenError, match=why):
        unsecured().validate(token)


def test_a_signed_token_is_no_unsecured_one() -> None:
    with pytest.raises(TokenError, match="unsecured ones are expected"):
        unsecured().validate(signed())


def test_a_required_scope_that_is_lacking_is_told() -> None:
    tokens = unsecured(required_scope=("read", "write"))
    with pytest.raises(TokenError) as refusal:
        tokens.validate(unsigned(claims(scope=["read"])))
    assert refusal.value.scope == "[read, write]"
    tokens.validate(unsigned(claims(scope=["write", "read", "more"])))


def test_options_of_the_jaas_text_are_the_rules_of_unsecured_tokens() -> None:
    options = {
        "unsecuredValidatorPrincipalClaimName": "email",
        "unsecuredValidatorScopeClaimName": "roles",
        "unsecuredValidatorRequiredScope": " a  b ",
        "unsecuredValidatorAllowableClockSkewMs": "3000",
    }
    assert UnsecuredTokenRules.from_options(options) == UnsecuredTokenRules("email", "roles", ("a", "b"), 3000)
    assert UnsecuredTokenRules.from_options({}) == UnsecuredTokenRules()
    with pytest.raises(ValueError, match="AllowableClockSkewMs"):
        UnsecuredTokenRules.from_options({"unsecuredValidatorAllowableClockSkewMs": "-1"})


def test_a_broker_makes_a_token_for_itself_by_the_options_of_the_jaas_text() -> None:
    options = {
        "unsecuredLoginStringClaim_sub": "broker",
        "unsecuredLoginListClaim_scope": "|a|b",
        "unsecuredLoginNumberClaim_level": "7",
        "unsecuredLoginLifetimeSeconds": "60",
        "unsecuredLoginExtension_zone": "blue",
    }
    made = unsecured_token(options, NOW_MS)
    assert unsecured().validate(made) == BearerToken("broker", NOW_MS + 60_000, frozenset({"a", "b"}))
    assert parse_jws(made).claims["level"] == 7
    assert login_extensions(options) == {"zone": "blue"}
    with pytest.raises(ValueError, match="unsecuredLoginStringClaim_sub"):
        unsecured_token({}, NOW_MS)
