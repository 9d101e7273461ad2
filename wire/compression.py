"""The compression codecs of record batches, compatible with those of Kafka's clients in both directions.

The codec number is in bits 0-2 of the batch's attributes; everything after the batch's header is compressed.

- gzip: a gzip container; several members in a row are one stream, and bytes after the last member that do not begin a
  new one are ignored, as Java does.
- snappy: xerial framing is written: a 16-byte header (magic ``82 "SNAPPY" 00``, version 1, compatible version 1), then
  blocks of at most 32 KiB, each a big-endian int32 length and raw snappy. Framed streams, also several in
  a row, and a single raw snappy block can be read.
- lz4: one standard frame with independent blocks of 64 KiB (Kafka refuses linked ones) and no checksums; bytes after
  the end mark are ignored, as Java does. The wrong header checksum of message format 0 is not accepted.
- zstd: one or several frames, with or without a content size in their headers.

A few bytes can become gigabytes, so data is decompressed piece by piece (``decompressed_pieces``), and a caller that reads the
pieces as they come never holds more than one. A piece has about 4 MiB at most, except for that of snappy, which is a block: as
large as the client made it, but not more than 22 times its input.

Codec libraries are imported on their first use, which keeps them out of an idle broker's memory. Everything here is
pure and may run in a worker thread.
"""

from __future__ import annotations

import struct
import sys
import zlib
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from ..base.errors import ErrorCode, KafkaError

Buffer = bytes | bytearray | memoryview

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
NAMES = ("none", "gzip", "snappy", "lz4", "zstd")

LZ4_DEFAULT_LEVEL = 9
"""Kafka's default for ``compression.lz4.level``; it selects the fast compressor, every other level the strong one."""
ZSTD_DEFAULT_LEVEL = 3

_GZIP_WINDOW_BITS = 16 + zlib.MAX_WBITS
_GZIP_MAGIC = b"\x1f\x8b"
_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK_SIZE = 32 * 1024
_INPUT_STEP = {GZIP: 4 * 1024, LZ4: 16 * 1024, ZSTD: 128}
"""Bytes of input per step. One byte can become 1032, 255 or 32768, so a step gives about 4 MiB at most."""
_SMALL_ZSTD = 64 * 1024
_SMALL_ZSTD_RESULT = 256 * 1024


def compress(codec: int, data: Buffer, level: int | None = None) -> bytes:
    """Return ``data`` compressed with ``codec`` (0-4); ``level`` has the meaning of Kafka's ``compression.*.level``."""
    if codec == NONE:
        return bytes(data)
    return _COMPRESSORS[codec](data, level)


def decompress(codec: int, data: Buffer, limit: int | None = None) -> bytes:
    """Return ``data`` decompressed.

    KafkaError: CORRUPT_MESSAGE when ``data`` is not what the codec writes or ends early, MESSAGE_TOO_LARGE when the
    result would be longer than ``limit`` bytes, UNSUPPORTED_COMPRESSION_TYPE for an unknown codec.
    """
    pieces = list(decompressed_pieces(codec, data, limit))
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def decompressed_pieces(codec: int, data: Buffer, limit: int | None = None) -> Iterator[bytes]:
    """Yield ``data`` decompressed, in pieces that may be empty. Raises what ``decompress`` raises, where it is found."""
    if not NONE <= codec <= ZSTD:
        raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"no compression codec has the number {codec}")
    if codec == NONE:
        _check_limit(len(data), limit)
        yield bytes(data)
        return
    size = 0
    for piece in _DECOMPRESSORS[codec](data, limit):
        size += len(piece)
        _check_limit(size, limit)
        yield piece


class Compressor(Protocol):
    """Compresses what comes in pieces; the results of all calls together are the compressed data."""

    def compress(self, data: bytes, /) -> bytes: ...

    def flush(self) -> bytes: ...


def compressor(codec: int, level: int | None = None) -> Compressor:
    """For data that comes in pieces; the arguments are those of ``compress``."""
    return _STREAM_COMPRESSORS[codec](level)


def _corrupt(codec: int, reason: object) -> KafkaError:
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"the {NAMES[codec]} data cannot be decompressed: {reason}")


def _check_limit(size: int, limit: int | None) -> None:
    if limit is not None and size > limit:
        raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE, f"the data is longer than {limit} bytes when decompressed")


class _Frame(Protocol):
    """A stream being decompressed: ``unused_data`` is the input after its end, empty or None if there is none."""

    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes | None: ...

    def decompress(self, data: memoryview, /) -> bytes: ...


def _decompress_frames(
    codec: int,
    data: Buffer,
    open_frame: Callable[[], _Frame],
    goes_on: Callable[[memoryview], bool],
    malformed: type[Exception] | tuple[type[Exception], ...],
) -> Iterator[bytes]:
    """Decompress frames; another one follows if ``goes_on`` is true of the rest of the data."""
    view = memoryview(data)
    step = _INPUT_STEP[codec]
    position = 0
    while True:
        frame = open_frame()
        while not frame.eof:
            if position >= len(view):
                raise _corrupt(codec, "it ends early")
            piece = view[position : position + step]
            try:
                part = frame.decompress(piece)
            except malformed as error:
                raise _corrupt(codec, error) from None
            position += len(piece) - len(frame.unused_data or b"")
            yield part
        if not goes_on(view[position:]):
            return


class _Verbatim:
    """What is not compressed."""

    def compress(self, data: bytes, /) -> bytes:
        return data

    def flush(self) -> bytes:
        return b""


def _gzip_compressor(level: int | None) -> Compressor:
    return zlib.compressobj(-1 if level is None else level, zlib.DEFLATED, _GZIP_WINDOW_BITS)


def _gzip_compress(data: Buffer, level: int | None) -> bytes:
    stream = zlib.compressobj(-1 if level is None else level, zlib.DEFLATED, _GZIP_WINDOW_BITS)
    return stream.compress(data) + stream.flush()


def _gzip_decompress(data: Buffer, limit: int | None) -> Iterator[bytes]:
    def open_member() -> _Frame:
        return zlib.decompressobj(_GZIP_WINDOW_BITS)

    return _decompress_frames(GZIP, data, open_member, lambda rest: rest[:2] == _GZIP_MAGIC, zlib.error)


class _SnappyCompressor:
    """Makes a block of each 32 KiB."""

    def __init__(self, level: int | None) -> None:
        self._header = _XERIAL_HEADER
        self._rest = b""

    def compress(self, data: bytes, /) -> bytes:
        data = self._rest + data
        whole = len(data) - len(data) % _XERIAL_BLOCK_SIZE
        self._rest = data[whole:]
        return self._blocks(memoryview(data)[:whole])

    def flush(self) -> bytes:
        return self._blocks(memoryview(self._rest))

    def _blocks(self, data: memoryview) -> bytes:
        header, self._header = self._header, b""
        return header + _snappy_blocks(data)


def _snappy_compress(data: Buffer, level: int | None) -> bytes:
    return _XERIAL_HEADER + _snappy_blocks(memoryview(data))


def _snappy_blocks(view: memoryview) -> bytes:
    import snappy

    parts = []
    for start in range(0, len(view), _XERIAL_BLOCK_SIZE):
        block = snappy.compress(bytes(view[start : start + _XERIAL_BLOCK_SIZE]))
        parts.append(len(block).to_bytes(4, "big"))
        parts.append(block)
    return b"".join(parts)


def _snappy_decompress(data: Buffer, limit: int | None) -> Iterator[bytes]:
    view = memoryview(data)
    if view[:8] != _XERIAL_MAGIC:
        yield _snappy_block(view, limit)
        return
    size = 0
    position = 0
    while position < len(view):
        if view[position : position + 8] == _XERIAL_MAGIC:
            position += len(_XERIAL_HEADER)
            if position > len(view):
                raise _corrupt(SNAPPY, "it ends inside a header")
            continue
        block_start = position + 4
        position = block_start + int.from_bytes(view[position:block_start], "big")
        if block_start > len(view) or position > len(view):
            raise _corrupt(SNAPPY, "it ends inside a block")
        part = _snappy_block(view[block_start:position], None if limit is None else limit - size)
        size += len(part)
        yield part


def _snappy_block(block: memoryview, limit: int | None) -> bytes:
    """Decompress one raw snappy block, which begins with its length when decompressed."""
    import snappy

    announced = shift = 0
    for byte in block[:5]:
        announced |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
    else:
        raise _corrupt(SNAPPY, "a block has no length")
    _check_limit(announced, limit)
    try:
        return bytes(snappy.decompress(bytes(block)))
    except snappy.UncompressError as error:
        raise _corrupt(SNAPPY, error) from None


def _lz4_options(level: int | None) -> dict[str, int | bool]:
    import lz4.frame

    fast = level is None or level == LZ4_DEFAULT_LEVEL
    return {
        "compression_level": 0 if fast else max(level or 0, lz4.frame.COMPRESSIONLEVEL_MINHC),
        "block_size": lz4.frame.BLOCKSIZE_MAX64KB,
        "block_linked": False,
    }


class _Lz4Compressor:
    """One frame."""

    def __init__(self, level: int | None) -> None:
        import lz4.frame

        self._frame = lz4.frame.LZ4FrameCompressor(**_lz4_options(level))
        self._header: bytes = self._frame.begin()

    def compress(self, data: bytes, /) -> bytes:
        header, self._header = self._header, b""
        return header + bytes(self._frame.compress(data))

    def flush(self) -> bytes:
        return self._header + bytes(self._frame.flush())


def _lz4_compress(data: Buffer, level: int | None) -> bytes:
    import lz4.frame

    return bytes(lz4.frame.compress(data, store_size=False, **_lz4_options(level)))


def _lz4_decompress(data: Buffer, limit: int | None) -> Iterator[bytes]:
    import lz4.frame

    return _decompress_frames(LZ4, data, lz4.frame.LZ4FrameDecompressor, lambda rest: False, (RuntimeError, EOFError))


class _Lz4CompressorOnPyPy:
    """One frame, made at its end: python-lz4 gets no context that PyPy would free, as below."""

    def __init__(self, level: int | None) -> None:
        self._level = level
        self._pieces: list[bytes] = []

    def compress(self, data: bytes, /) -> bytes:
        self._pieces.append(bytes(data))
        return b""

    def flush(self) -> bytes:
        return _lz4_compress(b"".join(self._pieces), self._level)


_IDLE_LZ4: list[Any] = []
"""On PyPy, decompressors between two frames: as many as were in use at once."""


def _lz4_decompress_on_pypy(data: Buffer, limit: int | None) -> Iterator[bytes]:
    """Takes a decompressor that was used before, and never lets go of it.

    python-lz4 (4.4.5) takes PyPy for Python 2.6, because its headers define PyCapsule_Type, and frees what is no context; that
    ends the process. Its pull request 334 is the cure.
    """
    import lz4.frame

    try:
        frame = _IDLE_LZ4.pop()
    except IndexError:
        frame = lz4.frame.LZ4FrameDecompressor()
    try:
        yield from _decompress_frames(LZ4, data, lambda: frame, lambda rest: False, (RuntimeError, EOFError))
    finally:
        frame.reset()
        _IDLE_LZ4.append(frame)


def _zstd_compressor(level: int | None) -> Compressor:
    import zstandard

    return zstandard.ZstdCompressor(level=ZSTD_DEFAULT_LEVEL if level is None else level).compressobj()


def _zstd_compress(data: Buffer, level: int | None) -> bytes:
    import zstandard

    return zstandard.ZstdCompressor(level=ZSTD_DEFAULT_LEVEL if level is None else level).compress(data)


def _zstd_decompress(data: Buffer, limit: int | None) -> Iterator[bytes]:
    import zstandard

    if len(data) <= _SMALL_ZSTD and (whole := _small_zstd_frame(data, limit)) is not None:
        return iter((whole,))
    open_frame = zstandard.ZstdDecompressor().decompressobj
    return _decompress_frames(ZSTD, data, open_frame, lambda rest: len(rest) > 0, zstandard.ZstdError)


def _small_zstd_frame(data: Buffer, limit: int | None) -> bytes | None:
    """What a single frame holds that says how much it is, at a third of the cost of steps; None for anything else."""
    import zstandard

    most = _SMALL_ZSTD_RESULT if limit is None else min(limit, _SMALL_ZSTD_RESULT)
    try:
        if not 0 <= zstandard.frame_content_size(data) <= most:  # -1: it does not say
            return None
        return zstandard.ZstdDecompressor().decompress(data, max_output_size=most, allow_extra_data=False)
    except zstandard.ZstdError:
        return None


_IS_PYPY = sys.implementation.name == "pypy"
_COMPRESSORS: dict[int, Callable[[Buffer, int | None], bytes]] = {
    GZIP: _gzip_compress,
    SNAPPY: _snappy_compress,
    LZ4: _lz4_compress,
    ZSTD: _zstd_compress,
}
_STREAM_COMPRESSORS: dict[int, Callable[[int | None], Compressor]] = {
    NONE: lambda level: _Verbatim(),
    GZIP: _gzip_compressor,
    SNAPPY: _SnappyCompressor,
    LZ4: _Lz4CompressorOnPyPy if _IS_PYPY else _Lz4Compressor,
    ZSTD: _zstd_compressor,
}
_DECOMPRESSORS: dict[int, Callable[[Buffer, int | None], Iterator[bytes]]] = {
    GZIP: _gzip_decompress,
    SNAPPY: _snappy_decompress,
    LZ4: _lz4_decompress_on_pypy if _IS_PYPY else _lz4_decompress,
    ZSTD: _zstd_decompress,
}
