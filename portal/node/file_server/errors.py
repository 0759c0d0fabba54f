"""Refusals: statuses, codes and texts of failed requests."""

from __future__ import annotations

import errno
import os
from urllib.parse import quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Refused(Exception):
    """A request that is answered with a status and a reason for the user.

    `code` names the reason for programs, `field` the invalid part of the request, `folders` the
    storage folders concerned, percent-encoded. `headers` belong to the answer; `condition` is the
    XML of a WebDAV precondition (RFC 4918, 16).
    """

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        field: str = "",
        folders: Sequence[str] = (),
        *,
        headers: Mapping[str, str] | None = None,
        condition: str = "",
    ) -> None:
        super().__init__(detail)
        self.folders = list(folders)
        self.headers = dict(headers or {})
        self.condition = condition
        self.status = status
        self.code = code
        self.detail = detail
        self.field = field


SHARED = "shared"
"""Code of a refusal to move or delete storage folders that others have access to."""


def shared(names: Sequence[bytes]) -> Refused:
    """The refusal for storage folders that others have access to."""
    words = ", ".join(
        f"“{os.fsdecode(name).encode('utf-8', 'replace').decode()}”" for name in names[:5]
    )
    further = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return Refused(
        409,
        SHARED,
        f"{words}{further} is shared with others. Take their access back on the Files page first.",
        folders=[quote(name, safe="") for name in names],
    )


def no_such() -> Refused:
    """The refusal for files that do not exist, or whose existence is not revealed to the user."""
    return Refused(404, "not_found", "There is no such file or folder.")


def no_method(allowed: str) -> Refused:
    """The refusal of a method; `allowed`: the methods of this address, separated by commas."""
    detail = f"This address accepts only {allowed}."
    return Refused(405, "method", detail, headers={"Allow": allowed})


_REFUSALS = {
    errno.ENOENT: (404, "not_found", "There is no such file or folder."),
    errno.ENOTDIR: (404, "not_found", "There is no such file or folder."),
    errno.EACCES: (403, "permission", "You have no permission to do this."),
    errno.EPERM: (403, "permission", "You have no permission to do this."),
    errno.EROFS: (403, "read_only", "This file system is read-only."),
    errno.EEXIST: (409, "exists", "Something of this name exists already."),
    errno.ENOTEMPTY: (409, "exists", "This folder is not empty."),
    errno.EISDIR: (409, "folder", "This is a folder."),
    errno.ENAMETOOLONG: (422, "name", "This name is too long for the file system."),
    errno.EINVAL: (422, "name", "The file system does not accept this."),
    errno.ELOOP: (409, "loop", "This link leads in a circle."),
    errno.ENOSPC: (507, "full", "The file system is full."),
    errno.EDQUOT: (507, "quota", "Your quota is used up. Delete something, or ask for more."),
    errno.EFBIG: (413, "too_large", "The file is too large for the file system."),
    errno.ETXTBSY: (409, "busy", "This file is a program that is running."),
    errno.EBUSY: (409, "busy", "This is in use."),
    errno.EXDEV: (409, "other_file_system", "This is on another file system."),
    errno.EMFILE: (503, "busy", "Too many files are open. Try again in a moment."),
    errno.ESTALE: (503, "away", "The file system does not answer. Try again in a minute."),
    errno.ETIMEDOUT: (503, "away", "The file system does not answer. Try again in a minute."),
    errno.EHOSTDOWN: (503, "away", "The file system does not answer. Try again in a minute."),
    errno.EHOSTUNREACH: (503, "away", "The file system does not answer. Try again in a minute."),
    errno.ENOTCONN: (503, "away", "The file system does not answer. Try again in a minute."),
}


def refusal_of(error: OSError) -> Refused:
    """The refusal for an error of the operating system."""
    status, code, detail = _REFUSALS.get(
        error.errno or 0,
        (500, "error", f"The file system reports: {error.strerror or 'an unknown error'}."),
    )
    return Refused(status, code, detail)
