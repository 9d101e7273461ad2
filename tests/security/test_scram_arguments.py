"""SCRAM credentials of a command line."""

from __future__ import annotations

import base64

import pytest

from ottla.security.scram import ScramMechanism, new_credential
from ottla.security.scram_arguments import parse_credential_argument

SALT = base64.b64encode(b"0123456789abcdef").decode()


def test_a_password_is_salted() -> None:
    user, mechanism, credential = parse_credential_argument(
        f'SCRAM-SHA-512=[name=alice,iterations=8192,salt="{SALT}",password="a=b"]'
    )
    assert (user, mechanism) == ("alice", ScramMechanism.SHA_512)
    assert credential == new_credential(ScramMechanism.SHA_512, "a=b", 8192, b"0123456789abcdef")


def test_a_salted_password_is_taken_as_it_is() -> None:
    salted = ScramMechanism.SHA_256.salted_password("secret", b"0123456789abcdef", 4096)
    text = f"SCRAM-SHA-256=[name=bob,salt={SALT},saltedpassword={base64.b64encode(salted).decode()}]"
    assert parse_credential_argument(text).credential == new_credential(
        ScramMechanism.SHA_256, "secret", 4096, b"0123456789abcdef"
    )
    assert parse_credential_argument("SCRAM-SHA-256=[name=a,password=b]") != parse_credential_argument(
        "SCRAM-SHA-256=[name=a,password=b]"
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("nothing", "Failed to find equals sign in SCRAM argument 'nothing'"),
        ("SCRAM-MD5=[name=a,password=hush]", "The add-scram mechanism SCRAM-MD5 is not supported"),
        ("SCRAM-SHA-256=name=a,password=hush]", r"start with \["),
        ("SCRAM-SHA-256=[name=a,password=hush", r"end with \]"),
        ("SCRAM-SHA-256=[password=hush]", "You must supply 'name'"),
        ("SCRAM-SHA-256=[name=a]", "one of 'password' or 'saltedpassword'"),
        ("SCRAM-SHA-256=[name=a,saltedpassword=aHVzaA==]", "'salt' with 'saltedpassword'"),
        ("SCRAM-SHA-256=[name=a,salt=*,password=hush]", "Failed to decode given salt"),
        ("SCRAM-SHA-256=[name=a,iterations=x,password=hush]", "Failed to parse iterations count: x"),
        ("SCRAM-SHA-256=[name=a,iterations=1,password=hush]", ">= 4096 for add-scram using SCRAM_SHA_256"),
        ("SCRAM-SHA-512=[name=a,iterations=99999,password=hush]", "<= 16384 for add-scram using SCRAM_SHA_512"),
        ("SCRAM-SHA-256=[name=a,password=hush,planet=mars]", "Unknown SCRAM configurations: planet"),
        ("SCRAM-SHA-256=[hush]", "No equals sign found in SCRAM component"),
    ],
)
def test_what_cannot_be_a_credential(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why) as error:
        parse_credential_argument(text)
    assert "hush" not in str(error.value)
