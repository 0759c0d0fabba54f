"""An SSH server on 127.0.0.1 that records authentication attempts."""

from __future__ import annotations

import socket
import subprocess
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import paramiko

from portal.config import LoginSettings
from portal.core.auth.accounts import Account

PASSWORD = "correct horse"


def any_account(user: str) -> Account:
    """The account of anybody."""
    return Account(user, 2000)


class Sshd(paramiko.ServerInterface):
    """A login node that records authentication attempts."""

    def __init__(
        self,
        *keys: paramiko.PKey,
        second_factor: bool = False,
        at: tuple[str, int] = ("127.0.0.1", 0),
    ) -> None:
        self.tried: list[str] = []
        self._second_factor = second_factor
        self._keys = keys
        self._listener = socket.create_server(at)
        self.port = int(self._listener.getsockname()[1])
        self._open: list[paramiko.Transport] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            transport = paramiko.Transport(sock)
            self._open.append(transport)
            for key in self._keys:
                transport.add_server_key(key)
            transport.start_server(event=threading.Event(), server=self)

    def connections(self) -> int:
        """How many connections are open."""
        return sum(transport.is_active() for transport in self._open)

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # ends accept(), which would hold the port
        self._listener.close()
        for transport in self._open:
            transport.close()

    def get_allowed_auths(self, username: str) -> str:
        return "publickey,password,keyboard-interactive"

    def check_auth_none(self, username: str) -> int:
        self.tried.append("none")
        return paramiko.common.AUTH_FAILED

    def check_auth_password(self, username: str, password: str) -> int:
        self.tried.append("password")
        if password == PASSWORD:
            return paramiko.common.AUTH_SUCCESSFUL
        return paramiko.common.AUTH_FAILED

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        self.tried.append(f"publickey {key.get_name()}")
        if self._second_factor:
            return paramiko.common.AUTH_PARTIALLY_SUCCESSFUL
        return paramiko.common.AUTH_SUCCESSFUL

    def check_auth_interactive(
        self, username: str, submethods: str
    ) -> int | paramiko.server.InteractiveQuery:
        self.tried.append("keyboard-interactive")
        return paramiko.common.AUTH_FAILED


class Node(Sshd):
    """A login node that runs commands, and can refuse accounts or break off."""

    def __init__(self, host: str, port: int, key: paramiko.PKey) -> None:
        self.ran: list[str] = []
        self.refused: set[str] = set()
        self.breaks_off = False
        super().__init__(key, at=(host, port))

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        self.tried.append(username)
        refused = username in self.refused
        return paramiko.common.AUTH_FAILED if refused else paramiko.common.AUTH_SUCCESSFUL

    def check_channel_request(self, kind: str, chanid: int) -> int:
        return paramiko.common.OPEN_SUCCEEDED

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        threading.Thread(target=self._run, args=(channel, command), daemon=True).start()
        return True

    def _run(self, channel: paramiko.Channel, command: bytes) -> None:
        if command == b"exec passwd --status":
            channel.close()
            return
        pipe = subprocess.PIPE
        with subprocess.Popen(["sh", "-c", command.decode()], stdin=pipe, stdout=pipe) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(channel.recv(65536))
            process.stdin.flush()
            channel.sendall(process.stdout.readline())  # the mark: the shell is there
            script = b"".join(iter(lambda: channel.recv(65536), b""))
            self.ran.append(script.decode())
            if self.breaks_off and b"sbatch" in script:
                process.kill()
                self.close()
                return
            channel.sendall(process.communicate(script)[0])
            channel.send_exit_status(process.returncode)
            channel.close()

    def count(self, word: str) -> int:
        """How many commands had this word."""
        return sum(word in command for command in self.ran)


def login_settings(folder: Path, port: int, known: Sequence[paramiko.PKey]) -> LoginSettings:
    file = folder / "known_hosts"
    lines = [f"[127.0.0.1]:{port} {key.get_name()} {key.get_base64()}\n" for key in known]
    file.write_text("".join(lines))
    return LoginSettings(host="127.0.0.1", port=port, known_hosts=str(file), minimum_uid=1000)
