# shellcheck shell=bash
# What this machine knows about mirrors, proxies and certificate authorities, written to SITE_DIR
# for builds in containers. Nothing of it is ever written into the repository.

SITE_DIR=$CACHE_DIR/site

collect_site() {
    mkdir -p "$SITE_DIR"
    write_ca_bundle > "$SITE_DIR/ca.crt"
    debian_mirror > "$SITE_DIR/mirror"
    write_apt_sources > "$SITE_DIR/apt.sources"
    write_apt_conf > "$SITE_DIR/apt.conf"
    write_pip_conf > "$SITE_DIR/pip.conf"
    write_npmrc > "$SITE_DIR/npmrc"
}

write_ca_bundle() {
    cat "${SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt}" 2>/dev/null || true
}

# The first Debian mirror that apt here uses; nothing on an Ubuntu machine without one.
debian_mirror() {
    { sed -n 's/^URIs: *//p' /etc/apt/sources.list.d/*.sources
      sed -nE 's/^deb +(\[[^]]*\] +)?([^ ]+).*/\2/p' /etc/apt/sources.list /etc/apt/sources.list.d/*.list
    } 2>/dev/null | tr ' ' '\n' | grep -E '/debian/?$' | head -n 1 || true
}

write_apt_sources() {
    local mirror
    mirror=$(cat "$SITE_DIR/mirror")
    [ -n "$mirror" ] || return 0
    printf 'Types: deb\nURIs: %s\nSuites: %s\nComponents: main\nSigned-By: %s\n\n' \
        "$mirror" "trixie trixie-updates" /usr/share/keyrings/debian-archive-keyring.gpg \
        "${mirror%/}-security" trixie-security /usr/share/keyrings/debian-archive-keyring.gpg \
        "$mirror" sid /usr/share/keyrings/debian-archive-keyring.gpg
}

# Only how to reach the mirrors (proxies, clocks that are off), not what to do with packages.
write_apt_conf() {
    apt-config dump | grep -E '^Acquire::(http|https|Check-|Retries)' | grep -v '""' || true
    if [ -s "$SITE_DIR/ca.crt" ]; then
        echo 'Acquire::https::CaInfo "/run/site/ca.crt";'
    fi
}

# pip's settings of this machine, without paths that only exist here.
write_pip_conf() {
    command -v pip3 >/dev/null || return 0
    echo '[global]'
    pip3 config list 2>/dev/null |
        sed -nE "s/^(global|:env:)\.(index-url|extra-index-url|proxy|trusted-host|timeout|default-timeout)='(.*)'$/\2 = \3/p" |
        grep -v 'file://' | sort -u || true
}

write_npmrc() {
    cat ~/.npmrc /etc/npmrc 2>/dev/null | grep -E '^(registry|proxy|https-proxy|noproxy|strict-ssl) *=' || true
}
