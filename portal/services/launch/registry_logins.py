"""Users' logins for registries, for the jobs that pull their images."""

from __future__ import annotations

from collections.abc import Callable

from portal.core.auth.person import Person
from portal.core.interfaces.systems import Clock
from portal.core.launch.own_image import OwnImageRules
from portal.core.launch.registry_login import MOST_LOGINS, RegistryLogin, SavedLogin
from portal.errors import FieldError, InvalidRequest, NotFound
from portal.node.common.reference import SCHEME, host_problem, is_host, parse
from portal.store.registry_logins import RegistryLoginStore


class RegistryLogins:
    """A user's logins, visible to that user only; passwords are never shown."""

    def __init__(
        self,
        store: RegistryLoginStore,
        rules: OwnImageRules,
        clock: Clock,
        record: Callable[[str, str, str], None],
    ) -> None:
        self._store = store
        self._rules = rules
        self._clock = clock
        self._record = record

    @property
    def registries(self) -> list[str]:
        """The registries that the site permits; [] where it permits none."""
        return list(self._rules.registries) if self._rules.own == "registries" else []

    def list(self, person: Person) -> list[SavedLogin]:
        """The user's logins, by registry."""
        return self._store.all(person.name)

    def save(self, person: Person, registry: str, login: RegistryLogin) -> tuple[SavedLogin, bool]:
        """Save or replace a login; returns it, and whether it is new.

        Raises InvalidRequest.
        """
        if problem := self._problem(person, registry):
            raise InvalidRequest([FieldError("registry", problem)])
        now = self._clock()
        new = self._store.save(person.name, registry, login, now)
        self._record(person.name, "registry.login", registry)
        return SavedLogin(registry, login.user, added=now, used=None), new

    def _problem(self, person: Person, registry: str) -> str:
        if not is_host(registry):
            return (
                "write the registry's host only, as registry.example.org or "
                "registry.example.org:5000"
            )
        if problem := host_problem(registry, self.registries):
            return problem
        saved = [login.registry for login in self._store.all(person.name)]
        if len(saved) >= MOST_LOGINS and registry not in saved:
            return f"you have {MOST_LOGINS} logins already; delete one of them first"
        return ""

    def remove(self, person: Person, registry: str) -> None:
        """Delete a login; raises NotFound."""
        if not self._store.remove(person.name, registry):
            raise NotFound("You have saved no login for this registry.")
        self._record(person.name, "registry.forget", registry)

    def for_image(self, owner: str, image: str) -> dict[str, str] | None:
        """The login with which a session's job pulls its image, if any; raises Unavailable."""
        if not image.startswith(SCHEME):
            return None
        host = parse(image).host
        if host_problem(host, self.registries):
            return None
        login = self._store.use(owner, host, self._clock())
        return login.model_dump() if login else None
