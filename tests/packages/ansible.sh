#!/bin/bash
# The Ansible role on a fresh Debian 13, which is portal's host and login node at once: once, again without a change,
# with other settings, and with settings that are refused.
. /tests/common.sh
ANSIBLE_CORE=2.19.14

play() {
    ANSIBLE_NOCOLOR=1 with-site /tmp/venv/bin/ansible-playbook -i /tmp/inventory.yml /deploy/ansible/site.yml "$@" > /tmp/play.log 2>&1
}
# played TEXT [OPTION…] — the play succeeds, and its recap contains the text.
played() {
    local text=$1
    shift
    play "$@" || { tail -n 40 /tmp/play.log; fail "the play has failed"; }
    tail -n 3 /tmp/play.log | grep 'ok='
    grep -q "$text" /tmp/play.log || { grep -A3 '^changed' /tmp/play.log; fail "no $text"; }
}

use_mirrors
apt_get install systemd openssh-server python3-venv python3-apt > /tmp/apt.log 2>&1 || { tail /tmp/apt.log; fail "sshd"; }
mkdir -p /run/sshd
groupadd people
python3 -m venv /tmp/venv
with-site /tmp/venv/bin/pip install --quiet "ansible-core==$ANSIBLE_CORE"
cat > /tmp/inventory.yml <<'YAML'
all:
  children:
    slipway_portal: {hosts: {localhost: {}}}
    slipway_login: {hosts: {localhost: {}}}
  vars:
    ansible_connection: local
    ansible_python_interpreter: /usr/bin/python3
    slipway_dist: /dist
    slipway_manage_services: false
    slipway_portal_address: 192.0.2.10
    slipway_people_group: people
    slipway_known_hosts: "login.example.org ssh-ed25519 AAAA"
    slipway_settings:
      web: {public_url: "http://localhost:8080"}
      login: {host: login.example.org}
      slurm: {admins: [alice]}
      sessions: {callback: "https://slipway.example.org:8443"}
      service: {supervisor: none}
YAML
sed -i "1i# Slipway $VERSION" /tmp/inventory.yml
say "first"
played "failed=0"
expect "trustedusercakeys /etc/ssh/slipway_user_ca.pub" sshd -T -C user=a,host=b,addr=192.0.2.10
expect "trustedusercakeys none" sshd -T -C user=a,host=b,addr=192.0.2.11
cmp /etc/ssh/slipway_user_ca.pub /var/lib/slipway/ca/user_ca.pub
[ "$(stat -c '%a %U %G' "$SETTINGS")" = "640 root slipway" ] || fail "$SETTINGS has other permissions"
try_state
try_services
say "again"
played "changed=0 "
say "another setting"
played "changed=[1-9]" --extra-vars '{"slipway_settings": {"slurm": {"admins": ["alice", "bob"]}, "service": {"supervisor": "none"}}}'
grep -q '"bob"' "$SETTINGS" || fail "the settings were not written"
say "settings that are refused"
! play --extra-vars '{"slipway_settings": {"web": {"no_such_key": 1}}}' || fail "a wrong key was accepted"
grep -q no_such_key /tmp/play.log || fail "the wrong key is not named"
grep -q '"bob"' "$SETTINGS" || fail "wrong settings replaced the right ones"
