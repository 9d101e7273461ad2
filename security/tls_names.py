"""The subject name of a certificate: the RFC 2253 distinguished name, exactly as Java formats it.

``X500Principal.getName()`` writes the most specific part first, commas without spaces, and the nine types of RFC 2253 by name;
every other type (emailAddress, serialNumber) is its number with the value in DER, as ``#`` and hexadecimal digits. Access control
lists and mapping rules are written for exactly these strings. (RFC 4514, which libraries implement, escapes less.)
"""

from __future__ import annotations

from .tls_der import OBJECT_IDENTIFIER, SEQUENCE, SET, Element, dotted, elements, only

_TYPES = {
    "2.5.4.3": "CN",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "2.5.4.6": "C",
    "2.5.4.9": "STREET",
    "0.9.2342.19200300.100.1.25": "DC",
    "0.9.2342.19200300.100.1.1": "UID",
}
# UTF8String, PrintableString, T61String, IA5String, GeneralString, UniversalString, BMPString: all are UTF-8 to Java.
_STRINGS = (0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1C, 0x1E)
_ESCAPED = ',=+<>#;"\\'
_EXPLICIT_VERSION = 0xA0


def subject_name(certificate: bytes) -> str:
    """The subject of a certificate in DER. Raises ValueError."""
    outer = list(elements(only(certificate, SEQUENCE)))
    if not outer:
        raise ValueError("not a certificate")
    fields = list(elements(only(outer[0].whole, SEQUENCE)))
    if fields and fields[0].tag == _EXPLICIT_VERSION:
        del fields[0]
    if len(fields) < 5:
        raise ValueError("not a certificate")
    return distinguished_name(fields[4].whole)  # after serial number, algorithm, issuer and validity


def distinguished_name(name: bytes) -> str:
    """The text of a ``Name`` in DER, by RFC 2253. Raises ValueError."""
    parts = [_relative_name(part) for part in elements(only(name, SEQUENCE))]
    return ",".join(reversed(parts))


def _relative_name(part: Element) -> str:
    if part.tag != SET:
        raise ValueError("not a relative distinguished name")
    return "+".join(_attribute(only(element.whole, SEQUENCE)) for element in elements(part.contents))


def _attribute(pair: bytes) -> str:
    kind, value = elements(pair)
    if kind.tag != OBJECT_IDENTIFIER:
        raise ValueError("not a type of attribute")
    number = dotted(kind.contents)
    name = _TYPES.get(number)
    if name is None or value.tag not in _STRINGS:
        return f"{name or number}=#{value.whole.hex()}"
    return f"{name}={_escaped(value.contents.decode('utf-8', 'replace'))}"


def _escaped(text: str) -> str:
    inner = "".join(_escaped_character(character) for character in text)
    bare = inner.strip(" \r")
    if not bare:
        return "".join(f"\\{character}" for character in inner)
    before, after = inner.split(bare, 1)[0], inner[inner.rindex(bare) + len(bare) :]
    return "".join([*(f"\\{space}" for space in before), bare, *(f"\\{space}" for space in after)])


def _escaped_character(character: str) -> str:
    if character in _ESCAPED:
        return f"\\{character}"
    return "\\00" if character == "\0" else character
