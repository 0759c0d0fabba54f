#!/bin/bash
# The .deb in a fresh container: installation, use, upgrade, removal and purge.
. /tests/common.sh

# The same package under an older version.
make_older() {
    dpkg-deb -R "$package" /tmp/older
    sed -i 's/^Version: .*/Version: 0.1.9-1/' /tmp/older/DEBIAN/control
    dpkg-deb -Znone -b /tmp/older /tmp/older.deb > /dev/null
    rm -r /tmp/older
}

try_upgrade() {
    local before
    sed -i 's/^#public_url = .*/public_url = "http:\/\/localhost:8080"/' "$SETTINGS"
    echo "# a remark of the administrator's" >> "$SETTINGS"
    sha256sum "$SETTINGS" > /tmp/settings
    before=$(digest_of_keys)
    apt_get install "$package"
    sha256sum --quiet -c /tmp/settings || fail "the upgrade changed the settings"
    [ "$before" = "$(digest_of_keys)" ] || fail "the upgrade changed the keys"
    expect "$(dpkg-deb -f "$package" Version)" dpkg-query -W slipway
    as_slipway slipway init
}

try_removal() {
    local before said
    before=$(digest_of_keys)
    apt_get remove slipway
    [ ! -e /usr/lib/slipway ] || fail "files were left in /usr/lib/slipway: $(find /usr/lib/slipway | head)"
    [ -e "$SETTINGS" ] || fail "a removal deleted the settings"
    said=$(apt_get purge slipway 2>&1)
    [[ $said == *"kept in $STATE"* ]] || fail "purge does not say what it keeps: $said"
    [ ! -e /etc/slipway ] || fail "purge kept /etc/slipway"
    [ "$before" = "$(digest_of_keys)" ] || fail "keys were deleted"
    [ -e "$STATE/slipway.db" ] || fail "the database was deleted"
    getent passwd slipway > /dev/null || fail "the account that owns them was deleted"
}

case $SUITE in bookworm) number=12 ;; trixie) number=13 ;; esac
package=$(echo /dist/slipway_"$VERSION"-*+deb"$number"*.deb)
use_mirrors
make_older
say "installing $package under an older version"
apt_get install systemd > /tmp/apt.log 2>&1 || { tail /tmp/apt.log; fail "systemd"; }
apt_get install /tmp/older.deb > /tmp/apt.log 2>&1 || { tail /tmp/apt.log; fail "installation"; }
tail -n 1 /tmp/apt.log
try_state
say "upgrade"
try_upgrade
dpkg --verify slipway
say "services"
try_services
say "units"
try_units
say "removal and purge"
try_removal
say "installing again, with the state of before"
apt_get install "$package" > /tmp/apt.log 2>&1 || { tail /tmp/apt.log; fail "installation"; }
try_settings
as_slipway slipway init
