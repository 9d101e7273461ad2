"""``python -m ottla.wire`` as a process."""

from __future__ import annotations

import json
import subprocess
import sys

from ottla.wire.api_keys import ApiKey
from ottla.wire.codec import encode_bytes
from ottla.wire.headers import encode_request_header, response_header_encoder
from ottla.wire.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, FetchTopic, PartitionData
from ottla.wire.records import Record, build_batch


def run(*arguments: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "ottla.wire", *arguments], input=given, capture_output=True, check=False
    )


def test_roundtrip_answers_every_line() -> None:
    body = encode_bytes(FetchRequest(topics=[FetchTopic(topic="é")]), 12).hex()
    lines = [
        f"1 12 request {body}".encode(),
        f"FETCH 12 request {body.upper()}".encode(),
        b"18 0 request ",
        b"18 0 request",
        b"1 12 request",
        b"1 12 answer 00",
        b"1 99 request 00",
        b"52 0 request 00",
        b"x 0 request zz",
        b"",
        b"\xff\xfe",
        b"1 1 1 1 1",
        f"1 12 request {body}00".encode(),
        b"3 1 request 00000000",
    ]
    done = run("roundtrip", given=b"\n".join(lines))
    assert done.returncode == 0, done.stderr
    answers = done.stdout.decode().split("\n")[:-1]
    assert [answer if not answer.startswith("error: ") else "error" for answer in answers] == [
        body,
        body,
        "",
        "",
        *["error"] * 9,
        "00000000",
    ]


def test_roundtrip_answers_at_once() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "ottla.wire", "roundtrip"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for _ in range(3):
            process.stdin.write(b"3 1 request 00000000\n")
            process.stdin.flush()
            assert process.stdout.readline() == b"00000000\n"
        process.stdin.close()
        assert process.wait() == 0


def test_decode_a_request_frame() -> None:
    frame = encode_request_header(ApiKey.FETCH, 12, 7, "me") + encode_bytes(FetchRequest(max_wait_ms=9), 12)
    for data in (frame, len(frame).to_bytes(4, "big") + frame):
        shown = json.loads(run("decode", "request", data.hex()).stdout)
        assert shown["header"] == {"correlation_id": 7, "client_id": "me"}
        assert shown["message"] == "FetchRequest"
        assert shown["version"] == 12
        assert shown["body"]["max_wait_ms"] == 9
        assert "cluster_id" not in shown["body"]


def test_decode_a_response() -> None:
    batch = build_batch([Record(offset=0, timestamp=5, key=b"k", value=b"v")])
    partitions = [
        PartitionData(records=bytes(batch)),
        PartitionData(records=None),
        PartitionData(records=b"garbage" * 20),
    ]
    body = encode_bytes(
        FetchResponse(responses=[FetchableTopicResponse(topic_id=b"\xff" * 16, partitions=partitions)]), 13
    )
    shown = json.loads(run("decode", "response", "--key", "fetch", "--version", "13", body.hex()).stdout)
    topic = shown["body"]["responses"][0]
    assert topic["topic_id"] == "_____________________w"
    assert topic["partitions"][0]["records"]["batches"][0]["record_count"] == 1
    assert topic["partitions"][1]["records"] is None
    assert "error" in topic["partitions"][2]["records"]

    frame = response_header_encoder(ApiKey.FETCH, 13)(3) + body
    shown = json.loads(
        run("decode", "response", "--frame", "--key", "1", "--version", "13", "-", given=frame.hex().encode()).stdout
    )
    assert shown["header"] == {"correlation_id": 3}


def test_show_and_versions() -> None:
    shown = run("show", "Fetch", "12").stdout.decode()
    assert "FetchRequest v12 (flexible)" in shown
    assert "    partition_max_bytes" not in shown.split("\n")[1]
    assert "  cluster_id: string (tag 0, nullable, default null)" in shown
    table = run("versions").stdout.decode().splitlines()
    assert len(table) == 1 + len(ApiKey)
    assert table[2].split() == ["1", "Fetch", "0-18", "12-18"]


def test_wrong_names_and_bytes_give_one_line() -> None:
    for arguments in (
        ["show", "Nothing", "1"],
        ["show", "1", "99"],
        ["decode", "request", "00"],
        ["decode", "request", "zz"],
        ["decode", "response", "00"],
    ):
        done = run(*arguments)
        assert done.returncode == 1
        assert done.stderr.decode().startswith("error: ")
        assert done.stderr.count(b"\n") == 1
