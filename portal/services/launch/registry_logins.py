"""Users' logins for registries, which the jobs that pull their images get."""

from __future__ import annotations

from collections.abc import Callable

from portal.core.auth.person import Person
from portal.core.interfaces.registries import RegistryLoginStore
from portal.core.launch.own_image import OwnImageRules
from portal.core.launch.reference import SCHEME, host_problem, parse
from portal.core.launch.registry_login import RegistryLogin
from portal.errors import FieldError, InvalidRequest, NotFound


class RegistryLogins:
    """A user's logins, visible to that user only; passwords to nobody."""

    def __init__(
        self,
        store: RegistryLoginStore,
        rules: OwnImageRules,
        record: Callable[[str, str, str], None],
    ) -> None:
        self._store = store
        self._rules = rules
        self._record = record

    @property
    def registries(self) -> list[str]:
        """The registries that the site permits; [] where it permits none."""
        return list(self._rules.registries) if self._rules.own == "registries" else []

    def list(self, person: Person) -> list[tuple[str, str]]:
        """The registries for which the user saved a login, with the users there."""
        return self._store.all(person.name)

    def save(self, person: Person, registry: str, login: RegistryLogin) -> bool:
        """Save a login; returns whether it is new. Raises InvalidRequest."""
        if problem := host_problem(registry, self.registries):
            raise InvalidRequest([FieldError("registry", problem)])
        new = self._store.save(person.name, registry, login)
        self._record(person.name, "registry.login", registry)
        return new

    def remove(self, person: Person, registry: str) -> None:
        """Forget a login; raises NotFound."""
        if not self._store.remove(person.name, registry):
            raise NotFound("You have saved no login for this registry.")
        self._record(person.name, "registry.forget", registry)

    def for_image(self, owner: str, image: str) -> dict[str, str] | None:
        """What a session's job gets to pull its image; None without a login. Raises Unavailable."""
        if not image.startswith(SCHEME):
            return None
        host = parse(image).host
        login = None if host_problem(host, self.registries) else self._store.get(owner, host)
        return login.model_dump() if login else None
