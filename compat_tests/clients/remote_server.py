"""The server side of ``remote``: a script for the interpreter of another virtualenv, where Ottla is not installed.

    PYTHON remote_server.py PACKAGE_FOLDER DRIVER_MODULE BOOTSTRAP

Frames on stdin and stdout are a 4-byte big-endian length and a pickle. A call is (object id, method, args, kwargs), where
object 0 is the driver's ``Client``; an answer is (kind, value) with kind one of value, object, failure, error.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import pickle
import struct
import sys
import traceback
from typing import Any, BinaryIO


def read_frame(stream: BinaryIO) -> Any:
    """The next frame's content; EOFError when the other side has gone."""
    head = stream.read(4)
    if len(head) < 4:
        raise EOFError
    return pickle.loads(stream.read(struct.unpack(">I", head)[0]))


def write_frame(stream: BinaryIO, content: object) -> None:
    """One frame, flushed."""
    body = pickle.dumps(content)
    stream.write(struct.pack(">I", len(body)) + body)
    stream.flush()


def link_package(folder: str) -> None:
    """Make ``ottla`` importable from its folder, whatever the folder is called."""
    spec = importlib.util.spec_from_file_location(
        "ottla", os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
    )
    assert spec is not None
    assert spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules["ottla"] = package
    spec.loader.exec_module(package)


def answer(
    objects: dict[int, Any], call: tuple[int, str, tuple[Any, ...], dict[str, Any]], model: Any
) -> tuple[str, Any]:
    """Do one call."""
    number, method, args, kwargs = call
    try:
        result = getattr(objects[number], method)(*args, **kwargs)
    except model.ClientFailure as failure:
        return "failure", (failure.code, failure.text)
    except Exception:
        return "error", traceback.format_exc()
    if isinstance(result, (model.Producer, model.Consumer, model.Admin)):
        objects[len(objects)] = result
        return "object", len(objects) - 1
    return "value", result


def main() -> None:
    """Serve calls until stdin ends."""
    folder, module, bootstrap = sys.argv[1:]
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    link_package(folder)
    model = importlib.import_module("ottla.compat_tests.clients.model")
    objects = {0: importlib.import_module(module).Client(bootstrap)}
    while True:
        try:
            call = read_frame(sys.stdin.buffer)
        except EOFError:
            return
        write_frame(answers, answer(objects, call, model))


if __name__ == "__main__":
    main()
