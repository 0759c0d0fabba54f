"""The user's files and the work in progress on them, as handlers of requests use them."""

from __future__ import annotations

from portal.node.file_server.locks import Locks
from portal.node.file_server.operations.fetch_rules import FetchRules
from portal.node.file_server.operations.manager import Operations
from portal.node.file_server.operations.records import Records
from portal.node.file_server.roots import Root, Roots
from portal.node.file_server.sharing.shares import Shares
from portal.node.file_server.state import state_folders
from portal.node.file_server.tree.folder_size import Usage
from portal.node.file_server.uploads.records import Store
from portal.node.file_server.uploads.uploads import Uploads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from portal.node.file_server.location import Location
    from portal.node.file_server.order import Order


class UserFiles:
    """The storage areas of an order, with uploads, operations, usage counts and shares."""

    def __init__(self, order: Order) -> None:
        self.order = order
        self.roots = roots_of(order)
        self.deadlines = self.roots.deadlines
        self.uploads = uploads_of(order, self.roots)
        self.records = Records(order.roots.get("home"), order.scope)
        rules = FetchRules.of(order.fetch)
        self.operations = Operations(self.roots, self.deadlines, self.records, rules)
        self.locks = Locks()
        self.usage = Usage(self.roots)
        self.shares = Shares(self.roots)

    def is_busy(self) -> bool:
        """Whether work goes on in the background."""
        return self.operations.is_busy or self.usage.is_busy or self.shares.busy()

    def reach(self, location: Location) -> None:
        """Raise Refused (503) if the file system does not answer.

        The caller can then use it in its own thread, without a deadline.
        """
        self.deadlines.call(location.root, lambda: self.roots.probe(location))


def roots_of(order: Order) -> Roots:
    """The directories that an order gives access to."""
    roots = {name: Root(name, path) for name, path in order.roots.items()}
    return Roots(roots, order.shared)


def uploads_of(order: Order, roots: Roots) -> Uploads:
    """The user's uploads."""
    return Uploads(roots, Store(state_folders(order.roots, "uploads")), order.upload_hours)
