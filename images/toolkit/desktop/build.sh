# shellcheck shell=bash
# The desktop app's parts of the toolkit, for images/toolkit/build.sh, which reads this: TigerVNC's X
# server, so that an image needs only a window manager, and the page, with noVNC in it.
# shellcheck disable=SC2154  # source_dir, tree and work are build.sh's

# xkbcomp is started by its path, /usr/bin in the binary, which an image need not have. "." is the X
# server's working directory, and portal/node/runner/desktop/xserver.py makes it the toolkit's bin/.
copy_xserver() {
    copy_program Xvnc
    copy_program xkbcomp
    cp -rL /usr/share/X11/xkb "$tree/share/xkb"
    python3 - "$tree/bin/Xvnc" <<'PYTHON' ||
import sys
path = sys.argv[1]
data = open(path, "rb").read()
old = b"\0/usr/bin\0"
if data.count(old) != 1 or b'"%s%sxkbcomp" -w' not in data:
    sys.exit(1)
open(path, "wb").write(data.replace(old, b"\0.".ljust(len(old), b"\0")))
PYTHON
        die "this Xvnc finds xkbcomp in an unknown way"
    printf '%s\n' "#!$prefix/bin/python -IS" 'import sys' "sys.path.append(\"$prefix\")" \
        'from runner.desktop.command import main' 'sys.exit(main())' > "$tree/bin/desktop"
    chmod 755 "$tree/bin/desktop"
}

# Only noVNC's files: as a package it would bring a server of its own.
make_desktop_page() {
    local page=$work/desktop
    mkdir "$page"
    (cd "$page" && apt-get download -qq novnc > apt.log 2>&1) || die "cannot load the package novnc"
    dpkg -x "$page"/novnc_*.deb "$page"
    esbuild "$source_dir/images/toolkit/desktop/page.js" --bundle --minify --format=esm \
        --target=es2022 --legal-comments=none --log-level=warning \
        "--alias:novnc=$page/usr/share/novnc" --outfile="$page/page.js" || die "the desktop's page could not be built"
    python3 "$source_dir/images/toolkit/desktop/make_page.py" "$page/page.js" "$tree/share/desktop.html"
}

# Read by an image's Xfce and others before their own settings. What a machine with a screen needs is off:
# nobody could unlock a screen without a password, and a compositor draws everything twice.
copy_desktop_settings() {
    local name
    mkdir -p "$tree/desktop/xdg/autostart"
    cp -r "$source_dir/images/toolkit/desktop/xdg" "$tree/desktop/"
    for name in xfce4-power-manager xfce4-screensaver xscreensaver light-locker mate-power-manager mate-screensaver \
        lxqt-powermanagement nm-applet blueman xiccd geoclue-demo-agent at-spi-dbus-bus gnome-keyring-ssh \
        polkit-gnome-authentication-agent-1 polkit-mate-authentication-agent-1 lxpolkit print-applet pulseaudio; do
        printf '[Desktop Entry]\nType=Application\nName=%s\nExec=true\nHidden=true\n' "$name" \
            > "$tree/desktop/xdg/autostart/$name.desktop"
    done
}
