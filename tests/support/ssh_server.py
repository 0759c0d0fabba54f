"""An SSH server on 127.0.0.1 that records authentication attempts."""

from __future__ import annotations

import socket
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


def login_settings(folder: Path, port: int, known: Sequence[paramiko.PKey]) -> LoginSettings:
    file = folder / "known_hosts"
    lines = [f"[127.0.0.1]:{port} {key.get_name()} {key.get_base64()}\n" for key in known]
    file.write_text("".join(lines))
    return LoginSettings(host="127.0.0.1", port=port, known_hosts=str(file), minimum_uid=1000)
