"""The block of sshd_config that the Ansible role writes, as the login node's sshd reads it."""

from __future__ import annotations

from tests.support.ansible_role import ADDRESS, sshd_block
from tests.support.cluster import Cluster

FILE = "/tmp/slipway-ansible-sshd_config"


def test_sshd_trusts_the_authority_from_the_portals_address_alone(cluster: Cluster) -> None:
    def read(address: str) -> str:
        client = f"user=a,host=b,addr={address}"
        return cluster.run("login", "/usr/sbin/sshd", "-T", "-f", FILE, "-C", client)

    trusted = "trustedusercakeys /etc/ssh/slipway_user_ca.pub"
    cluster.run("login", "tee", FILE, stdin=sshd_block())
    try:
        assert trusted in read(ADDRESS)
        assert trusted not in read("192.0.2.11")
    finally:
        cluster.run("login", "rm", FILE)
