"""Operations on users' files, carried out by their file servers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import quote, unquote, urlencode

from pydantic import BaseModel, ValidationError

from portal.core.auth.person import Person
from portal.core.files.entries import (
    Entry,
    Listing,
    Operation,
    Operations,
    Quota,
    SearchResult,
    Uploads,
    Usage,
)
from portal.core.files.location import canonical
from portal.core.files.server import FileReply, FileRequest
from portal.core.files.shares import folder_name
from portal.core.interfaces.systems import RecordEvent
from portal.errors import (
    Conflict,
    FieldError,
    FolderShared,
    Forbidden,
    InvalidRequest,
    NotFound,
    PortalError,
    Unavailable,
)
from portal.node.common.folder_name import name_problem
from portal.services.files.servers import FileServers

SHARED = "shared"
"""The code of a file server's refusal (node/file_server/errors.py)."""
Model = TypeVar("Model", bound=BaseModel)
Query = Mapping[str, object]
Json = Mapping[str, Any]


class Files:
    """The files and folders of users. Locations are percent-encoded, as in a URL.

    All methods raise NotFound, Forbidden, Conflict, InvalidRequest or Unavailable.
    """

    def __init__(self, servers: FileServers, record: RecordEvent) -> None:
        self._servers = servers
        self._record = record

    # Reading

    def list(self, person: Person, location: str, query: Query) -> Listing:
        """A page of a folder's entries; `query`: sort, order, search, hidden, offset, limit."""
        return self._get(Listing, person, f"list/{location}", query)

    def entry(self, person: Person, location: str) -> Entry:
        """One file or folder."""
        return self._get(Entry, person, f"entry/{location}")

    def search(
        self, person: Person, location: str, text: str, *, hidden: bool = False
    ) -> SearchResult:
        """The entries below a folder with this text in their names."""
        query = {"text": text, "hidden": "true" if hidden else None}
        return self._get(SearchResult, person, f"search/{location}", query)

    def usage(self, person: Person, location: str) -> Usage:
        """Number and size of the files below a folder; counted in the background, so poll it."""
        return self._get(Usage, person, f"usage/{location}")

    def quota(self, person: Person, root: str) -> Quota:
        """The quota of a storage area."""
        return self._get(Quota, person, f"quota/{quote(root, safe='')}")

    def uploads(self, person: Person) -> Uploads:
        """The user's uploads that are not complete."""
        return self._get(Uploads, person, "uploads")

    # Changing

    def make_folder(self, person: Person, location: str) -> Entry:
        """Create a folder; a storage folder must have a name that sessions can mount."""
        location = canonical(location)
        if _is_storage_folder(location):
            _check_mountable(unquote(location.rpartition("/")[2], errors="replace"), "path")
        return self._post(Entry, person, f"folder/{location}", {})

    def rename(
        self, person: Person, location: str, name: str, *, shares_follow: bool = False
    ) -> Entry:
        """Rename a file or folder; never replaces another one.

        A storage folder must get a name that sessions can mount. `shares_follow`: the caller moves
        the shares of a storage folder to its new name. Raises FolderShared without that.
        """
        location = canonical(location)
        is_same = unquote(location.rpartition("/")[2], errors="replace") == name
        is_refused = _is_storage_folder(location) and not is_same and name_problem(name)
        if is_refused and self.entry(person, location).is_folder:  # else a file between them
            _check_mountable(name, "name")
        body = {"name": name, "shares_follow": shares_follow}
        return self._post(Entry, person, f"rename/{location}", body)

    def drop_upload(self, person: Person, id: str) -> None:
        """Cancel an upload."""
        self.ask(person, "DELETE", f"uploads/{quote(id, safe='')}")

    # Operations, which may take long

    def operate(self, person: Person, order: Json) -> Operation:
        """Start an operation: copy, move, delete, unpack, fetch, or change permissions.

        `order`: kind, items, to, on_conflict, mode, url, name, sha256. Short operations have ended
        on return. Raises FolderShared.
        """
        return self._post(Operation, person, "operations", order)

    def operations(self, person: Person) -> Sequence[Operation]:
        """The running operations, and those of the last hour."""
        return self._get(Operations, person, "operations").operations

    def operation(self, person: Person, id: str) -> Operation:
        """One operation."""
        return self._get(Operation, person, f"operations/{quote(id, safe='')}")

    def cancel(self, person: Person, id: str) -> Operation:
        """Cancel an operation; completed items are not undone."""
        return _parse(Operation, self.ask(person, "DELETE", f"operations/{quote(id, safe='')}"))

    def _get(
        self, model: type[Model], person: Person, action: str, query: Query | None = None
    ) -> Model:
        return _parse(model, self.ask(person, "GET", action, query=query))

    def _post(self, model: type[Model], person: Person, action: str, body: Json) -> Model:
        return _parse(model, self.ask(person, "POST", action, body=body))

    def ask(
        self,
        person: Person,
        method: str,
        action: str,
        location: str = "",
        query: Query | None = None,
        body: Json | None = None,
    ) -> Json:
        """Ask the user's server for an action (node/file_server/control.py); returns its JSON."""
        parameters = {name: value for name, value in (query or {}).items() if value is not None}
        path = f"/v1/{action}" + (f"/{location}" if location else "")
        path += f"?{urlencode(parameters)}" if parameters else ""
        reply = self._servers.ask(person, FileRequest(method, path, body))
        if reply.status >= 400:
            raise _error(reply)
        return reply.data


def _is_storage_folder(location: str) -> bool:
    """Whether a canonical location is directly in the storage area."""
    root, _, name = location.partition("/")
    return root == "storage" and bool(name) and "/" not in name


def _check_mountable(name: str, field: str) -> None:
    """Raise InvalidRequest if no session could mount a storage folder of this name."""
    if problem := name_problem(name):
        raise InvalidRequest([FieldError(field, f"{problem[0].upper()}{problem[1:]}.")])


def _parse(model: type[Model], data: Json) -> Model:
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise Unavailable("Your file server gave an answer that makes no sense.") from error


def _error(reply: FileReply) -> PortalError:
    """The error for a server's answer, whose text is from a process of the user."""
    detail = str(reply.data.get("detail") or "Your file server cannot do this.")[:400]
    field = str(reply.data.get("field") or "path")[:40]
    if reply.data.get("code") == SHARED and (folders := _folders(reply.data.get("folders"))):
        return FolderShared(detail, folders)
    error = _error_kind(reply.status, field, detail)
    error.code, error.field = str(reply.data.get("code") or "")[:40], field
    return error


def _folders(reported: object) -> list[str]:
    """Names of storage folders; [] if the portal cannot share all of them."""
    names = [folder_name(text) for text in reported] if isinstance(reported, list) else []
    return [name for name in names if name is not None] if None not in names else []


def _error_kind(status: int, field: str, detail: str) -> PortalError:
    if status == 422:
        return InvalidRequest([FieldError(field, detail)])
    kinds: dict[int, type[PortalError]] = {403: Forbidden, 404: NotFound}
    if status in kinds:
        return kinds[status](detail)
    return (Unavailable if status >= 500 and status != 507 else Conflict)(detail)
