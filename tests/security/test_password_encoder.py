"""Passwords as Kafka 3.9 encrypts them: what it wrote is read, what is written can be read again, and with nothing else."""

from __future__ import annotations

import base64

import pytest

from ottla.security.password_encoder import CBC, GCM, PasswordEncoder, PasswordError

SECRET, PASSWORD = "sécret", "pässwörd, with: \N{GRINNING FACE}"
BY_KAFKA = (
    "initializationVector:wYKc4K6yXaK8K5DNT96DvQ==,"
    "keyLength:128,"
    "salt:Vl+jkBidyu7D5ARhCXprQevNAHUbwk71N0CEjOSQpsCb5RXiSsJ4+h8kaIbPSv6Yr/f8Aw9/BOKRFGv+z+n3Z59LWvyMxKW"
    "IUpvX7XL+PMHq8mzADzlC46DyWYcSjwF6Ycz4ZNkd/CYsors/ydBNFIpSwN7yuX5S9Qucxy7wc9aJU+XQf68jG6D7hP6e6LtkKFt"
    "34fi649RmcFPOyfheyidlyfspf3WDzZ+sFShSnHEl0tGYNpVkG5R61qNDr1ByAVEMAA/VU9aev4wRumsmTv25f02FUM2d+WvOmdJ"
    "z9UbCYATSRh2Kbs6ucMNNdBcHI+JO3lZw7e62jq40p70f3w==,"
    "keyFactoryAlgorithm:PBKDF2WithHmacSHA512,"
    "cipherAlgorithm:AES/CBC/PKCS5Padding,"
    "iterations:4096,"
    "passwordLength:18,"
    "encryptedPassword:+zHxzg8V6YrUy6sJH8iRKrZWFCh7ayxWBgaOgYRLAmo="
)
BY_KAFKA_WITH_GCM = (
    "initializationVector:KUb60R1LG4QaLGC4,"
    "keyLength:256,"
    "salt:PkMKey9cpt4SgzKglbRA+ia4U7frUNNOBlc+7f3fsiIFxduSnONQBoHpoLSpKGzAlN1oZQtXeKjEWWm0105HaUp64SMqXnb"
    "V3MG8YaNK7aBs/TOfMx8JUmJZj05EOl8xV+MiIWjStqQD5L4ArsjHX81JZwvh2e5k0JdZprL9UHrhhBtQGaD6jdf9bIkNYKh0Upd"
    "7zmu8DS1MVeD1KtyGNixeYreGsHOtEK0q/YYZtiagT+l3AqEzm5D40hVVv+k+Bk7u21sehN4bRpvAsIlVlXYFdNMjjkRQX2NN713"
    "qQfTFBoYfH9/AZm9fL8RLiJiAbjZ4HW+zfzGzb1Us/MzU4A==,"
    "keyFactoryAlgorithm:PBKDF2WithHmacSHA256,"
    "cipherAlgorithm:AES/GCM/NoPadding,"
    "authenticationTagLength:128,"
    "iterations:2048,"
    "passwordLength:18,"
    "encryptedPassword:qRIa9gsksQOCIey+d0vrM/lcwNY4nOdlXKwxK2rmVrAWL3LrEE8="
)
EMPTY_BY_KAFKA = (
    "initializationVector:nSmHezr7h+Tfwfo2Lg748w==,"
    "keyLength:192,"
    "salt:Ez/QiVwxQgoRgUyNHQ3lBdL9hUYnUOOzfhJbLqahb+9ihk9P0mqu4g5OMxVND6BCR+TdAejgZXM+LLd7lwAIwxYl4fLPI95"
    "EGPdCrAr9yhYii10hNTFz+cqhxqfSQvLbSfShgfGVtabnbXoNxW8zCqfUVMv6QtZ25AEuw+ibDM/TttPqFJW6BjbsHKu/EJLDyt2"
    "0wzGqR1B7qeNVlwLcwwkMI/4c7mlfPQLOyzZRg0pPKkefjdna1ydGbrzE5obTtPoNNtR1iZzDSUBMqunnKBevIqKrYQek5PqWDRB"
    "t/9QounzBCDi9jkxzLD834B+txKWHzOiiGliZiuIUn+0Zig==,"
    "keyFactoryAlgorithm:PBKDF2WithHmacSHA1,"
    "cipherAlgorithm:AES/CBC/PKCS5Padding,"
    "iterations:1024,"
    "passwordLength:0,"
    "encryptedPassword:ZAEZgWn/QMYFX+7nbaGGsg=="
)
"""What the encoder of Apache Kafka 3.9.2 made of PASSWORD, with GCM also with 256 bits of PBKDF2WithHmacSHA256 and 2048
iterations, and of an empty one with PBKDF2WithHmacSHA1. It has read, in turn, what is made here in these three ways."""
ENCODERS = (
    PasswordEncoder(SECRET),
    PasswordEncoder(SECRET, "PBKDF2WithHmacSHA256", GCM, 256, 2048),
    PasswordEncoder(SECRET, "PBKDF2WithHmacSHA1", CBC, 192, 1024),
)


@pytest.mark.parametrize(
    ("encoded", "password"), [(BY_KAFKA, PASSWORD), (BY_KAFKA_WITH_GCM, PASSWORD), (EMPTY_BY_KAFKA, "")]
)
def test_what_kafka_wrote_is_read_however_passwords_are_encrypted_now(encoded: str, password: str) -> None:
    for encoder in ENCODERS:
        assert encoder.decode(encoded) == password
        with pytest.raises(PasswordError, match="may be another one"):
            PasswordEncoder("secret").decode(encoded)


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("password", ["", "?", PASSWORD, "0123456789abcdef", "-----BEGIN\nx\n"])
def test_what_is_written_has_kafkas_fields_and_can_be_read(encoder: PasswordEncoder, password: str) -> None:
    encoded = encoder.encode(password)
    assert encoder.decode(encoded) == password
    assert encoder.encode(password) != encoded
    kafkas = BY_KAFKA_WITH_GCM if encoder.cipher == GCM else BY_KAFKA
    assert fields(encoded).keys() == fields(kafkas).keys()
    assert len(base64.b64decode(fields(encoded)["salt"])) == 256
    assert password == "" or password not in encoded


def fields(encoded: str) -> dict[str, str]:
    return dict(entry.split(":", 1) for entry in encoded.split(","))


def changed(**new: str) -> str:
    return ",".join(f"{name}:{value}" for name, value in (fields(BY_KAFKA) | new).items())


@pytest.mark.parametrize(
    "encoded",
    [
        "",
        "hunter2",
        "a:b",
        changed(iterations="1000000000"),
        changed(iterations="0"),
        changed(iterations="many"),
        changed(keyLength="8"),
        changed(keyFactoryAlgorithm="PBKDF2WithHmacMD5"),
        changed(cipherAlgorithm="DES/CBC/PKCS5Padding"),
        changed(passwordLength="3"),
        changed(salt="?"),
        changed(initializationVector="AAAA"),
        changed(encryptedPassword=""),
        changed(encryptedPassword="AAAA"),
    ],
)
def test_what_is_no_encrypted_password_is_said_to_be_none(encoded: str) -> None:
    with pytest.raises(PasswordError) as refused:
        PasswordEncoder(SECRET).decode(encoded)
    assert "hunter2" not in str(refused.value)


def test_the_secret_is_not_printed() -> None:
    assert SECRET not in repr(PasswordEncoder(SECRET))
