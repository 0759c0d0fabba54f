"""Logins for the registries of own images over the REST API."""

from __future__ import annotations

from portal.core.launch.registry_login import RegistryLogin
from portal.web.api import guarded
from portal.web.api.models.base import NoContent
from portal.web.api.operation import Reply, operation
from portal.web.api.registries.models import RegistryLoginListOut, RegistryLoginOut
from portal.web.context import person, services
from portal.web.http.body import read_model, read_nothing

blueprint = guarded("registries")


@blueprint.get("/registries")
@operation("List logins for registries", RegistryLoginListOut)
def list_registry_logins() -> RegistryLoginListOut:
    """The registries that the site permits, and the caller's logins for them."""
    saved = services().registry_logins.list(person())
    logins = [RegistryLoginOut.of(login) for login in saved]
    return RegistryLoginListOut(logins=logins, registries=services().registry_logins.registries)


@blueprint.put("/registries/<registry>")
@operation(
    "Save a login for a registry", RegistryLoginOut, other_statuses=(201,), body=RegistryLogin
)
def save_registry_login(registry: str) -> Reply[RegistryLoginOut]:
    """Save user and password, or token; jobs that pull the caller's images use them."""
    login = read_model(RegistryLogin)
    saved, new = services().registry_logins.save(person(), registry, login)
    return Reply(RegistryLoginOut.of(saved), status=201 if new else 200)


@blueprint.delete("/registries/<registry>")
@operation("Forget a login for a registry", NoContent)
def forget_registry_login(registry: str) -> NoContent:
    """Forget a login; images that were pulled with it stay in the caller's cache."""
    read_nothing()
    services().registry_logins.remove(person(), registry)
    return NoContent()
