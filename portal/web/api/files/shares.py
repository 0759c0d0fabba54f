"""Shared folders over the REST API."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, Field

from portal.core.files.shares import Access, FolderShare, Kind, SharedFolder, ShareKey
from portal.errors import NotFound
from portal.web.api import guarded
from portal.web.api.models.base import REQUEST, NoContent, ResponseModel, Time
from portal.web.api.operation import Reply, operation
from portal.web.context import person, services
from portal.web.http.body import read_model, read_nothing

blueprint = guarded("shares", area="files:")


class ShareRequest(BaseModel):
    """The access of the user or group to the folder."""

    model_config = REQUEST

    access: Access


class ShareOut(ResponseModel):
    """A user or group that a folder is shared with."""

    folder: str
    kind: Kind
    name: str
    access: Access
    state: str
    """given; giving or ending while a large folder's files are changed, or after a failure."""
    created: Time


class NamesOut(ResponseModel):
    """The number of files, and the names of the first ones."""

    count: int
    names: list[str]


class ChangeOut(ResponseModel):
    """The progress of a change of access."""

    running: bool
    done: int
    """Files and folders so far."""
    others: NamesOut
    """Files of other owners, which only these can share."""
    exposed: NamesOut
    """Files beside the folder that all may read, and that the user or group can now reach."""
    problem: str


class ShareChangeOut(ResponseModel):
    """A share, and the progress of setting it."""

    share: ShareOut
    change: ChangeOut


class ShareListOut(ResponseModel):
    """The shares of a folder, and their last change."""

    shares: list[ShareOut]
    change: ChangeOut | None


class SharedFolderOut(ResponseModel):
    """A folder that another user shares with the caller."""

    name: Annotated[str, Field(description="for mounts: OWNER/FOLDER")]
    owner: str
    folder: str
    access: Access


class SharedListOut(ResponseModel):
    """The folders that others share with the caller."""

    folders: list[SharedFolderOut]


@blueprint.get("/folders/shared")
@operation("What others share with you", SharedListOut)
def list_shared() -> SharedListOut:
    """The folders that others share with the caller or one of the caller's groups."""
    folders = services().shares.with_me(person())
    return SharedListOut(folders=[_shared(folder) for folder in folders])


@blueprint.get("/folders/<folder>/shares")
@operation("Whom a folder is shared with", ShareListOut)
def list_shares(folder: str) -> ShareListOut:
    """The users and groups that one of the caller's storage folders is shared with."""
    shares, change = services().shares.of_folder(person(), folder)
    return ShareListOut(
        shares=[_share(share) for share in shares], change=_change(change) if change else None
    )


@blueprint.put("/folders/<folder>/shares/<kind>/<name>")
@operation("Share a folder", ShareChangeOut, other_statuses=(202,), body=ShareRequest)
def share_folder(folder: str, kind: str, name: str) -> Reply[ShareChangeOut]:
    """Share one of the caller's storage folders with a user or group.

    202 while a large folder's files are still being changed. Unless the site has names checked
    (422 for the field `name`), the response does not depend on whether there is such a user or
    group.
    """
    access = read_model(ShareRequest).access
    share, report = services().shares.share(person(), _key(folder, kind, name), access)
    answer = ShareChangeOut(share=_share(share), change=_change(report))
    return Reply(answer, status=202 if answer.change.running else 200)


@blueprint.delete("/folders/<folder>/shares/<kind>/<name>")
@operation("Take a share back", NoContent, other_statuses=(202,))
def take_share_back(folder: str, kind: str, name: str) -> Reply[NoContent]:
    """Take access to a folder back; 202 while a large folder's files are still being changed.

    Running sessions that have it mounted keep the files that they have open.
    """
    read_nothing()
    ended = services().shares.take_back(person(), _key(folder, kind, name))
    return Reply(NoContent(), status=204 if ended else 202)


def _key(folder: str, kind: str, name: str) -> ShareKey:
    if kind == "user":
        return ShareKey(person().name, folder, "user", name)
    if kind == "group":
        return ShareKey(person().name, folder, "group", name)
    raise NotFound("Share it with a user or a group.")


def _share(share: FolderShare) -> ShareOut:
    key = share.key
    return ShareOut(
        folder=key.folder,
        kind=key.kind,
        name=key.name,
        access=share.access,
        state=share.state.value,
        created=share.created,
    )


def _shared(folder: SharedFolder) -> SharedFolderOut:
    return SharedFolderOut(
        name=folder.name, owner=folder.owner, folder=folder.folder, access=folder.access
    )


def _change(report: Any) -> ChangeOut:
    """Convert the report of the user's file server, which is an untrusted process of the user."""
    return ChangeOut(
        running=bool(report.get("running")),
        done=_number(report.get("done")),
        others=_names(report.get("others")),
        exposed=_names(report.get("exposed")),
        problem=str(report.get("problem") or "")[:400],
    )


def _names(value: Any) -> NamesOut:
    data = value if isinstance(value, dict) else {}
    names = data.get("names")
    listed = names if isinstance(names, list) else []
    return NamesOut(
        count=_number(data.get("count")), names=[str(name)[:1024] for name in listed[:20]]
    )


def _number(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
