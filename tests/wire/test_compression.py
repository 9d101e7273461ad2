"""Codecs: round trips, the framings clients produce, and what damaged or hostile data does."""

from __future__ import annotations

import gzip
import itertools
import os
import struct
import subprocess
import sys

import lz4.frame
import pytest
import snappy
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from ottla.base.errors import ErrorCode, KafkaError
from ottla.wire import compression
from ottla.wire.compression import (
    GZIP,
    LZ4,
    NAMES,
    NONE,
    SNAPPY,
    ZSTD,
    compress,
    compressor,
    decompress,
    decompressed_pieces,
)

CODECS = (GZIP, SNAPPY, LZ4, ZSTD)
each_codec = pytest.mark.parametrize("codec", CODECS, ids=NAMES[1:])

XERIAL_HEADER = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)


def xerial(*blocks: bytes) -> bytes:
    return XERIAL_HEADER + b"".join(struct.pack(">i", len(block)) + block for block in map(snappy.compress, blocks))


def error_of(codec: int, data: bytes, limit: int | None = None) -> ErrorCode:
    with pytest.raises(KafkaError) as raised:
        decompress(codec, data, limit)
    return raised.value.code


@given(codec=st.sampled_from((NONE, *CODECS)), data=st.binary(max_size=500), repeats=st.integers(1, 300))
def test_round_trip(codec: int, data: bytes, repeats: int) -> None:
    data *= repeats
    compressed = compress(codec, data)
    assert decompress(codec, compressed) == data
    assert decompress(codec, memoryview(bytearray(compressed)), len(data)) == data
    assert decompress(codec, compress(codec, memoryview(bytearray(data)))) == data


@each_codec
@pytest.mark.parametrize("size", [65_536, 1_000_003])
def test_data_that_does_not_shrink(codec: int, size: int) -> None:
    data = os.urandom(size)
    assert decompress(codec, compress(codec, data), size) == data


@pytest.mark.parametrize(
    ("codec", "low", "high"), [(GZIP, 1, 9), (LZ4, 1, 17), (ZSTD, -5, 19)], ids=["gzip", "lz4", "zstd"]
)
def test_every_level_is_read_back_and_a_high_one_packs_better(codec: int, low: int, high: int) -> None:
    data = b"".join(b"record %d of %d;" % (number, number * number) for number in range(5000))
    for level in range(low, high + 1):
        assert decompress(codec, compress(codec, data, level)) == data
    assert len(compress(codec, data, high)) < len(compress(codec, data, low))


@each_codec
def test_no_codec_makes_nothing_of_no_bytes(codec: int) -> None:
    assert decompress(codec, compress(codec, b"")) == b""
    assert error_of(codec, b"") is ErrorCode.CORRUPT_MESSAGE


@each_codec
def test_every_truncation_is_corrupt(codec: int) -> None:
    compressed = compress(codec, bytes(range(256)) * 40)
    for size in range(len(compressed)):
        # Cut between two of its blocks, framed snappy is whole; there only the count of records can tell.
        if codec == SNAPPY and size == len(XERIAL_HEADER):
            continue
        assert error_of(codec, compressed[:size]) is ErrorCode.CORRUPT_MESSAGE
        assert error_of(codec, compressed[:size], 20_000) is ErrorCode.CORRUPT_MESSAGE


def outcome_of(codec: int, data: bytes | bytearray, limit: int) -> bytes | ErrorCode:
    try:
        return decompress(codec, data, limit)
    except KafkaError as error:
        return error.code


REFUSALS = (ErrorCode.CORRUPT_MESSAGE, ErrorCode.MESSAGE_TOO_LARGE)


@given(codec=st.sampled_from(CODECS), data=st.data())
def test_damage_gives_an_error_or_bytes_within_the_limit(codec: int, data: st.DataObject) -> None:
    compressed = bytearray(compress(codec, b"some text, some text, and numbers 0123456789" * 20))
    for _ in range(data.draw(st.integers(1, 4))):
        compressed[data.draw(st.integers(0, len(compressed) - 1))] = data.draw(st.integers(0, 255))
    outcome = outcome_of(codec, compressed, 5000)
    assert outcome in REFUSALS or len(outcome) <= 5000


@given(codec=st.sampled_from((GZIP, LZ4, ZSTD)), data=st.binary(max_size=300))
def test_random_bytes_are_corrupt(codec: int, data: bytes) -> None:
    assert outcome_of(codec, data, 10_000) is ErrorCode.CORRUPT_MESSAGE


@given(data=st.binary(max_size=300))
def test_random_bytes_as_raw_snappy_which_has_no_magic_and_no_checksum(data: bytes) -> None:
    outcome = outcome_of(SNAPPY, data, 10_000)
    assert outcome in REFUSALS or len(outcome) <= 10_000


@each_codec
def test_the_limit_is_the_longest_result_allowed(codec: int) -> None:
    compressed = compress(codec, bytes(100_000))
    assert len(decompress(codec, compressed, 100_000)) == 100_000
    assert error_of(codec, compressed, 99_999) is ErrorCode.MESSAGE_TOO_LARGE
    assert error_of(codec, compressed, 0) is ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.cpython
@each_codec
def test_a_bomb_is_stopped_before_it_fills_the_memory(codec: int) -> None:
    import tracemalloc

    bomb = compress(codec, bytes(200_000_000))
    tracemalloc.start()
    try:
        assert error_of(codec, bomb, 1_000_000) is ErrorCode.MESSAGE_TOO_LARGE
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 40_000_000


@each_codec
def test_pieces_are_small(codec: int) -> None:
    data = bytes(50_000_000)
    sizes = [len(piece) for piece in decompressed_pieces(codec, compress(codec, data))]
    assert sum(sizes) == len(data)
    assert max(sizes) < 5 << 20


@each_codec
@given(cuts=st.lists(st.integers(0, 200_000), max_size=6))
def test_what_is_compressed_in_pieces(codec: int, cuts: list[int]) -> None:
    data = bytes(range(256)) * 700
    places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    stream = compressor(codec)
    parts = [stream.compress(data[start:end]) for start, end in itertools.pairwise(places)]
    assert decompress(codec, b"".join([*parts, stream.flush()])) == data


@pytest.mark.cpython  # there the decompressors of this test can be freed; on PyPy the other tests of lz4 are of that code
def test_lz4_as_it_is_done_on_pypy(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a failure or a reader that stops early has left in a decompressor is not in what is read next."""
    idle: list[object] = []
    monkeypatch.setattr(compression, "_IDLE_LZ4", idle)
    monkeypatch.setitem(compression._DECOMPRESSORS, LZ4, compression._lz4_decompress_on_pypy)
    data = os.urandom(300_000)
    compressed = compress(LZ4, data)
    for size in (20_000, 200_000, len(data) - 1):
        assert decompress(LZ4, compressed) == data
        assert error_of(LZ4, compressed[:size]) is ErrorCode.CORRUPT_MESSAGE
        assert error_of(LZ4, compressed, size) is ErrorCode.MESSAGE_TOO_LARGE
        pieces = decompressed_pieces(LZ4, compressed)
        assert data.startswith(next(pieces))
        assert decompress(LZ4, compressed + b"behind the end") == data
        del pieces
    assert len(idle) == 2
    stream = compression._Lz4CompressorOnPyPy(None)
    parts = [stream.compress(data[:1000]), stream.compress(data[1000:]), stream.flush()]
    assert b"".join(parts) == compressed


def test_no_compression_honours_the_limit_too() -> None:
    assert decompress(NONE, b"12345", 5) == b"12345"
    assert error_of(NONE, b"12345", 4) is ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("codec", [-1, 5, 6, 7])
def test_numbers_that_name_no_codec(codec: int) -> None:
    assert error_of(codec, b"data") is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


def test_gzip_members_in_a_row_are_one_stream_and_padding_behind_them_is_ignored() -> None:
    members = gzip.compress(b"one ") + gzip.compress(b"") + gzip.compress(b"two")
    assert decompress(GZIP, members) == b"one two"
    assert decompress(GZIP, members + bytes(20)) == b"one two"
    assert error_of(GZIP, members + gzip.compress(b"three")[:-3]) is ErrorCode.CORRUPT_MESSAGE


def test_many_empty_gzip_members_do_not_take_quadratic_time() -> None:
    assert decompress(GZIP, gzip.compress(b"") * 50_000 + gzip.compress(b"end")) == b"end"


def test_snappy_is_written_in_xerial_blocks_of_32_kib() -> None:
    data = os.urandom(80_000)
    compressed = compress(SNAPPY, data)
    assert compressed == xerial(data[:32_768], data[32_768:65_536], data[65_536:])
    assert compress(SNAPPY, b"") == XERIAL_HEADER


def test_snappy_is_read_raw_and_framed_and_from_frames_in_a_row() -> None:
    assert decompress(SNAPPY, snappy.compress(b"raw data" * 9)) == b"raw data" * 9
    assert decompress(SNAPPY, snappy.compress(b"")) == b""
    assert decompress(SNAPPY, xerial(b"one ", b"", b"two ") + xerial() + xerial(b"three")) == b"one two three"


def test_snappy_blocks_with_lengths_that_lie() -> None:
    block = snappy.compress(b"block")
    for length in (-1, len(block) - 1, len(block) + 1, 2**31 - 1):
        assert error_of(SNAPPY, XERIAL_HEADER + struct.pack(">i", length) + block) is ErrorCode.CORRUPT_MESSAGE
    assert error_of(SNAPPY, b"\xff\xff\xff\xff\x0f" + block, 1000) is ErrorCode.MESSAGE_TOO_LARGE
    assert error_of(SNAPPY, b"\xff" * 12) is ErrorCode.CORRUPT_MESSAGE


def test_lz4_is_written_as_one_frame_of_independent_64_kib_blocks() -> None:
    info = lz4.frame.get_frame_info(compress(LZ4, bytes(300_000)))
    assert info["block_size_id"] == lz4.frame.BLOCKSIZE_MAX64KB
    assert not info["block_linked"]
    assert info["content_size"] == 0


def test_lz4_frames_with_other_flags_are_read() -> None:
    data = os.urandom(1000) * 300
    for linked in (False, True):
        for checksum in (False, True):
            for block_size in (lz4.frame.BLOCKSIZE_MAX64KB, lz4.frame.BLOCKSIZE_MAX4MB):
                frame = lz4.frame.compress(
                    data,
                    block_linked=linked,
                    block_size=block_size,
                    block_checksum=checksum,
                    content_checksum=checksum,
                    store_size=checksum,
                )
                assert decompress(LZ4, frame, len(data)) == data


def test_lz4_ends_at_its_end_mark_and_needs_the_standard_header_checksum() -> None:
    frame = compress(LZ4, b"first")
    assert decompress(LZ4, frame + compress(LZ4, b"second")) == b"first"
    broken = bytearray(frame)
    broken[6] ^= 0xFF
    assert error_of(LZ4, bytes(broken)) is ErrorCode.CORRUPT_MESSAGE


def test_zstd_frames_without_a_content_size_and_frames_in_a_row() -> None:
    streaming = zstandard.ZstdCompressor(write_content_size=False, write_checksum=True).compressobj()
    frame = streaming.compress(b"stream ") + streaming.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
    frame += streaming.compress(b"ends ") + streaming.flush()
    assert zstandard.frame_content_size(frame) == -1
    assert decompress(ZSTD, frame) == b"stream ends "
    assert (
        decompress(ZSTD, frame + compress(ZSTD, b"") + compress(ZSTD, b"and goes on"), 100)
        == b"stream ends and goes on"
    )
    assert error_of(ZSTD, frame + b"junk") is ErrorCode.CORRUPT_MESSAGE


def test_the_libraries_are_not_imported_before_they_are_needed() -> None:
    program = (
        "import sys, ottla.wire.records, ottla.wire.compression as compression;"
        "loaded = lambda: {'snappy', 'lz4', 'lz4.frame', 'zstandard'} & set(sys.modules);"
        "assert not loaded(), loaded();"
        "compression.decompress(0, b''); compression.decompress(1, compression.compress(1, b''));"
        "assert not loaded(), loaded();"
        "compression.compress(4, b'');"
        "assert loaded() == {'zstandard'}, loaded()"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
