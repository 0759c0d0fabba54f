#!/bin/sh
# Fails unless the shim's libraries can be loaded in old images:
#   check_glibc.sh LIBRARY…
# A library may need nothing newer than glibc 2.17 (see glibc_compat.h) and no libraries except the real
# driver and libc, and must have no search path, since the image's programs load it with their own.
set -eu
export LC_ALL=C

newest=2.17
status=0
for library in "$@"; do
    versions=$(readelf --wide --version-info "$library" | grep -o 'Name: GLIBC_[0-9.]*' |
        sed 's/.*GLIBC_//' | sort -u)
    [ -n "$versions" ] || { echo "$library: readelf shows no version of glibc" >&2; status=1; }
    for version in $versions; do
        if [ "$(printf '%s\n%s\n' "$version" "$newest" | sort -V | tail -n 1)" != "$newest" ]; then
            echo "$library needs GLIBC_$version, newer than $newest, for:" >&2
            readelf --wide --dyn-syms "$library" | grep -F "@GLIBC_$version" >&2 || true
            status=1
        fi
    done
    dynamic=$(readelf --wide --dynamic "$library")
    if printf '%s\n' "$dynamic" | grep -E '\((RPATH|RUNPATH)\)' >&2; then
        echo "$library has a search path of its own" >&2
        status=1
    fi
    if printf '%s\n' "$dynamic" | grep '(NEEDED)' | grep -vE '\[(libc\.so\.6|/[^]]*)\]' >&2; then
        echo "$library needs a library that an image may lack" >&2
        status=1
    fi
done
exit "$status"
