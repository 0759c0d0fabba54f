#!/bin/sh
# Copy this machine's HAProxy with its libraries and loader into a folder in which it runs on any Linux:
#   haproxy.sh FOLDER     the folder is its path on the target, too
set -eu
out=$1
mkdir -p "$out/lib"
program=$(command -v haproxy)
cp -L "$program" "$out/haproxy"
ldd "$program" | sed -n 's/.*=> \(\/[^ ]*\) .*/\1/p' | while read -r library; do cp -L "$library" "$out/lib/"; done
cp -L "$(ldd "$program" | sed -n 's/^\s*\(\/[^ ]*ld-linux[^ ]*\).*/\1/p')" "$out/lib/ld.so"
patchelf --set-interpreter "$out/lib/ld.so" --force-rpath --set-rpath "$out/lib" "$out/haproxy"
cp /usr/share/doc/haproxy/copyright "$out/"
"$out/haproxy" -v > /dev/null
