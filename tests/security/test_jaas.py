"""JAAS texts as Kafka reads them: quotes, escapes, comments, what is refused, and that no value gets into a message."""

from __future__ import annotations

import pytest

from ottla.security.jaas import PLAIN_MODULE, JaasError, parse_jaas


def test_a_module_with_its_options() -> None:
    module = parse_jaas(f'{PLAIN_MODULE} required username="admin" password="p w" user_alice="a;\'=";')
    assert module.name == PLAIN_MODULE
    assert module.options == {"username": "admin", "password": "p w", "user_alice": "a;'="}


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("m required;", {}),
        ("m REQUIRED a=b-c_d$e.f1 ;", {"a": "b-c_d$e.f1"}),
        ("m\n  sufficient\n  a='x\"y'\n  ;\n", {"a": 'x"y'}),
        (r'm optional a="\"\\\t\n\101\7z\q";', {"a": '"\\\t\nA\x07zq'}),
        ('m requisite // of a line\n a="/" /* of\n several */ b="*";', {"a": "/", "b": "*"}),
        ("m required a=b/c;\n;", {"a": "b"}),  # a slash begins a comment even without a second one
        ('m required a="first" a="second";', {"a": "second"}),
        ('m required "user_a b"="c";', {"user_a b": "c"}),
        ('m required a="é€";', {"a": "é€"}),
        ('m required a="";', {"a": ""}),
    ],
)
def test_forms_of_values(text: str, options: dict[str, str]) -> None:
    assert parse_jaas(text).options == options


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  // nothing\n",
        "m",
        "m;",
        "m always;",
        "m required",
        'm required password="hunter2"',
        "m required password=;",
        "m required password;",
        "m required password=8;",  # a number is no word to Java's StreamTokenizer
        "m required password=-8.5;",
        'm required password:"hunter2";',
        'm required password="hunter2"; m2 required;',
        'm required "a" "hunter2";',
        'm required a="hunter2\n";',
        'm required password="a"hunter2";',
        "m required password=a;hunter2;",
        "m required password='a' hunter2='b;",
        "m required password=a;'hunter2' b;",
        "hunter2",
    ],
)
def test_what_is_refused(text: str) -> None:
    with pytest.raises(JaasError) as caught:
        parse_jaas(text)
    assert "hunter2" not in str(caught.value)


def test_options_are_not_printed() -> None:
    assert "hunter2" not in repr(parse_jaas('m required password="hunter2";'))
