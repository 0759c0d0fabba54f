"""Log-ins with a second factor, over real SSH: whatever the order in which sshd asks."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import paramiko
import pytest

from portal.adapters.ssh.login.conversation import MAX_PROMPTS, MAX_ROUNDS
from portal.adapters.ssh.login.passwords import LATE, PasswordCheck
from portal.adapters.ssh.per_user import ThreadBudget
from portal.config import WebSettings
from portal.errors import PasswordNotTried, Unavailable
from tests.support.cluster import wait_for
from tests.support.ssh_server import PASSWORD, Sshd, any_account, login_settings

CODE = "123456"
WEB = WebSettings(workers=2)
FAILED, SUCCESSFUL = paramiko.common.AUTH_FAILED, paramiko.common.AUTH_SUCCESSFUL
Prompts = Sequence[tuple[str, bool]]
FIRST: Prompts = (("Password: ", False),)
SECOND: Prompts = (("Verification code: ", True),)


class Asking(Sshd):
    """An sshd that asks these rounds of prompts, and wants these answers."""

    def __init__(
        self,
        key: paramiko.PKey,
        rounds: Sequence[Prompts] = (FIRST, SECOND),
        answers: Sequence[str] = (PASSWORD, CODE),
        methods: str = "keyboard-interactive",
        needs_both: bool = False,
        delay: float = 0,
    ) -> None:
        self.rounds, self.wanted, self.methods = list(rounds), list(answers), methods
        self.needs_both, self.delay = needs_both, delay
        self.got: list[str] = []
        """Answers of the last log-in."""
        self._connection = threading.local()  # paramiko has a thread for each
        super().__init__(key)

    def get_allowed_auths(self, username: str) -> str:
        return self.methods

    def check_auth_password(self, username: str, password: str) -> int:
        if "password" not in self.methods:
            return FAILED
        self.tried.append("password")
        if password != PASSWORD:
            return FAILED
        self.methods = "keyboard-interactive"
        return paramiko.common.AUTH_PARTIALLY_SUCCESSFUL if self.needs_both else SUCCESSFUL

    def check_auth_interactive(
        self, username: str, submethods: str
    ) -> int | paramiko.server.InteractiveQuery:
        if "keyboard-interactive" not in self.methods:
            return FAILED
        self.tried.append("keyboard-interactive")
        self._connection.asked, self._connection.got = 0, []
        self.got = self._connection.got
        return self._next()

    def _next(self) -> int | paramiko.server.InteractiveQuery:
        asked = self._connection.asked
        if asked < len(self.rounds):
            prompts = self.rounds[asked]
            self._connection.asked += 1
            return paramiko.server.InteractiveQuery("PAM", "<b>\x1b[31mhello", *prompts)
        time.sleep(self.delay)
        return SUCCESSFUL if self._connection.got == self.wanted else FAILED

    def check_auth_interactive_response(
        self, responses: list[str]
    ) -> int | paramiko.server.InteractiveQuery:
        self._connection.got += responses
        return self._next()


Make = Callable[..., tuple[Asking, PasswordCheck]]


@pytest.fixture(scope="module")
def key() -> paramiko.PKey:
    return paramiko.ECDSAKey.generate()


@pytest.fixture
def make(tmp_path: Path, key: paramiko.PKey) -> Iterator[Make]:
    """An sshd, and the portal's check against it."""
    with ExitStack() as stack:

        def made(seconds: int = 30, **how: object) -> tuple[Asking, PasswordCheck]:
            sshd = Asking(key, **how)  # type: ignore[arg-type]
            stack.callback(sshd.close)
            login = login_settings(tmp_path, sshd.port, [key])
            login = login.model_copy(update={"login_seconds": seconds})
            return sshd, PasswordCheck(login, any_account, None, None, WEB.log_ins_of_process)

        yield made


@pytest.mark.parametrize(
    ("rounds", "answers"),
    [
        ((FIRST, SECOND), (PASSWORD, CODE)),
        (((*FIRST, *SECOND),), (PASSWORD, CODE)),
        ((SECOND, FIRST), (CODE, PASSWORD)),
        (((*SECOND, *FIRST),), (CODE, PASSWORD)),
        (([], FIRST, [], SECOND, []), (PASSWORD, CODE)),
        (([("(alice@login) Password for alice@login:", False)], SECOND), (PASSWORD, CODE)),
        ((FIRST, [("One-time password (OATH) for `alice': ", False)]), (PASSWORD, CODE)),
        ((FIRST, [("Passcode or option (1-2): ", True)]), (PASSWORD, CODE)),
        (([("Kennwort: ", False)], [("Bestätigung: ", False)]), (PASSWORD, CODE)),
        ((SECOND,), (CODE,)),
        ((FIRST, SECOND, [("Another? ", True)]), (PASSWORD, CODE, "")),
    ],
)
def test_each_prompt_gets_its_answer(
    make: Make, rounds: Sequence[Prompts], answers: Sequence[str]
) -> None:
    sshd, check = make(rounds=rounds, answers=answers)
    assert check("alice", PASSWORD, CODE) == "alice"
    assert sshd.tried == ["keyboard-interactive"]


@pytest.mark.parametrize(
    ("password", "code"),
    [(PASSWORD, "654321"), (PASSWORD, ""), ("wrong", CODE), (CODE, PASSWORD), ("wrong", "")],
)
def test_both_must_be_right(make: Make, password: str, code: str) -> None:
    _sshd, check = make()
    assert check("alice", password, code) == ""


def test_a_password_is_never_repeated(make: Make) -> None:
    """PAM's second "Password:" means that the first was wrong; the code is not for it, either."""
    sshd, check = make(rounds=(FIRST, FIRST, FIRST))
    assert check("alice", "wrong", CODE) == ""
    assert sshd.got == ["wrong", "", ""]


def test_sshd_with_keyboard_interactive_for_the_password_alone(make: Make) -> None:
    sshd, check = make(rounds=(FIRST,), answers=(PASSWORD,))
    assert check("alice", PASSWORD) == "alice"
    assert check("alice", "wrong") == ""
    assert sshd.tried == ["keyboard-interactive"] * 2


@pytest.mark.parametrize("code", [CODE, ""])
def test_sshd_with_the_password_alone(make: Make, code: str) -> None:
    """A code that is not asked for is sent to nobody."""
    sshd, check = make(methods="password")
    assert check("alice", PASSWORD, code) == "alice"
    assert sshd.tried == ["password"]
    assert sshd.got == []


def test_the_method_password_and_then_the_code(make: Make) -> None:
    sshd, check = make(methods="password", rounds=(SECOND,), answers=(CODE,), needs_both=True)
    assert check("alice", PASSWORD, CODE) == "alice"
    assert sshd.tried == ["password", "keyboard-interactive"]
    sshd.methods = "password"
    assert check("alice", PASSWORD, "000000") == ""
    sshd.methods = "password"
    assert check("alice", PASSWORD) == ""
    sshd.methods = "password"
    assert check("alice", "wrong", CODE) == ""


def test_a_confirmation_by_telephone_takes_its_time_but_not_all(make: Make) -> None:
    _sshd, check = make(rounds=(FIRST,), answers=(PASSWORD,), delay=0.5)
    assert check("alice", PASSWORD) == "alice"
    _sshd, check = make(rounds=(FIRST,), answers=(PASSWORD,), delay=3, seconds=1)
    begin = time.monotonic()
    with pytest.raises(Unavailable, match=LATE):
        check("alice", PASSWORD)
    assert time.monotonic() - begin < 2.5


@pytest.mark.parametrize(
    "rounds",
    [[FIRST] * (MAX_ROUNDS + 1), [list(SECOND) * (MAX_PROMPTS + 1)]],
    ids=["rounds", "prompts"],
)
def test_sshd_cannot_ask_for_ever(make: Make, rounds: Sequence[Prompts]) -> None:
    _sshd, check = make(rounds=rounds)
    with pytest.raises(Unavailable):
        check("alice", PASSWORD, CODE)


def test_a_process_refuses_more_than_it_checks(make: Make) -> None:
    """HAProxy asks another process then; none of the passwords went to the login node."""
    sshd, check = make(rounds=(FIRST,), answers=(PASSWORD,), delay=1.5)
    number = WEB.log_ins_of_process
    with ThreadPoolExecutor(number) as pool:
        accepted = [pool.submit(check, "alice", PASSWORD) for _ in range(number)]
        wait_for("all of them", lambda: check._free._value == 0)
        with pytest.raises(PasswordNotTried):
            check("bob", PASSWORD)
        assert [each.result() for each in accepted] == ["alice"] * number
    assert len(sshd.tried) == number
    assert check("bob", PASSWORD) == "bob"


def test_a_process_without_threads_tries_no_password(tmp_path: Path, key: paramiko.PKey) -> None:
    budget = ThreadBudget(1)
    check = PasswordCheck(login_settings(tmp_path, 1, [key]), any_account, budget=budget)
    with budget.thread("carol"), pytest.raises(PasswordNotTried):
        check("alice", PASSWORD)


@pytest.mark.parametrize("threads", range(4, 65))
def test_log_ins_hold_three_quarters_of_a_process(threads: int) -> None:
    for workers in (1, 2, 3, 16):
        web = WebSettings(workers=workers, threads=threads)
        at_once = web.log_ins_of_process
        assert at_once >= 1
        assert at_once <= threads * 3 / 4
        assert web.log_ins_in_progress <= max(workers * at_once * 3 / 4, 2)
