"""Checks launch requests: what is wrong with the fields, and what can never be granted."""

from __future__ import annotations

from collections.abc import Callable

from portal.core.apps.catalog import Catalog
from portal.core.auth.person import Person
from portal.core.cluster.gpu_offers import Gpus
from portal.core.interfaces.systems import Clock
from portal.core.job.description import JobSettings
from portal.core.launch.hub import check_prefix
from portal.core.launch.mounts import check_in_own_home
from portal.core.launch.own_image import IMAGE, image_problems
from portal.core.launch.request import LaunchRequest, parse_launch, without
from portal.core.launch.site_files import refusal
from portal.core.launch.templates import fill
from portal.core.policy import Decision, decide, with_refusals
from portal.core.session.session import Home
from portal.core.site_rules import SiteRules
from portal.errors import FieldError, InvalidRequest
from portal.services.admin.administration import Administration
from portal.services.cluster import Cluster


class LaunchChecks:
    """Validates requests and decides whether they can be granted; stores and submits nothing."""

    def __init__(
        self,
        *,
        cluster: Cluster,
        catalog: Callable[[], Catalog],
        clock: Clock,
        job_settings: JobSettings,
        administration: Administration,
        gpus: Gpus,
        hub_base_url: str,
    ) -> None:
        self._cluster = cluster
        self._catalog = catalog
        self._clock = clock
        self._job_settings = job_settings
        self._administration = administration
        self._gpus = gpus
        self._hub_base_url = hub_base_url

    def parse(self, data: object) -> LaunchRequest:
        """Validate untrusted input, expanding a template; raises InvalidRequest."""
        return parse_launch(fill(data, self._administration.templates()))

    def checked(self, person: Person, data: object, is_new: bool = True) -> LaunchRequest:
        """The same, and InvalidRequest also names every field that can never be granted."""
        body = fill(data, self._administration.templates())
        try:
            request = parse_launch(body)
        except InvalidRequest as error:
            raise self._with_the_rest(person, body, error) from None
        self.decide(person, request, self._administration.site_rules(), is_new)
        return request

    def _with_the_rest(self, person: Person, body: object, error: InvalidRequest) -> InvalidRequest:
        rest = without(body, error.errors)
        if rest is None:
            return error
        named = {wrong.field for wrong in error.errors}
        if IMAGE in named:  # in the place of an environment
            named.add("environment")
        try:
            self.decide(person, rest, self._administration.site_rules())
        except InvalidRequest as more:
            found = [wrong for wrong in more.errors if wrong.field not in named]
            return InvalidRequest([*error.errors, *found], more=error.more)
        return error

    def decide(
        self, person: Person, request: LaunchRequest, caps: SiteRules, is_new: bool = True
    ) -> Decision:
        """The decision on a request; raises InvalidRequest.

        Without `is_new` it repeats a launch whose own jobs are in the queue already: limits on
        submitted jobs do not refuse it.
        """
        if self._job_settings.home is Home.PERSISTENT and (
            wrong := check_in_own_home(request.mounts)
        ):
            raise InvalidRequest(wrong)
        if request.hub and (
            wrong := check_prefix(request.hub.prefix, person.name, self._hub_base_url)
        ):
            raise InvalidRequest(wrong)
        if request.image and (wrong := self._image_problems(person, request.image)):
            raise InvalidRequest(wrong)
        partitions = self._cluster.partitions_for(person.name, request.slurm)
        catalog = self._administration.visible_catalog(person, self._catalog())
        count = None if is_new else _nothing_queued
        refused = self._cluster.choice_problems(person.name, request, self._clock(), count)
        try:
            decided = decide(request, catalog, partitions, caps, self._gpus)
        except InvalidRequest as error:
            found = with_refusals(refused, error.errors)
            raise InvalidRequest(found, more=error.more) from None
        if refused:
            raise InvalidRequest(refused)
        return decided

    def _image_problems(self, person: Person, image: str) -> list[FieldError]:
        """Why an own image is refused, as far as its name tells; its job recognises the file."""
        if problems := image_problems(image, self._job_settings.own_images):
            return problems
        if not image.startswith("/"):
            return []
        problem = refusal(image, self._administration.refused_files(person, self._catalog()))
        return [FieldError(IMAGE, problem)] if problem else []


def _nothing_queued(_: object) -> int:
    return 0
