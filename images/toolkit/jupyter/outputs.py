"""What cells print while the window that runs them is away, for their notebook.

Jupyter sends a cell's output only to the window that ran it. If that is closed, the output is lost
although the kernel goes on. Here it is recorded on the server: whoever opens the notebook gets it,
and it is written into the file when the server ends. Independent of Jupyter's modules; server.py
connects the two.
"""

from __future__ import annotations

import json

MOST_BYTES = 10 * 1024 * 1024  # of one cell's output
MOST_EXECUTIONS = 2000
TRUNCATED = "Slipway kept only the first 10 MB of this cell's output, as its window was closed.\n"
SHOWN = ("stream", "display_data", "execute_result", "error")


class Stream:
    """The text of stdout or stderr, in which a carriage return begins the line anew."""

    def __init__(self, name):
        self._name = name
        self._lines = []
        self._line = ""

    def add(self, text):
        """Add text; returns by how much the stored text has grown."""
        before = len(self._line)
        *complete, last = (self._line + text).split("\n")
        lines = [overwritten(line) + "\n" for line in complete]
        self._lines += lines
        # What follows a carriage return at the end is still to come.
        self._line = overwritten(last) + ("\r" if last.endswith("\r") else "")
        return sum(map(len, lines)) + len(self._line) - before

    def as_output(self):
        """As in a notebook."""
        text = "".join(self._lines) + self._line.rstrip("\r")
        return {"output_type": "stream", "name": self._name, "text": text}

    def continues(self, name):
        """Whether further text of this name belongs here."""
        return name == self._name


class Rich:
    """An output of any other kind; `display`: the id by which the kernel replaces it."""

    def __init__(self, kind, content, display):
        self.display = display
        self._kind, self._content = kind, content

    def replace(self, content):
        """Show other data in its place."""
        self._content = {**self._content, "data": content["data"], "metadata": content["metadata"]}

    def as_output(self):
        """As in a notebook."""
        fields = {
            "error": ("ename", "evalue", "traceback"),
            "display_data": ("data", "metadata"),
            "execute_result": ("data", "metadata", "execution_count"),
        }[self._kind]
        output = {name: self._content.get(name) for name in fields}
        return {"output_type": self._kind, **output}

    @staticmethod
    def continues(_name):
        """Never."""
        return False


class Execution:
    """One run of a cell, and what it has printed."""

    def __init__(self, client, cell, code):
        self.client, self.cell, self.code = client, cell, code
        self.count = None
        self.is_running = True
        self.is_missed = False  # whether its window was away while it ran
        self._items = []
        self._size = 0
        self._is_full = False
        self._clears = False

    def take(self, kind, content):
        """Apply a message of the kernel's as a window would."""
        if kind == "execute_input":
            self.count = content.get("execution_count")
        elif kind == "clear_output":
            self._clears = True
            if not content.get("wait"):
                self._clear()
        elif kind in SHOWN:
            if self._clears:
                self._clear()
            self._add(kind, content)

    def replace(self, display, content):
        """Replace the data of all outputs with this display id."""
        for item in self._items:
            if isinstance(item, Rich) and item.display == display:
                item.replace(content)

    @property
    def outputs(self):
        """The outputs as in a notebook."""
        return [item.as_output() for item in self._items]

    def _clear(self):
        self._items, self._size, self._is_full, self._clears = [], 0, False, False

    def _add(self, kind, content):
        if self._is_full and kind != "error":
            return
        if kind == "stream":
            name = content.get("name", "stdout")
            if not (self._items and self._items[-1].continues(name)):
                self._items.append(Stream(name))
            self._size += self._items[-1].add(content.get("text", ""))
        else:
            self._size += len(json.dumps(content))
            display = (content.get("transient") or {}).get("display_id")
            self._items.append(Rich(kind, content, display))
        if self._size > MOST_BYTES and not self._is_full:
            self._is_full = True
            notice = Stream("stderr")
            notice.add(TRUNCATED)
            self._items.append(notice)


class Recorder:
    """The executions of one kernel whose output a window may not have shown."""

    def __init__(self):
        self._executions = {}
        self._clients = set()

    @property
    def missed(self):
        """Those that their window has not followed to the end, in the order of their requests."""
        return [each for each in self._executions.values() if each.is_missed]

    def knows(self, request):
        """Whether this is a request to run a cell that is recorded."""
        return request in self._executions

    def connected(self, client):
        """A window is connected to the kernel."""
        self._clients.add(client)

    def disconnected(self, client):
        """It no longer is: its executions go on without it."""
        self._clients.discard(client)
        for execution in self._executions.values():
            if execution.client == client:
                execution.is_missed = True

    def request(self, request, client, cell, code):
        """A window asks the kernel to run a cell; output of its earlier runs is replaced."""
        for id, earlier in list(self._executions.items()):
            if cell and earlier.cell == cell and not earlier.is_running:
                del self._executions[id]
        if len(self._executions) >= MOST_EXECUTIONS:
            del self._executions[next(iter(self._executions))]
        self._executions[request] = Execution(client, cell, code)

    def take(self, kind, request, content):
        """Record a message that the kernel sends for a request."""
        if kind == "update_display_data":
            display = (content.get("transient") or {}).get("display_id")
            for each in self._executions.values():
                each.replace(display, content)
            return
        execution = self._executions.get(request)
        if execution is None:
            return
        if kind == "status" and content.get("execution_state") == "idle":
            execution.is_running = False
            if not execution.is_missed:
                del self._executions[request]
        else:
            execution.take(kind, content)

    def ended(self):
        """The kernel is not running any more."""
        for id, execution in list(self._executions.items()):
            execution.is_running = False
            if not execution.is_missed:
                del self._executions[id]

    def saved(self, cells):
        """Forget what the cells of a saved notebook have."""
        for id, execution in list(self._executions.items()):
            cell = None if execution.is_running else cell_of(cells, execution)
            if cell and execution.is_missed and has(cell, execution):
                del self._executions[id]


def merge(cells, executions):
    """Put the output of executions into the cells of a notebook; whether that changed any."""
    changed = False
    for execution in executions:
        cell = cell_of(cells, execution)
        if cell is None or execution.count is None or is_newer(cell, execution):
            continue
        outputs = execution.outputs
        count = None if execution.is_running else execution.count
        if (cell.get("outputs"), cell.get("execution_count")) == (outputs, count):
            continue
        cell["outputs"], cell["execution_count"] = outputs, count
        # As a window does with a cell that it runs.
        cell.setdefault("metadata", {})["trusted"] = True
        changed = True
    return changed


def cell_of(cells, execution):
    """The cell that was run: by its id, in old notebooks without ids by its text if unique."""
    codes = [cell for cell in cells if cell.get("cell_type") == "code"]
    for cell in codes:
        if execution.cell and cell.get("id") == execution.cell:
            return cell
    same = [cell for cell in codes if "id" not in cell and source_of(cell) == execution.code]
    return same[0] if len(same) == 1 else None


def source_of(cell):
    """The text of a cell, which files have in lines."""
    source = cell.get("source", "")
    return source if isinstance(source, str) else "".join(source)


def is_newer(cell, execution):
    """Whether the cell was run again since."""
    return (cell.get("execution_count") or 0) > execution.count


def has(cell, execution):
    """Whether a saved cell has the output of an execution, or of a newer one."""
    if execution.count is None or is_newer(cell, execution):
        return True
    is_same = cell.get("execution_count") == execution.count
    return is_same and len(cell.get("outputs", ())) >= len(execution.outputs)


def overwritten(line):
    """What a terminal shows of a line in which carriage returns go back to its beginning."""
    if "\r" not in line:
        return line
    shown = ""
    for part in line.split("\r"):
        shown = part + shown[len(part) :]
    return shown
