#!/bin/sh
# A shell in tmux, served by ttyd: every browser tab, also after a reload, attaches to the same tmux.
# ttyd and tmux come from the toolkit, so the image needs only a shell.
export SHELL="$(command -v bash || echo /bin/sh)"
export TERMINFO_DIRS=":$SLIPWAY_TOOLKIT/share/terminfo"
export TMUX_TMPDIR="$SLIPWAY_RUN"
export PATH="$PATH:$SLIPWAY_TOOLKIT/user/bin"

cat > "$SLIPWAY_RUN/tmux.conf" <<'TMUX'
# Not a login shell: /etc/profile of many images would reset the image's own PATH.
set -g default-command "exec $SHELL"
set -g default-terminal tmux-256color
set -ga terminal-overrides ',xterm-256color:RGB'
# Lines of each window: with 200 characters each, about 20 MB of the session's memory.
set -g history-limit 20000
set -g mouse on
# Selections go to the browser's clipboard; programs cannot write to it.
set -g set-clipboard external
set -g focus-events on
set -g escape-time 10
# Pastes are marked as such (bracketed); keys that a slow network delivers together are still keys.
set -g assume-paste-time 0
# No clock: an untouched window sends nothing, so it does not count as use. The runner sets @slipway, the
# time left, when its text changes: once a minute in the last quarter of an hour, rarely before.
set -g status-interval 0
set -g status-left ''
set -g status-right '#{@slipway}    '
set -g status-right-length 80
set -g status-style 'bg=default,fg=brightblack'
set -g window-status-current-style 'fg=default,bold'
set -g message-style 'bg=brightblack,fg=brightwhite'
set -g mode-style 'reverse'
set -g pane-border-style 'fg=brightblack'
set -g pane-active-border-style 'fg=cyan'
set -g window-size latest
setw -g aggressive-resize on
# The wheel turns on the copy mode, in which keys are commands, only if there are lines to scroll to. Our
# page learns of it by the window's title, and sends User777 before a key that is text: back to the shell.
# Whoever turns the mode on by keyboard wants its commands, and keeps them.
set -s user-keys[777] "\033[77777~"
bind -n WheelUpPane if -F '#{||:#{alternate_on},#{||:#{pane_in_mode},#{mouse_any_flag}}}' 'send -M' \
    "if -F '#{history_size}' 'copy-mode -e ; set -p @slipway_scrolled 1 ; send -X -N 5 scroll-up'"
set-hook -g pane-mode-changed[777] "if -F '#{pane_in_mode}' '' 'set -pu @slipway_scrolled'"
bind -n User777 if -F '' ''
bind -T copy-mode User777 send -X cancel
bind -T copy-mode-vi User777 send -X cancel
set -g set-titles on
set -g set-titles-string '#{?#{&&:#{pane_in_mode},#{@slipway_scrolled}},slipway-scrolled,}'
# A right click opens the browser's menu with "Paste", unless a program uses it; tmux's menus are off.
bind -n MouseDown3Pane if -F -t= '#{mouse_any_flag}' 'select-pane -t= ; send -M'
unbind -n M-MouseDown3Pane
unbind -n MouseDown3Status
unbind -n MouseDown3StatusLeft
unbind -n M-MouseDown3Status
unbind -n M-MouseDown3StatusLeft
# The user's own settings come last and take precedence.
source-file -q ~/.tmux.conf
source-file -q ~/.config/tmux/tmux.conf
TMUX

# ttyd closes the connection as soon as its program has ended, often before it has read the program's
# last output. So the program is a shell that reports to our page, by an escape sequence, that tmux has
# ended, and waits until the page closes the connection. Without that report the connection was lost.
WINDOW='"$@"; printf "\033]7770;ended\033\\\\"; while read -r _; do :; done'

# -P: no pings, which would look like use; TCP keep-alive on both ends replaces them.
# -m: each window costs a few MB, and a page that opens hundreds could exhaust the session's memory.
exec "$SLIPWAY_TOOLKIT/bin/ttyd" -i "$SLIPWAY_SOCKET" -I "$SLIPWAY_TOOLKIT/share/terminal.html" \
    -W -O -P 65000 -m 32 -d 3 -T xterm-256color -t titleFixed=Terminal \
    -t disableLeaveAlert=true -t disableResizeOverlay=true -t disableReconnect=true \
    /bin/sh -c "$WINDOW" window \
    "$SLIPWAY_TOOLKIT/bin/tmux" -u -f "$SLIPWAY_RUN/tmux.conf" new-session -A -s main -c "${SLIPWAY_WORKDIR:-$HOME}"
