"""Connects outputs.py with Jupyter Server 2: windows, kernels and the contents of notebooks."""

from __future__ import annotations

import contextlib
import inspect
import json
import os

import nbformat
from jupyter_client.session import Session
from jupyter_server.base.handlers import APIHandler
from jupyter_server.services.contents.fileio import atomic_writing
from jupyter_server.services.kernels.connection.base import (
    deserialize_binary_message,
    deserialize_msg_from_ws_v1,
)
from jupyter_server.services.kernels.connection.channels import ZMQChannelsWebsocketConnection
from jupyter_server.utils import url_path_join
from slipway_outputs import Recorder, merge
from tornado.web import authenticated

BINARY = "v1.kernel.websocket.jupyter.org"
RECORDED = (
    "status",
    "execute_input",
    "stream",
    "display_data",
    "execute_result",
    "update_display_data",
    "clear_output",
    "error",
)
_server = None


class Connection(ZMQChannelsWebsocketConnection):
    """A window's connection to a kernel; the recorder learns what it asks for, and its end."""

    def connect(self):
        """Answer the window's connection."""
        recorder_of(self.kernel_manager).connected(self.session.session)
        return super().connect()

    def disconnect(self):
        """Handle its end."""
        recorder_of(self.kernel_manager).disconnected(self.session.session)
        return super().disconnect()

    def handle_incoming_message(self, incoming_msg):
        """Pass a message on to the kernel."""
        # Jupyter itself answers what is malformed.
        with contextlib.suppress(ValueError, KeyError, TypeError, IndexError, AttributeError):
            self._note(incoming_msg)
        return super().handle_incoming_message(incoming_msg)

    def _note(self, raw):
        header, metadata, content = execute_request(raw, self.subprotocol == BINARY)
        if not content.get("silent") and content.get("store_history", True):
            recorder = recorder_of(self.kernel_manager)
            cell = metadata.get("cellId", "")
            recorder.request(header["msg_id"], self.session.session, cell, content["code"])


def execute_request(raw, is_binary):
    """Header, metadata and content of a request to run a cell; raises ValueError for others."""
    if is_binary:
        channel, parts = deserialize_msg_from_ws_v1(raw)
        header = json.loads(bytes(parts[0]))
        if (channel, header["msg_type"]) == ("shell", "execute_request"):
            return header, json.loads(bytes(parts[2])), json.loads(bytes(parts[3]))
    else:
        message = deserialize_binary_message(raw) if isinstance(raw, bytes) else json.loads(raw)
        header = message["header"]
        if (message.get("channel"), header["msg_type"]) == ("shell", "execute_request"):
            return header, message.get("metadata", {}), message["content"]
    raise ValueError("another message")


def recorder_of(kernel):
    """The recorder of a kernel's manager."""
    return vars(kernel).setdefault("slipway_recorder", Recorder())


def listen(kernel):
    """Record what a kernel that has started sends to all windows."""
    stop(kernel)
    recorder = recorder_of(kernel)
    session = Session(config=kernel.session.config, key=kernel.session.key)

    def received(frames):
        _, parts = session.feed_identities(frames)
        message = session.deserialize(parts, content=False)
        kind, request = message["header"]["msg_type"], message["parent_header"].get("msg_id")
        if kind in RECORDED and (kind == "update_display_data" or recorder.knows(request)):
            recorder.take(kind, request, session.unpack(message["content"]))

    stream = kernel.connect_iopub()
    stream.on_recv(received)
    vars(kernel)["slipway_stream"] = stream


def stop(kernel):
    """End the recording of a kernel that stops, and write what no window has seen."""
    stream = vars(kernel).pop("slipway_stream", None)
    if stream is None:
        return
    if not stream.closed():
        stream.close()
    recorder = recorder_of(kernel)
    recorder.ended()
    if _server is not None and recorder.missed:
        for path in paths_of(getattr(kernel, "kernel_id", "")):
            # A notebook that was deleted or is not a file.
            with contextlib.suppress(OSError, ValueError, AttributeError):
                write(os.path.join(_server.contents_manager.root_dir, path), recorder.missed)


def write(file, executions):
    """Put the output of executions into a notebook's file; raises OSError or ValueError."""
    notebook = nbformat.read(file, as_version=4)
    if merge(notebook.cells, executions):
        text = nbformat.writes(nbformat.from_dict(notebook))
        with atomic_writing(file, text=True, encoding="utf-8") as written:
            written.write(text)


# The notebooks of this server


def attach(server):
    """Let the server's notebooks have what was recorded, in its answers and when it stops."""
    global _server  # noqa: PLW0603 there is one server in a process
    _server = server
    contents = server.contents_manager
    contents.get = _after(contents.get, _merged)
    contents.save = _after(contents.save, _saved)
    path = url_path_join(server.web_app.settings["base_url"], "api", "slipway", "outputs")
    server.web_app.add_handlers(".*$", [(path, OutputsHandler)])


def _after(method, work):
    """The method of a contents manager, which may be asynchronous, with more work on its result."""

    def called(*arguments, **options):
        result = method(*arguments, **options)
        if inspect.isawaitable(result):
            return awaited(result, arguments)
        return work(result, arguments)

    async def awaited(result, arguments):
        return work(await result, arguments)

    return called


def _merged(model, _arguments):
    """A model with the output that its file does not have."""
    if model.get("type") == "notebook" and model.get("content"):
        for recorder in recorders_of(model["path"]):
            merge(model["content"]["cells"], recorder.missed)
    return model


def _saved(model, arguments):
    """Forget what the saved model has."""
    content = arguments[0].get("content") if arguments else None
    if model.get("type") == "notebook" and content:
        for recorder in recorders_of(model["path"]):
            recorder.saved(content["cells"])
    return model


def paths_of(kernel_id):
    """The notebooks that use a kernel."""
    query = "SELECT path FROM session WHERE kernel_id = ?"
    return [
        row[0] for row in _server.session_manager.cursor.execute(query, (kernel_id,)).fetchall()
    ]


def recorders_of(path):
    """The recorders of the kernels that a notebook uses."""
    query = "SELECT kernel_id FROM session WHERE path = ?"
    rows = _server.session_manager.cursor.execute(query, (path.strip("/"),)).fetchall()
    kernels = [row[0] for row in rows if row[0] in _server.kernel_manager]
    return [recorder_of(_server.kernel_manager.get_kernel(id)) for id in kernels]


class OutputsHandler(APIHandler):
    """What the cells of a notebook print that a window runs which is away."""

    @authenticated
    def get(self):
        """Answer with the executions of the notebook at `path`."""
        executions = [
            {
                "client": each.client,
                "cell": each.cell,
                "code": each.code,
                "count": each.count,
                "running": each.is_running,
                "outputs": each.outputs,
            }
            for recorder in recorders_of(self.get_query_argument("path"))
            for each in recorder.missed
        ]
        self.finish(json.dumps({"executions": executions}))
