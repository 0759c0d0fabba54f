"""A site's apps and images, as described by the files in apps/ and images/."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from portal.core.apps.titles import Naming, namings
from portal.core.launch.own_image import OWN, PLACEHOLDER, image_title
from portal.core.launch.site_files import SifFile
from portal.core.session.session import Session
from portal.core.validation import field_errors

AppName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,30}$")]
RESERVED = "control"
"""The gateway's name for the runner itself."""
_PATH = r"/([!-.0-\[\]-~][!-\[\]-~]*)?"
# Not "//", which browsers read as the start of a host name.


def _check_path(path: str) -> str:
    if not re.fullmatch(_PATH, path):
        text = "a path begins with one / and has no blanks or backslashes"
        raise PydanticCustomError("path", text)
    return path


def _check_request(request: str) -> str:
    method, path = split_request(request)
    _check_path(path)
    if not re.fullmatch(r"[A-Z]{1,20}", method):
        raise PydanticCustomError("request", 'write "/path", or "PUT /path"')
    return request


def split_request(request: str) -> tuple[str, str]:
    """Method and path of "PUT /path"; without a method it is GET."""
    method, _, path = request.rpartition(" ")
    return method or "GET", path


def _check_expression(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        problem = {"problem": str(error)}
        raise PydanticCustomError(
            "expression", "this is not a regular expression: {problem}", problem
        ) from None
    return text


def _check_program(name: str) -> str:
    if not re.fullmatch(r"(/[!-~]*)?[^\s/]+", name):
        raise PydanticCustomError("program", "name a program, or a file by its absolute path")
    return name


Kind = Literal["web", "ssh", "hub"]
WebPath = Annotated[str, AfterValidator(_check_path)]
Request = Annotated[str, AfterValidator(_check_request)]
Program = Annotated[str, AfterValidator(_check_program)]


class AppSpec(BaseModel):
    """One app, as described by apps/<name>/app.toml; `timeout` in seconds."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: AppName
    title: Annotated[str, Field(min_length=1, max_length=60)]
    icon: str = "box"
    description: str = ""
    path: WebPath = "/"
    ready: WebPath = "/"
    timeout: Annotated[int, Field(ge=1, le=3600)] = 60
    shares: AppName | None = None
    """The app whose process also serves this one (Notebook: JupyterLab's)."""
    kind: Kind = "web"
    """How users connect: with a browser, with an SSH client, or through JupyterHub."""
    listen: Literal["unix", "tcp"] = "unix"
    """On the socket $SLIPWAY_SOCKET, or on 127.0.0.1:$PORT in a separate network namespace."""
    detect: tuple[Program, ...] = ()
    """Programs or absolute paths; an image with any of them can run the app; (): any image can."""
    public: bool = False
    """Whether the owner may make it public."""
    keep_origin: bool = False
    """Whether it gets the same origin in its owner's next session of the same image, so that the
    browser's cache and settings remain valid; not for apps that may be public."""
    asks: Annotated[str, Field(max_length=200)] = ""
    """The prompt shown to the owner before it starts; the answer is in $SLIPWAY_ASKED."""
    must_answer: bool = False
    """Whether it cannot start without an answer."""
    own_title: bool = False
    """Whether its owner may give it a title."""
    files: WebPath | Literal[""] = ""
    """The path below which it opens files and folders of the session's home; "" if it cannot."""
    static_page: bool = False
    """Whether its page at "/" is a static file without secrets, identical for all users, so that it
    may be compressed; other pages never are, since their length could reveal secrets (BREACH)."""
    background: tuple[Request, ...] = ()
    """Background requests of an open window, which do not count as use: "/path" for GET, else
    "PUT /path"; paths are prefixes."""
    noise: Annotated[int, Field(ge=0)] = 0
    """Bytes per minute that an open but unused window sends over its WebSockets."""
    busy: WebPath | Literal[""] = ""
    """A path whose response shows whether the app is computing; "" if there is none."""
    busy_when: Annotated[str, AfterValidator(_check_expression)] = ""
    """A regular expression that matches that response while the app is computing."""
    script: str = ""
    """The shell script that starts it; "" for an app that shares another's process."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for field, text in self._contradictions():
            raise PydanticCustomError("whole", "{text}", {"text": text, "field": field})
        return self

    def _contradictions(self) -> Iterator[tuple[str, str]]:
        if self.name == RESERVED:
            yield "name", f"no app can be called {RESERVED}"
        if self.shares:
            yield from self._as_sharer()
        elif not self.script:
            yield "command", "this is needed, or a start.sh beside it, or shares"
        if self.keep_origin and self.public:
            yield "keep_origin", "an app that may be public never gets the same origin again"
        if self.must_answer and not self.asks:
            yield "must_answer", "this needs asks"
        if bool(self.busy) != bool(self.busy_when):
            yield "busy" if self.busy else "busy_when", "set both busy and busy_when, or neither"
        if self.kind != "web":
            for field in sorted(_WEB_ONLY & self.model_fields_set):
                yield field, f"this does not apply to apps of the kind {self.kind}"

    def _as_sharer(self) -> Iterator[tuple[str, str]]:
        if self.script:
            yield "shares", "it starts by itself, so it cannot share another app's server"
        if self.shares == self.name:
            yield "shares", "it cannot share its own server"
        for field in sorted(_SERVER_FIELDS & self.model_fields_set):
            yield field, "this belongs to the app whose server it shares"

    @property
    def server(self) -> str:
        """Name of the app whose process serves this one."""
        return self.shares or self.name


_WEB_ONLY = {
    "shares", "public", "keep_origin", "listen", "static_page", "background", "busy", "own_title",
}  # fmt: skip
_SERVER_FIELDS = {"listen", "static_page", "asks", "must_answer", "busy", "busy_when", "noise"}


class Image(BaseModel):
    """One version of one environment, as described by images/<env>/<version>/image.toml."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    environment: str
    version: str
    path: str
    """Path of the SIF file on the compute nodes."""
    title: str
    """Names environment and version, such as "Python 3.13"."""
    environment_title: Annotated[str, Field(max_length=60)] = ""
    """Names the environment; "": the common prefix of its versions' titles."""
    icon: Annotated[str, Field(pattern=r"^[a-z0-9-]{0,40}$")] = ""
    """One of Bootstrap's icons; "": that of the default app."""
    description: str = ""
    apps: tuple[AppName, ...] = ()
    """The apps to offer, in this order; (): all that the image can run."""
    provides: tuple[AppName, ...] = ()
    """Apps that it can run, for forms before an administrator's session has checked the image."""
    default_app: AppName | None = None
    default: bool = False
    """Whether the launch form preselects it."""
    retired: bool = False
    """Whether it can no longer be launched; existing sessions keep it."""
    packages: tuple[str, ...] = ()
    """Names of its main packages, for the launch form's search."""
    files: tuple[SifFile, ...] = ()
    """Its files, including those that a build has replaced."""


def own_image(image: str) -> Image:
    """Build a catalog entry for a user-supplied image."""
    title = image_title(image)
    return Image(environment=OWN, version=title, path=PLACEHOLDER, title=title)


def problems_of(error: ValidationError) -> list[tuple[str, str]]:
    """The wrong keys of a file, each with the reason for its author."""
    errors = zip(field_errors(error), error.errors(include_url=False), strict=True)
    return [
        (
            detail.get("ctx", {}).get("field") or translated.field,
            _text(translated.message, detail["type"]),
        )
        for translated, detail in errors
    ]


def _text(message: str, kind: str) -> str:
    if kind == "string_pattern_mismatch":
        return "use up to 31 of a-z, 0-9 and -, a letter first"
    return message


def misfits(apps: Mapping[str, AppSpec]) -> dict[str, tuple[str, str]]:
    """The apps that conflict with others: by name, the wrong key and the reason."""
    problems = {}
    titles: dict[str, str] = {}
    for name, spec in apps.items():
        other = titles.setdefault(spec.title, name)
        if other != name:
            problems[name] = ("title", f"the app {other} has the same title")
    for name, spec in apps.items():
        server = None if spec.shares in problems else apps.get(spec.shares or "")
        if spec.shares and server is None:
            problems[name] = ("shares", f"there is no app {spec.shares}")
        elif server and (server.shares or server.kind != "web"):
            problems[name] = ("shares", f"{spec.shares} has no web server of its own")
        elif server and spec.public and not server.public:
            problems[name] = ("public", f"{spec.shares}, whose server it shares, is never public")
    return problems


class Catalog(BaseModel):
    """All apps and images of a site."""

    model_config = ConfigDict(frozen=True)

    apps: dict[str, AppSpec]
    images: tuple[Image, ...]
    """Images that can be launched."""
    retired: tuple[Image, ...] = ()
    """Images that cannot be launched any more, but that sessions may still use."""
    left_out: tuple[Image, ...] = ()
    """Images with an invalid description: not launched, but rules apply to their files."""
    detected: dict[tuple[str, str], tuple[str, ...]] = {}
    """The apps that administrators' sessions detected in an image, by environment and version."""
    problems: tuple[str, ...] = ()
    """Errors in the site's files, for administrators."""

    def image(self, environment: str, version: str | None) -> Image | None:
        """The image of this environment; without a version the newest (highest number).

        A retired version is returned too, for the sessions that use it.
        """
        candidates = (*self.images, *(self.retired if version is not None else ()))
        versions = (image for image in candidates if image.environment == environment)
        return next((image for image in versions if version in (None, image.version)), None)

    def of_session(self, session: Session) -> Image | None:
        """A session's image: its owner's, or one of the site's if it still exists."""
        if session.image:
            return own_image(session.image)
        return self.image(session.environment, session.version)

    def naming(self, environment: str, version: str | None) -> Naming:
        """The displayed name of a version, even if it no longer exists; None: the newest."""
        image = self.image(environment, version)
        if image is not None:
            return self._namings[environment, image.version]
        if environment == OWN:
            return Naming("Own image", version or "", version or "Own image")
        title = self.environment_title(environment)
        return Naming(title, version or "", f"{title} {version or ''}".rstrip())

    def environment_title(self, environment: str) -> str:
        """The displayed title of an environment, also a retired one; without images: its name."""
        matching = (naming for (name, _), naming in self._namings.items() if name == environment)
        naming = next(matching, None)
        return naming.environment if naming else environment

    @cached_property
    def _namings(self) -> dict[tuple[str, str], Naming]:
        return namings((*self.images, *self.retired))

    @property
    def proposed(self) -> Image | None:
        """The image that the launch form preselects: the default, else the first."""
        first = self.images[0] if self.images else None
        return next((image for image in self.images if image.default), first)

    @cached_property
    def everywhere(self) -> frozenset[str]:
        """The apps that do not distinguish images: each has them, or none needs a program."""
        if len(self.images) < 2:
            return frozenset(name for name, spec in self.apps.items() if not spec.detect)
        offered = [self.apps_of(image.environment, image.version) for image in self.images]
        return frozenset.intersection(*(frozenset(app.name for app in apps) for apps in offered))

    def apps_of(
        self, environment: str, version: str, detected: Collection[str] = ()
    ) -> list[AppSpec]:
        """The apps that an image offers; `detected`: those that a session detected in it."""
        image = self.image(environment, version)
        runnable = detected or self.detected.get((environment, version)) or self._presumed(image)
        offered = [name for name in self._candidates(image) if name in runnable]
        return [self.apps[name] for name in offered if self.apps[name].server in runnable]

    def offered(self, session: Session) -> list[AppSpec]:
        """The apps that a session offers to its owner."""
        apps = self.apps_of(session.environment, session.version, session.apps)
        return [spec for spec in apps if spec.kind != "hub" or session.hub_prefix]

    def server_of(self, app: str) -> str:
        """Name of the app whose process serves this one; an unknown one serves itself."""
        spec = self.apps.get(app)
        return spec.server if spec else app

    def kind_of(self, app: str) -> Kind:
        """How users connect to this app; an unknown one counts as "web"."""
        spec = self.apps.get(app)
        return spec.kind if spec else "web"

    def startable(self, environment: str, version: str) -> list[AppSpec]:
        """The apps that sessions of an image detect, and those whose processes they share."""
        candidates = self._candidates(self.image(environment, version))
        servers = [self.apps[name].server for name in candidates]
        return [self.apps[name] for name in dict.fromkeys([*candidates, *servers])]

    def _candidates(self, image: Image | None) -> list[str]:
        """The apps that may be offered, sorted.

        First those that need a program in the image; last those that do not open a window at once.
        """
        if image is not None and image.apps:
            hubs = [name for name, spec in self.apps.items() if spec.kind == "hub"]
            return [name for name in dict.fromkeys([*image.apps, *hubs]) if name in self.apps]
        return sorted(self.apps, key=lambda name: _rank(self.apps[name]))

    def _presumed(self, image: Image | None) -> set[str]:
        """The apps that an image can run according to its file, before a session has checked."""
        if image is None:
            return set()
        declared = [
            name for name in (*image.apps, *image.provides, image.default_app) if name in self.apps
        ]
        universal = [name for name, spec in self.apps.items() if not spec.detect]
        return {*declared, *(self.apps[name].server for name in declared), *universal}


def _rank(app: AppSpec) -> tuple[bool, bool, bool, str]:
    return not app.detect, app.kind != "web", app.must_answer, app.name
