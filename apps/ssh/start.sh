#!/bin/sh
# An SSH server for this session's user alone: whoever holds their id_container may come in, with a
# shell, files (SFTP, scp, rsync) and forwarded ports. All of it is from the toolkit, so the image
# needs nothing but a shell. One sshd for each connection, which socat hands over to it.
umask 077
# Public keys, shown read-only: what the portal writes there counts from the next connection on.
keys=/opt/slipway-ssh
if [ ! -d "$keys" ]; then
    echo "This session began before Slipway's last update, which renewed SSH keys. Launch it again."
    exit 69
fi
bin=$SLIPWAY_TOOLKIT/bin
run=$SLIPWAY_RUN
user=${USER:-$(id -un)}
shell=$(command -v bash || echo /bin/sh)

# As in the terminal: what the image and the user have set, which sshd would not hand on. tmux
# finds the one of the browser's terminal.
unset PWD OLDPWD SHLVL TERM
export SHELL="$shell" PATH="$PATH:$SLIPWAY_TOOLKIT/user/bin"
export TERMINFO_DIRS=":$SLIPWAY_TOOLKIT/share/terminfo" TMUX_TMPDIR="${run%/*}/terminal"
export -p > "$run/environment"

# What sshd takes for the user's shell. Not a login shell: /etc/profile of many an image would
# forget the image's own PATH.
cat > "$run/shell" <<SHELL
#!/bin/sh
. $run/environment
exec $shell "\$@"
SHELL
chmod 700 "$run/shell"

# An image may know neither this user nor this shell, so sshd gets a list of its own. There is no
# group "tty" in it, as nobody here could give a terminal to one.
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
# The folder is open to the user alone; one of those above it is /var/tmp.
StrictModes no
PidFile none
SshdSessionPath $bin/sshd-session
SshdAuthPath $bin/sshd-auth
Subsystem sftp internal-sftp
# What a shell here can reach anyway; nothing is opened to others.
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

exec "$bin/socat" "UNIX-LISTEN:$SLIPWAY_SOCKET,mode=600,fork,max-children=32" "EXEC:$run/connection,nofork"
