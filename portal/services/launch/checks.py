"""Checks launch requests: invalid fields, and requests that can never be granted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from functools import partial
from typing import NamedTuple

from portal.core.admin.images import refused_files
from portal.core.admin.site_settings import SiteSettings
from portal.core.apps.catalog import Catalog
from portal.core.auth.person import Person
from portal.core.cluster.gpu_offers import Gpus
from portal.core.cluster.queue import QueuePart
from portal.core.cluster_view import ClusterView
from portal.core.interfaces.systems import Clock
from portal.core.launch.hub import check_prefix
from portal.core.launch.mounts import check_in_own_home
from portal.core.launch.own_image import IMAGE, image_problems
from portal.core.launch.request import LaunchRequest, parse_launch, without
from portal.core.launch.site_files import refusal
from portal.core.launch.templates import fill
from portal.core.policy import Decision, decide, with_refusals
from portal.core.session.session import Home, Session
from portal.core.session_job.description import JobSettings
from portal.errors import FieldError, InvalidRequest
from portal.services.admin.administration import Administration
from portal.services.cluster import Cluster
from portal.store.sessions import SessionStore


class LaunchView(NamedTuple):
    """Everything that a decision on a launch depends on, read at one time."""

    person: Person
    now: datetime
    cluster: ClusterView
    settings: SiteSettings
    catalog: Catalog
    """All images; those of `visible` may be launched."""
    visible: Catalog
    submitting: Sequence[Session] = ()
    """The person's sessions that Slurm does not have yet."""


class Plan(NamedTuple):
    """A permitted request with its decision, which the launch does not repeat."""

    view: LaunchView
    request: LaunchRequest
    decision: Decision
    key: str | None = None
    """The client's idempotency key."""
    is_new: bool = True
    """Whether no launch with this key is stored."""


class LaunchChecks:
    """Validates requests and decides whether they can be granted; stores and submits nothing."""

    def __init__(
        self,
        *,
        store: SessionStore,
        snapshot: Callable[[], AbstractContextManager[None]],
        cluster: Cluster,
        catalog: Callable[[], Catalog],
        clock: Clock,
        job_settings: JobSettings,
        administration: Administration,
        gpus: Gpus,
        hub_base_url: str,
    ) -> None:
        self._store = store
        self._snapshot = snapshot
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

    def prepare(self, person: Person, data: object, key: str | None = None) -> Plan:
        """Validate untrusted input and decide; InvalidRequest names all wrong fields.

        `key`: the client's idempotency key, if the request is about to be launched.
        """
        view, is_new = self._look(person, key)
        body = fill(data, view.settings.templates)
        try:
            request = parse_launch(body)
        except InvalidRequest as error:
            raise self._with_other_problems(view, body, error) from None
        return self._decide(view, request, key, is_new)

    def plan(self, person: Person, request: LaunchRequest, key: str | None = None) -> Plan:
        """The same for a request that is validated already."""
        view, is_new = self._look(person, key)
        return self._decide(view, request, key, is_new)

    def _look(self, person: Person, key: str | None) -> tuple[LaunchView, bool]:
        """The view for a decision, and whether the key is new; one transaction."""
        with self._snapshot():
            is_new = key is None or not self._store.has_key(person.name, key)
            cluster, settings = self._cluster.look(), self._administration.site_settings()
            catalog = self._catalog()
            visible = settings.visible_catalog(person, catalog, cluster.limits)
            submitting = self._store.submitting(person.name)
            now = self._clock()
            view = LaunchView(person, now, cluster, settings, catalog, visible, submitting)
        return view, is_new

    def _with_other_problems(
        self, view: LaunchView, body: object, error: InvalidRequest
    ) -> InvalidRequest:
        """The error, with the problems of the fields that are valid by themselves."""
        valid = without(body, error.errors)
        if valid is None:
            return error
        invalid = {problem.field for problem in error.errors}
        if IMAGE in invalid:  # replaces an environment
            invalid.add("environment")
        try:
            self._decide(view, valid)
        except InvalidRequest as other:
            problems = [problem for problem in other.errors if problem.field not in invalid]
            return InvalidRequest([*error.errors, *problems], more=error.more)
        return error

    def _decide(
        self,
        view: LaunchView,
        request: LaunchRequest,
        key: str | None = None,
        is_new: bool = True,
    ) -> Plan:
        """Decide on a request; raises InvalidRequest.

        Without `is_new` it repeats a launch whose jobs are in the queue already: limits on
        submitted jobs do not apply.
        """
        if problems := self._problems(view, request):
            raise InvalidRequest(problems)
        user, cluster = view.person.name, view.cluster
        count = partial(_count_jobs, view, request) if is_new else _nothing_queued
        refused = cluster.choice_problems(user, request, view.now, count)
        try:
            decision = decide(
                request,
                view.visible,
                cluster.partitions_for(user, request.slurm),
                view.settings.rules,
                self._gpus,
            )
        except InvalidRequest as error:
            problems = with_refusals(refused, error.errors)
            raise InvalidRequest(problems, more=error.more) from None
        if refused:
            raise InvalidRequest(refused)
        return Plan(view, request, decision, key, is_new)

    def _problems(self, view: LaunchView, request: LaunchRequest) -> Sequence[FieldError]:
        """The problems that no other choice of resources would solve; the first kind only."""
        home, hub = self._job_settings.home, request.hub
        if home is Home.PERSISTENT and (problems := check_in_own_home(request.mounts)):
            return problems
        if hub and (problems := check_prefix(hub.prefix, view.person.name, self._hub_base_url)):
            return problems
        return self._image_problems(view, request.image) if request.image else ()

    def _image_problems(self, view: LaunchView, image: str) -> Sequence[FieldError]:
        """Problems of a user-supplied image by its name; the job checks the file itself."""
        if problems := image_problems(image, self._job_settings.own_images):
            return problems
        if not image.startswith("/"):
            return ()
        problem = refusal(image, refused_files(view.catalog, view.visible))
        return [FieldError(IMAGE, problem)] if problem else ()


def _count_jobs(view: LaunchView, request: LaunchRequest, part: QueuePart) -> int:
    """The jobs in a part of the queue that counts the request's own, with those about to be there.

    What is submitted alike counts in the same parts. Of what was begun the queue may have the job.
    """
    partition = view.cluster.partition_of(view.person.name, request)
    chosen = (partition, request.slurm.account, request.slurm.qos)
    waiting = [
        session
        for session in view.submitting
        if session.attempts == 0 and (session.partition, session.account, session.qos) == chosen
    ]
    return view.cluster.count_jobs(part) + len(waiting)


def _nothing_queued(_: object) -> int:
    return 0
