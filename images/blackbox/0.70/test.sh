#!/bin/sh
# Does this image do what it promises? Run inside it by `slipway images test`.
set -eu
for program in blackbox xterm xclip; do
    command -v "$program" > /dev/null || { echo "there is no $program"; exit 1; }
done
blackbox -version | grep -q '^Blackbox 0\.70\.'
