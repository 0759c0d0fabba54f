#!/bin/sh
# A shell in tmux, shown by ttyd: every browser tab joins the same tmux, and a reload finds it again.
# ttyd and tmux come from the toolkit, so the image needs nothing but a shell.
export SHELL="$(command -v bash || echo /bin/sh)"
export TERMINFO_DIRS=":$SLIPWAY_TOOLKIT/share/terminfo"
export TMUX_TMPDIR="$SLIPWAY_RUN"
export PATH="$PATH:$SLIPWAY_TOOLKIT/user/bin"

cat > "$SLIPWAY_RUN/tmux.conf" <<'TMUX'
# Not a login shell: /etc/profile of many an image would forget the image's own PATH.
set -g default-command "exec $SHELL"
set -g default-terminal tmux-256color
set -ga terminal-overrides ',xterm-256color:RGB'
set -g history-limit 50000
set -g mouse on
set -g set-clipboard on
set -g focus-events on
set -g escape-time 10
set -g status-right '%H:%M'
set -g window-size latest
setw -g aggressive-resize on
# What the user wants comes last and wins.
source-file -q ~/.tmux.conf
TMUX

# Most monospaced letters are 0.6 em wide: at 15 pixels that is a whole number of pixels. With a
# fraction, ttyd's drawing rounds down after it has counted columns, and the right edge stays empty.
exec "$SLIPWAY_TOOLKIT/bin/ttyd" -i "$SLIPWAY_SOCKET" -W -O -P 30 -d 3 -T xterm-256color \
    -t titleFixed=Terminal -t disableLeaveAlert=true -t disableResizeOverlay=true -t scrollback=0 -t fontSize=15 \
    "$SLIPWAY_TOOLKIT/bin/tmux" -u -f "$SLIPWAY_RUN/tmux.conf" new-session -A -s main -c "$HOME"
