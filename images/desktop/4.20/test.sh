#!/bin/sh
# Does this image do what it promises? Run inside it by `slipway images test`.
set -eu
for program in startxfce4 xfce4-session xfwm4 xfce4-panel xfdesktop thunar xfce4-terminal mousepad ristretto \
    dbus-run-session xclip glxinfo xdpyinfo git nano; do
    command -v "$program" > /dev/null || { echo "there is no $program"; exit 1; }
done
# The program itself answers only with a display.
version=$(dpkg-query --show --showformat '${Version}' xfce4-session)
case $version in 4.20.*) ;; *) echo "Xfce is $version"; exit 1 ;; esac
# Nobody could unlock a screen or needs a power manager.
for program in light-locker xscreensaver xfce4-screensaver xfce4-power-manager; do
    ! command -v "$program" > /dev/null || { echo "$program must not be here"; exit 1; }
done
dbus-run-session -- true
[ "$(fc-list : family | grep -c 'DejaVu Sans Mono')" -ge 1 ]
# The driver that the X server loads for OpenGL.
ls /usr/lib/*/dri/swrast_dri.so > /dev/null
