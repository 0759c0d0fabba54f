"""All limits from the output of real Slurm versions (tests/recorded/<version>/)."""

from __future__ import annotations

import pytest
from pydantic import TypeAdapter

from portal.adapters.slurm.asking import RefusedError
from portal.adapters.slurm.commands import UnexpectedOutput
from portal.adapters.slurm.limits.reader import LimitsReader
from portal.core.cluster.effective_limits import bounds
from portal.core.cluster.inventory import Partition
from portal.core.cluster.limits import (
    Association,
    Limits,
    Minutes,
    PartitionAccess,
    Qos,
    Tres,
)
from tests.support.recordings import VERSIONS, recorded
from tests.unit.adapters.slurm.limits.recordings import Recorded, read


@pytest.mark.parametrize("version", VERSIONS)
def test_associations(version: str) -> None:
    found = read(version)
    assert set(found.enforced) >= {"associations", "limits", "qos"}
    assert found.default_accounts["alice"] == "research"
    rows = {(a.account, a.user): a for a in found.associations}
    alice = rows["research", "alice"]
    assert (alice.group, alice.job, alice.jobs, alice.minutes) == (
        Tres(cpus=20), Tres(cpus=8), 7, 240,
    )  # fmt: skip
    other = rows["physics", "alice"]
    assert (other.submitted, other.shares, other.default_qos) == (11, 5, "high")
    assert other.fair_share == pytest.approx(0.17)
    assert rows["research", "bob"].node == Tres(memory_mb=1500)
    account = rows["physics", ""]
    assert account == Association(
        "physics", parent="root", qos=("high", "normal"), group_jobs=3, group_submitted=9,
        total=Minutes(cpus=5000, gpus=10), shares=7, used=account.used,
        description="physik|teilchen & müll",
    )  # fmt: skip
    assert account.used.cpus == 1 and (account.used.memory_mb or 0) > 50
    assert (account.used.gpus, account.used.shards) == (0, 0)


@pytest.mark.parametrize("version", VERSIONS)
def test_odd_names_of_accounts_hide_nobody_else(version: str) -> None:
    accounts = {a.account: a.description for a in read(version).associations if not a.user}
    assert set(accounts) == {"root", "a b", "chem-2.ü", "physics", "research"}
    # Another account's description has a line that pretends to be research's.
    assert accounts["research"] == ""
    assert accounts["chem-2.ü"] == "chemie"


@pytest.mark.parametrize("version", VERSIONS)
def test_qos(version: str) -> None:
    found = {qos.name: qos for qos in read(version).qos}
    assert set(found) == {"normal", "high", "odd qös"}
    normal, high = found["normal"], found["high"]
    assert (normal.user, normal.job) == (Tres(3, 3072), Tres(cpus=2))
    assert (normal.jobs, normal.minutes, normal.used.cpus) == (9, 2880, 1)
    assert high == Qos(
        "high", jobs_of_account=4, submitted=5, submitted_of_account=6, group_jobs=7,
        group_submitted=8, least=Tres(cpus=1), total=Minutes(1000, 100_000, gpus=50),
        used=Minutes(0, 0, 0, 0), description="für eilige | jobs", preempt=("normal",),
        preempt_mode="requeue",
    )  # fmt: skip


@pytest.mark.parametrize("version", VERSIONS)
def test_partitions_and_features(version: str) -> None:
    found = read(version)
    entries = {entry.name: entry for entry in found.partitions}
    assert entries["main"] == PartitionAccess("main", default_minutes=60, preempt_mode="off")
    assert entries["pä+rt.1"].groups == ("users", "domain users")
    assert (entries["sp ace"].accounts, entries["sp ace"].allowed_qos) == (("physics",), ("high",))
    assert entries["hid"] == PartitionAccess(
        "hid", state="DRAIN", hidden=True, root_only=True, requires_reservation=True,
        oversubscribe="FORCE:3", exclusive_user=True, preempt_mode="requeue", priority_tier=9,
        least_nodes=2,
    )  # fmt: skip
    features = {(one.node, one.partition): one.features for one in found.features}
    assert features["n1", "main"] == ("intel",), "only the active ones"
    assert features["n2", "sp ace"] == ()


@pytest.mark.parametrize("version", VERSIONS)
def test_sinfos_order_is_no_change(version: str) -> None:
    lines = recorded(version, "features").splitlines(keepends=True)
    assert read(version, features="".join(reversed(lines))) == read(version)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_resulting_limit(version: str) -> None:
    main = Partition("main", True, True, 64, 256_000, 480)
    own = bounds("alice", main, read(version))
    assert own.cpus and own.memory_mb and own.minutes and own.jobs
    assert (own.cpus.value, own.memory_mb.value) == (2, 3072)


def test_other_clusters_are_ignored() -> None:
    text = recorded(VERSIONS[0], "assoc")
    foreign = text.split("\n")[0].replace("slipway", "elsewhere", 1)
    assert read(VERSIONS[0], assoc=f"{text}{foreign}\n") == read(VERSIONS[0])


def test_without_accounting_it_is_not_asked() -> None:
    text = recorded(VERSIONS[0], "config")
    ask = Recorded(VERSIONS[0], config=text.replace("accounting_storage/slurmdbd", "(null)"))
    found = LimitsReader(ask).read()
    assert (found.accounting, found.enforced, found.associations) == (False, (), ())
    assert set(ask.asked) == {"config", "partition", "features", "reservations"}
    assert found.partitions and not found.requires_association


def test_what_the_reader_may_not_see_is_left_out() -> None:
    hidden = RefusedError("Slurm does not answer: Access/permission denied")
    names = ("used", "reservations", "accounts", "qos_texts", "features")
    found = read(VERSIONS[0], **dict.fromkeys(names, hidden))
    assert (found.reservations, found.features) == ((), ())
    assert {a.used for a in found.associations} == {Minutes()}
    assert {q.description for q in found.qos} == {""}


@pytest.mark.parametrize("field", ["config", "assoc", "qos", "users", "partition", "features"])
def test_unexpected_output_raises(field: str) -> None:
    with pytest.raises(UnexpectedOutput):
        read(VERSIONS[0], **{field: "sacctmgr: what a surprise\n"})


def test_limits_are_stored_and_read_again() -> None:
    adapter = TypeAdapter(Limits)
    found = read(VERSIONS[0])
    assert adapter.validate_json(adapter.dump_json(found)) == found
    assert adapter.validate_json('{"enforced": ["limits"]}').fenced, "a row of an older release"
