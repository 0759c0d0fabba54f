#!/bin/sh
# Does this image do what it promises? Run inside it by `slipway images test`.
set -eu
for place in /lib /lib64 /usr/lib /etc/ld.so.cache; do
    [ ! -e "$place" ] || { echo "there is $place"; exit 1; }
done
[ "$(busybox | head -n 1 | cut -c 1-9)" = "BusyBox v" ]
