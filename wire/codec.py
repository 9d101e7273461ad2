"""Encoding and decoding of messages in each of their versions.

A codec is compiled the first time a version of a message is used and kept on the class.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, TypeVar

from ..base.errors import ProtocolError
from .decoder_compiler import compile_decoder
from .encoder_compiler import compile_encoder
from .schema import Message

if TYPE_CHECKING:
    from ..base.network import Part

_M = TypeVar("_M", bound=Message)
_COUNTING: dict[tuple[type[Message], int], Any] = {}


def decode(
    message_class: type[_M],
    version: int,
    buffer: bytes | bytearray | memoryview,
    *,
    ignore_rest: bool = False,
    most_elements: int | None = None,
) -> _M:
    """Decode the body in ``buffer``; with ``ignore_rest``, other bytes may follow it.

    Everything is copied out of the buffer except ``records``, which are views into it. Raises ProtocolError when the bytes
    are malformed, bytes are left over, or its arrays have more than ``most_elements`` together; ValueError when the message has
    no such version.
    """
    size = len(buffer)
    body = memoryview(buffer) if message_class.holds_records else bytes(buffer)
    try:
        if most_elements is not None:
            message, position = _counting_decoder(message_class, version)(body, 0, size, most_elements)
        else:
            decoder = message_class.decoders.get(version)
            if decoder is None:
                _check_version(message_class, version)
                decoder = message_class.decoders[version] = compile_decoder(message_class, version)
            message, position = decoder(body, 0, size)
    except (IndexError, struct.error):
        raise ProtocolError(f"{message_class.__name__} v{version} ends too early, after {size} bytes") from None
    except UnicodeDecodeError as error:
        raise ProtocolError(f"{message_class.__name__} v{version}: {error}") from None
    if position != size and not ignore_rest:
        raise ProtocolError(f"{size - position} bytes are left over after {message_class.__name__} v{version}")
    return message  # type: ignore[no-any-return]


def _counting_decoder(message_class: type[Message], version: int) -> Any:
    decoder = _COUNTING.get((message_class, version))
    if decoder is None:
        _check_version(message_class, version)
        decoder = _COUNTING[message_class, version] = compile_decoder(message_class, version, counts=True)
    return decoder


def encode(message: Message, version: int) -> list[Part]:
    """The body of ``message`` as parts; records are parts of their own, never copied, and an empty body has no part.

    Raises ValueError when the message has no such version or a value that the version cannot carry.
    """
    message_class = type(message)
    encoder = message_class.encoders.get(version)
    if encoder is None:
        _check_version(message_class, version)
        encoder = message_class.encoders[version] = compile_encoder(message_class, version)
    chunks: list[bytes] = []
    parts: list[Part] = []
    try:
        encoder(message, chunks, parts)
    except (struct.error, AttributeError, TypeError) as error:
        raise ValueError(f"{message_class.__name__} v{version} cannot be encoded: {error}") from error
    if chunks:
        parts.append(b"".join(chunks))
    return parts


def encode_bytes(message: Message, version: int) -> bytes:
    """The body of ``message`` in one piece; file slices in it are read and released."""
    pieces: list[bytes | bytearray | memoryview] = []
    for part in encode(message, version):
        if isinstance(part, bytes | bytearray | memoryview):
            pieces.append(part)
            continue
        try:
            pieces.append(part.read())
        finally:
            part.release()
    return b"".join(pieces)


def _check_version(message_class: type[Message], version: int) -> None:
    if version not in message_class.valid_versions:
        valid = message_class.valid_versions
        raise ValueError(f"{message_class.__name__} has versions {valid.start}-{valid.stop - 1}, not {version}")
