#!/bin/sh
# An SSH server for this session's user only, authenticated by their key id_container: shell, files
# (SFTP, scp, rsync) and port forwarding. All programs are from the toolkit, so the image needs only a
# shell. ssh-listener starts one sshd for each connection.
umask=$(umask)
umask 077
# Public keys, mounted read-only: changes by the portal apply from the next connection on.
keys=/opt/slipway-ssh
bin=$SLIPWAY_TOOLKIT/bin
if [ ! -d "$keys" ] || [ ! -x "$bin/ssh-listener" ]; then
    echo "This session began before Slipway's last update, which renewed SSH. Launch it again."
    exit 69
fi
run=$SLIPWAY_RUN
user=${USER:-$(id -un)}
shell=$(command -v bash || echo /bin/sh)

# The environment of the image and the user, as in the terminal; sshd would not pass it on. tmux
# attaches to the server of the browser's terminal.
unset PWD OLDPWD SHLVL TERM
export SHELL="$shell" PATH="$PATH:$SLIPWAY_TOOLKIT/user/bin"
export TERMINFO_DIRS=":$SLIPWAY_TOOLKIT/share/terminfo" TMUX_TMPDIR="${run%/*}/terminal"
export -p > "$run/environment"

# The user's shell for sshd. Not a login shell: /etc/profile of many images would reset the image's own
# PATH.
start=${SLIPWAY_WORKDIR:-$HOME}
cat > "$run/shell" <<SHELL
#!/bin/sh
. $run/environment
# sshd would forbid writing to the group whatever the user's own umask is.
umask $umask
# sshd knows no address of a unix socket's peer, which is the gateway on this node; programs parse these.
case \${SSH_CONNECTION:-} in
    UNKNOWN*) export SSH_CONNECTION="127.0.0.1 65535 127.0.0.1 22" SSH_CLIENT="127.0.0.1 65535 22" ;;
esac
# Commands begin in the home, as do scp, sftp and rsync, whose relative paths would else differ.
[ \$# -gt 0 ] || cd "$start"
exec $shell "\$@"
SHELL
chmod 700 "$run/shell"

# An image may know neither this user nor this shell, so sshd gets its own passwd and group files.
# Without a group "tty", since nobody here could change a terminal's group.
echo "$user:x:$(id -u):$(id -g)::$HOME:$run/shell" > "$run/passwd"
echo "$user:x:$(id -g):" > "$run/group"

rm -f "$run/host_key" "$run/host_key.pub"
"$bin/ssh-keygen" -q -t ed25519 -N '' -C '' -f "$run/host_key" || exit 1
cat "$run/host_key.pub" > "$run/details"
[ ! -e "$keys/renewed" ] || echo renewed >> "$run/details"

cat > "$run/sshd_config" <<CONFIG
HostKey $run/host_key
AuthorizedKeysFile $keys/authorized_keys
AllowUsers $user
AuthenticationMethods publickey
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
PermitRootLogin no
# Only the user can access the folder, whatever may be done to its parents.
StrictModes no
PidFile none
SshdSessionPath $bin/sshd-session
SshdAuthPath $bin/sshd-auth
Subsystem sftp internal-sftp -u $umask
# A shell here can reach this anyway; nothing is opened to others.
AllowTcpForwarding yes
AllowStreamLocalForwarding yes
AllowAgentForwarding yes
GatewayPorts no
PermitTunnel no
X11Forwarding no
PermitUserEnvironment no
PermitUserRC no
PrintMotd no
PrintLastLog no
UseDNS no
MaxSessions 50
LoginGraceTime 20
LogLevel ERROR
CONFIG

cat > "$run/connection" <<CONNECTION
#!/bin/sh
export LD_PRELOAD=$SLIPWAY_TOOLKIT/lib/libnss_wrapper.so
export NSS_WRAPPER_PASSWD=$run/passwd NSS_WRAPPER_GROUP=$run/group
exec $bin/sshd -i -e -f $run/sshd_config
CONNECTION
chmod 700 "$run/connection"

exec "$bin/ssh-listener" "$SLIPWAY_SOCKET" "$run/connection"
