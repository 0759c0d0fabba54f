"""The control interface on a unix socket, through which the portal starts and stops apps."""

from __future__ import annotations

import json
import os
import socket
import threading

from . import wire
from .apps.supervisor import Supervisor, UnknownApp
from .log import say
from .spec import CONTROL, SpecError, parse_app_start, parse_object

TIMEOUT = 10.0


def serve(directory: str, supervisor: Supervisor) -> None:
    """Serve `control.sock` in the background, until the runner exits."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    path = f"{directory}/{CONTROL}.sock"
    if os.path.lexists(path):
        os.unlink(path)
    listener.bind(path)
    listener.listen(16)
    threading.Thread(target=_accept, args=(listener, supervisor), name=CONTROL, daemon=True).start()


def _accept(listener: socket.socket, supervisor: Supervisor) -> None:
    while True:
        stream, _ = listener.accept()
        stream.settimeout(TIMEOUT)
        threading.Thread(target=_converse, args=(stream, supervisor), daemon=True).start()


def _converse(stream: socket.socket, supervisor: Supervisor) -> None:
    try:
        with stream, stream.makefile("rb") as reader:
            method, path, body = wire.read_request(reader)
            stream.sendall(respond(method, path, body, supervisor))
    except OSError as error:
        say(f"A request to the control interface failed: {error}")


def respond(method: str, path: str, body: bytes, supervisor: Supervisor) -> bytes:
    """Handle one request and render its response."""
    try:
        if method == "GET" and path == "/apps":
            return _answer(200, {"apps": supervisor.states()})
        if path.startswith("/apps/"):
            name = path.removeprefix("/apps/")
            if method == "PUT":
                return _put(name, body, supervisor)
            if method == "DELETE":
                supervisor.stop(name)
                return wire.answer(204)
    except SpecError as error:
        return _answer(400, {"field": error.field, "message": error.message})
    except UnknownApp as error:
        return _answer(404, {"message": f"this session has no app {error}"})
    return _answer(404, {"message": "there is nothing here"})


def _put(name: str, body: bytes, supervisor: Supervisor) -> bytes:
    description = parse_app_start(parse_object("app", body.decode(errors="replace")))
    if description.name != name:
        raise SpecError("name", "differs from the app in the path")
    supervisor.start(description)
    return _answer(202, {"state": supervisor.states().get(name, "")})


def _answer(status: int, message: dict[str, object]) -> bytes:
    return wire.answer(status, json.dumps(message).encode())
