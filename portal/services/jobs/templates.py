"""Job templates: jobs to submit that users save under a name, for themselves or for others."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from portal.core.admin.images import accounts_of
from portal.core.auth.person import Person
from portal.core.interfaces.systems import Clock
from portal.core.jobs.compose.drafts import MAX_TEMPLATES, JobTemplate, Shared, TemplateKey
from portal.core.jobs.compose.submission import JobRequest, to_body
from portal.core.launch.presets import SaveResult, check_name, check_saved
from portal.errors import FieldError, InvalidRequest, NotFound
from portal.services.cluster import Cluster
from portal.store.job_templates import JobTemplateStore

KIND = "job template"
NAME, SHARED = "template", "shared"
"""Fields of errors: the name of the template is not that of the job."""
_NO_TEMPLATE = "There is no such job template, or it is not shared with you."


class JobTemplates:
    """A user's job templates, and those that others share with them."""

    def __init__(
        self,
        store: JobTemplateStore,
        cluster: Cluster,
        clock: Clock,
        record: Callable[[str, str, str, str], None],
    ) -> None:
        self._store = store
        self._cluster = cluster
        self._clock = clock
        self._record = record

    def list(self, person: Person) -> list[JobTemplate]:
        """The templates that the user may use, without scripts: their own first, then by name."""
        return self._store.visible(person.name, self._accounts(person))

    def get(self, person: Person, owner: str, name: str) -> JobTemplate:
        """One template with its script; NotFound unless the user may use it."""
        template = self._store.get(TemplateKey(owner, name))
        if template is None or not template.may_see(person.name, self._accounts(person)):
            raise NotFound(_NO_TEMPLATE)
        return template

    def accounts(self, person: Person) -> Sequence[str]:
        """The user's own Slurm accounts, with which they can share; the default one first."""
        limits = self._cluster.look().limits
        if limits is None:
            return []
        default = limits.default_accounts.get(person.name, "")
        mine = {row.account for row in limits.users.get(person.name, ())}
        return sorted(mine, key=lambda account: (account != default, account))

    def save(
        self,
        person: Person,
        name: str,
        request: JobRequest,
        shared: Shared = Shared.NOBODY,
        account: str = "",
        replace: bool = True,
    ) -> tuple[JobTemplate, bool]:
        """Save a request under a name; returns the template, and whether the name is new.

        Raises InvalidRequest, and Conflict if the name is taken and `replace` is False.
        """
        check_name(name, NAME)
        template = JobTemplate(
            owner=person.name,
            name=name,
            body=to_body(request),
            saved=self._clock(),
            shared=shared,
            account=self._shared_with(person, shared, account),
        )
        before = self._store.get(template.key)
        saved = self._store.save(template, replace, MAX_TEMPLATES)
        check_saved(saved, KIND, name, MAX_TEMPLATES, NAME)
        if shared is not Shared.NOBODY and (before is None or before.shared is not shared):
            audience = "with everybody" if shared is Shared.SITE else f"with {template.account}"
            self._record(person.name, "job_template.share", name, audience)
        return template, saved is SaveResult.NEW

    def _shared_with(self, person: Person, shared: Shared, account: str) -> str:
        """The account to share with, if any; raises InvalidRequest."""
        if shared is Shared.SITE and not person.admin:
            text = "only an administrator can share a template with everybody"
            raise InvalidRequest([FieldError(SHARED, text)])
        if shared is not Shared.ACCOUNT:
            return ""
        mine = self.accounts(person)
        if not mine:
            raise InvalidRequest([FieldError(SHARED, "you have no Slurm account to share with")])
        if account and account not in mine:
            text = f"choose one of your Slurm accounts: {', '.join(mine[:10])}"
            raise InvalidRequest([FieldError("account", text)])
        return account or mine[0]

    def rename(self, person: Person, name: str, to: str) -> None:
        """Rename one of the user's own; raises NotFound, InvalidRequest, Conflict."""
        check_name(to, NAME)
        renamed = self._store.rename(TemplateKey(person.name, name), to)
        check_saved(renamed, KIND, to, MAX_TEMPLATES, NAME)

    def remove(self, person: Person, owner: str, name: str) -> None:
        """Delete one of the user's own, or as an administrator one shared with everybody.

        Raises NotFound.
        """
        template = self.get(person, owner, name)
        foreign = owner != person.name
        if foreign and not (person.admin and template.shared is Shared.SITE):
            raise NotFound(_NO_TEMPLATE)
        if not self._store.remove(template.key):
            raise NotFound(_NO_TEMPLATE)
        if foreign:
            self._record(person.name, "job_template.delete", name, f"of {owner}")

    def _accounts(self, person: Person) -> frozenset[str]:
        return accounts_of(person.name, self._cluster.look().limits)
