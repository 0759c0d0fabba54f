"""[files]: users' visible folders, and the file servers that run as the users."""

from __future__ import annotations

import re
from typing import Annotated, Self

from pydantic import AfterValidator, BaseModel, Field, model_validator

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


AREAS = frozenset({"home", "storage"})
"""The areas that everybody has."""


class FileLink(BaseModel):
    """A page of another program of the site for the folders of an area, such as Globus."""

    model_config = FROZEN

    title: str = Field(min_length=1, max_length=60, description='Such as "Open in Globus".')
    area: str = Field(
        description='The folders that have the link: those of "home", "storage" or one of `roots`.'
    )
    url: str = Field(
        pattern=r"^https?://[!-\[\]-~]+$",
        max_length=500,
        description="{path} stands for the folder below its area, percent-encoded, {user} for the "
        'user: "https://app.globus.org/file-manager?origin_id=…&origin_path=/~/{path}/".',
    )


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
    check_names: bool = Field(
        False,
        description="Whether Share says that there is no user or group of a name. Otherwise "
        "nobody is told who has an account.",
    )
    links: tuple[FileLink, ...] = Field(
        (), max_length=10, description="Links from the folders of an area to other programs."
    )

    @model_validator(mode="after")
    def _check_links(self) -> Self:
        for number, link in enumerate(self.links):
            if link.area not in AREAS | set(self.roots):
                raise ValueError(f"links.{number}.area: there is no area “{link.area}”")
        return self
