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


class Shared(Refused):
    """The refusal to move, delete or replace storage folders that others have access to."""

    def __init__(self, recipients: Mapping[bytes, Sequence[str]]) -> None:
        """`recipients`: who has access, by the folder's name."""
        sentences = [
            f"“{os.fsdecode(name).encode('utf-8', 'replace').decode()}” is shared with "
            f"{_listed(who)}, who would lose it."
            for name, who in list(recipients.items())[:5]
        ]
        if len(recipients) > 5:
            sentences.append(f"{len(recipients) - 5} more are shared, too.")
        sentences.append(
            "Delete or move it on the Files page, which also names the sessions that have it "
            "mounted, or take their access back there first."
        )
        folders = [quote(name, safe="") for name in recipients]
        super().__init__(409, "shared", " ".join(sentences), folders=folders)
        self.recipients = dict(recipients)


def _listed(words: Sequence[str]) -> str:
    if len(words) > 5:
        words = [*words[:5], f"{len(words) - 5} more"]
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


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
