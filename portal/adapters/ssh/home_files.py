"""Access to the portal's files in a user's home and to the user's folders, as that user."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from portal.adapters.ssh import folder_commands, image_commands, key_commands, log_commands
from portal.adapters.ssh.command import Completed
from portal.adapters.ssh.shell.home import check_home
from portal.adapters.ssh.transport import Transport
from portal.core.apps.ssh import find_private_key
from portal.core.apps.ssh_keys import PublicKey, parse_public_keys
from portal.core.interfaces.systems import UserFiles
from portal.core.jobs.output import FilePiece
from portal.core.launch.mounts import Folder, storage_of
from portal.core.launch.own_image import ImageFile
from portal.errors import Conflict, FieldError, InvalidRequest, Unavailable


class HomeFiles(UserFiles):
    """UserFiles over SSH commands."""

    def __init__(self, transport: Transport, directory: str, storage: str) -> None:
        self._transport = transport
        self._directory = directory
        self._storage = storage

    def remove_session(self, user: str, session: str) -> None:
        folder = f"{self._directory}/sessions/{session}"
        result = self._transport.run(user, ["rm", "-rf", "--", folder])
        if result.code != 0:
            raise Unavailable(f"The session's files could not be deleted: {result.error_text()}")

    def read_log(self, user: str, session: str, offset: int, limit: int) -> bytes:
        if limit < 1:
            return b""
        return self._log(
            user, log_commands.read_argv(self._log_file(session), offset, limit), limit
        )

    def log_tail(self, user: str, session: str, limit: int) -> bytes:
        return self._log(user, log_commands.tail_argv(self._log_file(session), limit), limit)

    def log_size(self, user: str, session: str) -> int:
        text = self._log(user, log_commands.size_argv(self._log_file(session)), 64)
        return log_commands.size_parse(text)

    def session_file(self, user: str, session: str, name: str, limit: int) -> bytes:
        argv = log_commands.read_argv(f"{self._directory}/sessions/{session}/{name}", 0, limit)
        most = limit + log_commands.LEEWAY
        result = self._transport.run(user, argv, seconds=log_commands.SECONDS + 5, most=most)
        check_home(result)
        if result.code == log_commands.NO_FILE:
            return b""
        if result.code != 0:
            raise Unavailable(f"The session's folder could not be read: {result.error_text()}")
        return result.stdout[:limit]

    def _log(self, user: str, argv: Sequence[str], limit: int) -> bytes:
        most = limit + log_commands.LEEWAY
        result = self._transport.run(user, argv, seconds=log_commands.SECONDS + 5, most=most)
        check_home(result)
        if result.code == log_commands.NO_FILE:
            raise Conflict("The session's log is not a regular file, so it is not read.")
        if result.code != 0:
            raise Unavailable(f"The session's log could not be read: {result.error_text()}")
        return result.stdout[:limit]

    def read_file(self, user: str, path: str, offset: int | None, limit: int) -> FilePiece:
        argv = log_commands.piece_argv(path, offset, limit)
        most = limit + log_commands.LEEWAY
        result = self._transport.run(user, argv, seconds=log_commands.SECONDS + 5, most=most)
        if result.code in (124, 137):  # timeout(1) killed the command
            raise Unavailable("The file could not be read in time. Try again in a minute.")
        piece = log_commands.piece_parse(result, limit)
        if piece is None:
            raise Unavailable(f"The file could not be read: {result.error_text()}")
        return piece

    def _log_file(self, session: str) -> str:
        return f"{self._directory}/logs/{session}.log"

    def folders(self, user: str) -> list[Folder]:
        result = self._ask(user, folder_commands.list_argv(storage_of(user, self._storage)))
        return folder_commands.list_parse(result.stdout)

    def missing(self, user: str, folders: Collection[str], file: str = "") -> set[str]:
        argv = folder_commands.missing_argv(storage_of(user, self._storage), folders, file)
        return folder_commands.missing_parse(self._ask(user, argv).stdout)

    def make_folder(self, user: str, name: str) -> Folder:
        storage = storage_of(user, self._storage)
        argv = folder_commands.make_argv(storage, name)
        result = self._transport.run(user, argv, seconds=folder_commands.DEADLINE)
        check_home(result)
        if problem := folder_commands.storage_problem(result, storage):
            raise Conflict(problem)
        if refusal := folder_commands.make_refusal(result):
            raise InvalidRequest([FieldError("folder", refusal)])
        if result.code != 0:
            raise Unavailable(f"The folder could not be created: {result.error_text()}")
        return folder_commands.make_parse(result.stdout, name)

    def _ask(self, user: str, argv: Sequence[str]) -> Completed:
        result = self._transport.run(
            user, argv, seconds=folder_commands.DEADLINE, most=folder_commands.MOST_OUTPUT
        )
        check_home(result)
        if result.code != 0:
            raise Unavailable(f"Your folders cannot be read right now: {result.error_text()}")
        return result

    def image_files(self, user: str, places: Sequence[str]) -> list[ImageFile]:
        argv = image_commands.list_argv(storage_of(user, self._storage), places)
        return image_commands.list_parse(self._ask(user, argv).stdout)

    def container_key(self, user: str, new: bool = False) -> str:
        result = self._transport.run(user, key_commands.key_argv(self._directory, new))
        check_home(result)
        key = find_private_key(result.stdout.decode(errors="replace"))
        if result.code != 0 or key is None:
            raise Unavailable(f"Your SSH key could not be created: {result.error_text()}")
        return key

    def public_keys(self, user: str) -> list[PublicKey]:
        result = self._keys(user, key_commands.list_argv(self._directory))
        return parse_public_keys(result.stdout.decode(errors="replace"))

    def add_public_key(self, user: str, key: PublicKey) -> None:
        self._keys(user, key_commands.add_argv(self._directory, key.id, key.line))

    def remove_public_key(self, user: str, key: PublicKey) -> None:
        self._keys(user, key_commands.remove_argv(self._directory, key.id))

    def _keys(self, user: str, argv: Sequence[str]) -> Completed:
        result = self._transport.run(user, argv)
        check_home(result)
        if result.code != 0:
            raise Unavailable(f"Your SSH keys are not available right now: {result.error_text()}")
        return result
