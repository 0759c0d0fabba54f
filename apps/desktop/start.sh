#!/bin/sh
# The image's own desktop or window manager on the toolkit's X server, which TigerVNC's protocol brings
# to the browser. Everything is in one private folder; no port is open.
export SHELL="$(command -v bash || echo /bin/sh)"
# Xfce's panel does not ask what to begin with.
export XFCE_PANEL_MIGRATE_DEFAULT=1
# Desktops first. Debian's x-session-manager is any of them, and for Xfce not the part that starts all.
found=
for name in startxfce4 mate-session startlxqt startlxde startplasma-x11 icewm-session x-session-manager \
    openbox fluxbox blackbox fvwm icewm jwm xfwm4 x-window-manager twm; do
    found=$(command -v "$name") && break
done
case ${found:+$name} in
    "")
        echo "This image has no desktop and no window manager."
        echo "Install one in the image, for example Xfce (xfce4-session) or a small one such as Openbox."
        exit 64
        ;;
    openbox | fluxbox | blackbox | fvwm | icewm | jwm | xfwm4 | x-window-manager | twm)
        # A window manager alone shows an empty screen, so a terminal comes with it.
        # shellcheck disable=SC2016  # for the other shell
        set -- /bin/sh -c '{ x-terminal-emulator || xterm; } 2>/dev/null & exec "$0"' "$found"
        ;;
    *) set -- "$found" ;;
esac
echo "Starting $found"
exec "$SLIPWAY_TOOLKIT/bin/desktop" "$@"
