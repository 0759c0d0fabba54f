#!/bin/bash
# The .rpm in a fresh container of Debian 12, whose Python it fits: no repository of an RPM distribution is asked, so
# dependencies are not resolved.
. /tests/common.sh

package=$(echo /dist/slipway-"$VERSION"-1.*.rpm)
use_mirrors
apt_get install systemd procps rpm python3.11 > /tmp/apt.log 2>&1 || { tail /tmp/apt.log; fail "rpm"; }
say "dependencies: $(rpm -qpR "$package" | grep -v '^rpmlib' | sort -u | tr '\n' ' ')"
say "installing"
rpm -i --nodeps "$package"
try_settings
try_state
sed -i 's/^#public_url = .*/public_url = "http:\/\/localhost:8080"/' "$SETTINGS"
try_services
try_units
say "upgrade"
sha256sum "$SETTINGS" > /tmp/settings
before=$(digest_of_keys)
rpm -U --nodeps --force "$package"
sha256sum --quiet -c /tmp/settings || fail "the upgrade changed the settings"
rpm -V --nodeps slipway
say "removal"
rpm -e --nodeps slipway
[ ! -e /usr/lib/slipway ] || fail "files were left in /usr/lib/slipway: $(find /usr/lib/slipway | head)"
[ "$before" = "$(digest_of_keys)" ] || fail "keys were deleted"
[ -e "$STATE/slipway.db" ] || fail "the database was deleted"
[ -e "$SETTINGS" ] || fail "the settings were deleted"
