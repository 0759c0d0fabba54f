"""Keeps the settings of the command `slipway sbatch` current on storage that login nodes share."""

from __future__ import annotations

import json
from collections.abc import Callable

from portal.core.admin.batch_settings import BatchSite, batch_settings
from portal.core.apps.catalog import Catalog
from portal.core.cluster.gpu_offers import Gpus
from portal.core.interfaces.systems import SettingsFile
from portal.store.administration import AdministrationStore
from portal.store.status import StatusStore


class BatchSettings:
    """The settings, and the file that the worker writes when they change."""

    def __init__(
        self,
        *,
        site: BatchSite,
        catalog: Callable[[], Catalog],
        store: AdministrationStore,
        status: StatusStore,
        gpus: Gpus,
        file: SettingsFile | None,
    ) -> None:
        self._site = site
        self._catalog = catalog
        self._store = store
        self._status = status
        self._gpus = gpus
        self._file = file
        self._written = ""

    def text(self) -> str:
        """The settings as JSON."""
        settings = batch_settings(
            self._site,
            self._catalog(),
            self._store.image_rules(),
            self._status.reported().limits,
            self._gpus,
            self._store.site_rules(),
        )
        return json.dumps(settings, indent=2) + "\n"

    def publish(self) -> None:
        """Write the file if the settings have changed; raises Unavailable."""
        if self._file is None:
            return
        text = self.text()
        if text != self._written:
            self._file.replace(text)
            self._written = text
