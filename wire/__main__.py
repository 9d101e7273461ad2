"""``python -m ottla.wire``: show messages, and compare the codec with another implementation.

roundtrip  reads lines ``API_KEY VERSION request|response HEX`` (a body without header; HEX may be empty) and answers each
           with the decoded message encoded again, as hex, or with ``error: ...``
decode     prints what a broker recorded of a connection with a protocol error (decode FILE), or a body or a whole frame
           given as hex (decode request HEX, decode response --key KEY --version N HEX), as JSON
show       prints the fields of a version
versions   prints the versions the codec knows; a broker may serve fewer
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

from ..base.errors import ProtocolError
from .api_keys import ApiKey
from .codec import decode, encode_bytes
from .describe import layout, message_as_json
from .headers import decode_request_header, decode_response_header
from .recorded import decoded_recording
from .registry import request_class, response_class
from .schema import Message

_SIZE_BYTES = 4
_SIDES = ("request", "response")
_NO_FILE = (*_SIDES, "-h", "--help")


def main(arguments: list[str] | None = None) -> int:
    """Run a command. Returns 0, or 1 when the input is malformed, a name is unknown or a file cannot be read."""
    words = sys.argv[1:] if arguments is None else arguments
    recording = words[1] if len(words) == 2 and words[0] == "decode" and words[1] not in _NO_FILE else None
    options = _parser().parse_args(words) if recording is None else None
    try:
        if options is None:
            assert recording is not None
            text = sys.stdin.read() if recording == "-" else Path(recording).read_text()
            print(json.dumps(decoded_recording(text), indent=2, ensure_ascii=False))
        elif options.command == "roundtrip":
            roundtrip(sys.stdin.buffer, sys.stdout)
        elif options.command == "decode":
            print(json.dumps(decoded_message(options), indent=2, ensure_ascii=False))
        elif options.command == "show":
            print("\n".join(layouts(options.key, options.version)))
        else:
            print("\n".join(versions_table()))
    except BrokenPipeError:
        sys.stderr.close()
    except (ProtocolError, ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m ottla.wire", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("roundtrip", help="decode and encode bodies from standard input")
    decoding = commands.add_parser("decode", help="print a message as JSON; decode FILE: recorded requests")
    decoding.add_argument("side", choices=_SIDES)
    decoding.add_argument("hex", help="the bytes, or - for standard input")
    decoding.add_argument("--key", help="API key, number or name; not needed for a request with its header")
    decoding.add_argument("--version", type=int)
    decoding.add_argument(
        "--frame", action="store_true", help="the bytes begin with a header, with or without the size"
    )
    showing = commands.add_parser("show", help="print the fields of a version")
    showing.add_argument("key", help="API key, number or name")
    showing.add_argument("version", type=int)
    commands.add_parser("versions", help="print the versions the codec knows")
    return parser


def message_class(key: ApiKey, side: str) -> type[Message]:
    """The class of one side of an API. Raises ValueError for another side."""
    if side not in _SIDES:
        raise ValueError(f"neither request nor response: {side}")
    return request_class(key) if side == "request" else response_class(key)


def parse_key(text: str) -> ApiKey:
    """A key by number, ``Fetch`` or ``FETCH``. Raises ValueError."""
    if text.isdecimal():
        return ApiKey(int(text))
    wanted = text.replace("_", "").lower()
    for key in ApiKey:
        if key.name.replace("_", "").lower() == wanted:
            return key
    raise ValueError(f"there is no API {text}")


def roundtrip(lines: Iterable[bytes], out: IO[str]) -> None:
    """Answer each line as it is read; malformed lines do not end the loop."""
    for line in lines:
        try:
            answer = roundtrip_line(line.decode())
        except Exception as error:
            answer = "error: " + " ".join(f"{type(error).__name__}: {error}".split())
        out.write(answer + "\n")
        out.flush()


def roundtrip_line(line: str) -> str:
    """The hex of the body after decoding and encoding it."""
    words = line.split()
    if not 3 <= len(words) <= 4:
        raise ValueError("a line is API_KEY VERSION request|response HEX")
    body = bytes.fromhex(words[3]) if len(words) == 4 else b""
    version = int(words[1])
    message = decode(message_class(parse_key(words[0]), words[2]), version, body)
    return encode_bytes(message, version).hex()


def decoded_message(options: argparse.Namespace) -> dict[str, Any]:
    """The message that the options of ``decode`` describe."""
    text = sys.stdin.read() if options.hex == "-" else options.hex
    data = bytes.fromhex(text)
    result: dict[str, Any] = {}
    is_frame = options.frame or (options.side == "request" and options.key is None)
    if is_frame and int.from_bytes(data[:_SIZE_BYTES], "big") == len(data) - _SIZE_BYTES:
        data = data[_SIZE_BYTES:]
    if is_frame and options.side == "request":
        header, offset = decode_request_header(data)
        key, version = ApiKey(header.api_key), header.api_version
        result["header"] = {"correlation_id": header.correlation_id, "client_id": header.client_id}
    elif options.key is None or options.version is None:
        raise ValueError("--key and --version are needed: only a request's header names them")
    else:
        key, version, offset = parse_key(options.key), options.version, 0
        if is_frame:
            correlation_id, offset = decode_response_header(data, key, version)
            result["header"] = {"correlation_id": correlation_id}
    cls = message_class(key, options.side)
    result |= {"message": cls.__name__, "version": version}
    result["body"] = message_as_json(decode(cls, version, data[offset:]), version)
    return result


def layouts(key_text: str, version: int) -> Iterator[str]:
    """The fields of both sides of an API."""
    for side in ("request", "response"):
        cls = message_class(parse_key(key_text), side)
        if version not in cls.valid_versions:
            raise ValueError(f"{cls.__name__} has versions {_versions(cls.valid_versions)}, not {version}")
        yield from layout(cls, version)


def versions_table() -> Iterator[str]:
    """A line for each API."""
    yield f"{'key':>3}  {'name':40}  {'versions':8}  flexible"
    for key in ApiKey:
        cls = request_class(key)
        yield f"{key:>3}  {key.title:40}  {_versions(cls.valid_versions):8}  {_versions(cls.flexible_versions)}".rstrip()


def _versions(versions: range) -> str:
    if not versions:
        return "never"
    return str(versions.start) if len(versions) == 1 else f"{versions.start}-{versions.stop - 1}"


if __name__ == "__main__":
    sys.exit(main())
