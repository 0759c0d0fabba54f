#!/bin/sh
# The image's own desktop or window manager on the toolkit's X server, which TigerVNC's protocol brings
# to the browser. Everything is in one private folder; no port is open.
export SHELL="$(command -v bash || echo /bin/sh)"
# Xfce's panel does not ask what to begin with.
export XFCE_PANEL_MIGRATE_DEFAULT=1
program=
# Desktops first. Debian's x-session-manager is any of them, and for Xfce not the part that starts all.
for desktop in startxfce4 mate-session startlxqt startlxde startplasma-x11 icewm-session x-session-manager \
    openbox fluxbox fvwm icewm jwm xfwm4 x-window-manager twm; do
    program=$(command -v "$desktop") && break
done
if [ -z "$program" ]; then
    echo "This image has no desktop and no window manager."
    echo "Install one in the image, for example Xfce (xfce4-session) or a small one such as Openbox."
    exit 64
fi
echo "Starting $program"
exec "$SLIPWAY_TOOLKIT/bin/desktop" "$program"
