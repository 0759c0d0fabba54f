#!/bin/sh
# Does this image do what it promises? Run inside it by `slipway images test`.
set -eu
. /etc/os-release
[ "$ID $VERSION_ID" = "debian 13" ]
for program in bash csh curl git less ps ssh vi; do
    command -v "$program" > /dev/null || { echo "there is no $program"; exit 1; }
done
