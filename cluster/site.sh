# shellcheck shell=bash
# Collects this machine's settings of mirrors, proxies and certificate authorities in SITE_DIR, for
# builds in containers. They are never written into the repository.

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

# The first Debian mirror in apt's sources; empty on Ubuntu without one.
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

# Only settings for reaching the mirrors (proxies, wrong clocks), none about packages.
write_apt_conf() {
    apt-config dump | grep -E '^Acquire::(http|https|Check-|Retries)' | grep -v '""' || true
    if [ -s "$SITE_DIR/ca.crt" ]; then
        echo 'Acquire::https::CaInfo "/run/site/ca.crt";'
    fi
}

# This machine's pip settings, without local paths.
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
