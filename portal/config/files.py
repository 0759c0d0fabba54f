"""[files]: users' visible folders, and the file servers that run as the users."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, BaseModel, Field

from portal.config.base import FROZEN, AnyPorts, Below

RootName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,31}$")]
RootPath = Annotated[str, Field(pattern=r"^(/(\{user\}|[A-Za-z0-9._@%+=-])+)+$"), Below]
_HOST = re.compile(r"(\*|(\*\.)?[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*)(:[0-9]{1,5})?")
_PROXY = re.compile(r"http://[A-Za-z0-9.-]+(:[0-9]{1,5})?/?")


def _is_host(text: str) -> str:
    if not _HOST.fullmatch(text):
        raise ValueError('must be a host, such as "data.example.org" or "*.example.org"')
    return text


def _is_proxy(text: str) -> str:
    if text and not _PROXY.fullmatch(text):
        raise ValueError('must be as "http://proxy.example.org:3128"')
    return text


FetchHost = Annotated[str, AfterValidator(_is_host)]
FetchProxy = Annotated[str, AfterValidator(_is_proxy)]
RESERVED = frozenset({"home", "storage", "shared"})


class FileSettings(BaseModel):
    """Users' files, shown by a file server that runs as the user on login.files_host."""

    model_config = FROZEN

    roots: dict[RootName, RootPath] = Field(
        {},
        description='Further folders that people see, such as scratch = "/scratch/{user}"; their '
        "home directory and their storage folders always are.",
    )
    quota: dict[str, str] = Field(
        {},
        description='How the quota of a folder is asked, by its name ("home", "storage", or one of '
        '`roots`): "df", "quota", "lfs", or a command that prints used and limit in bytes; '
        '"none" shows none. Others: "df".',
    )
    ports: AnyPorts = Field(
        (0, 0), description="First and last port of file servers; 0: any free port."
    )
    idle_minutes: int = Field(
        15, ge=1, le=1440, description="Minutes without use after which a file server ends."
    )
    upload_hours: int = Field(
        48, ge=1, le=24 * 30, description="Hours that an upload that was cut can be continued."
    )
    fetch_hosts: tuple[FetchHost, ...] = Field(
        (),
        description="Hosts from which people may fetch files by a URL, with another port than 443 "
        'as "data.example.org:8443". "*.example.org" stands for all hosts below, "*" for all; '
        "only a host that is named itself may have a private address. Empty: fetching is off.",
    )
    fetch_http: bool = Field(False, description="Whether files may be fetched without TLS.")
    fetch_proxy: FetchProxy = Field(
        "",
        description='The proxy through which files are fetched, such as "http://proxy:3128"; it '
        "looks up the names of hosts. Empty: none, whatever users' environments say.",
    )
