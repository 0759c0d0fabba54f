"""The subset of HTTP/1.1 that the runner needs, as client and server, over any stream."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from io import BufferedReader

# Tells the portal that this runner knows an unknown session from an ended one.
RUNNER = "Slipway-Runner: 2"
LONGEST_LINE = 16 * 1024
LONGEST_BODY = 4 * 1024 * 1024


class WireError(OSError):
    """The peer sent invalid HTTP, or exceeded a size limit."""


class TooOften(Exception):
    """The server asks to retry after `seconds` (429)."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"not before {seconds:g} seconds")
        self.seconds = seconds


def post(
    stream: socket.socket, host: str, path: str, token: str, body: bytes
) -> tuple[int, bytes, bool]:
    """POST JSON and return status, body, and whether the connection can be reused.

    Raises TooOften if the server asks to retry later.
    """
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n"
        f"{RUNNER}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    stream.sendall(head.encode() + body)
    # A new reader per request loses nothing: each response is read completely.
    with stream.makefile("rb") as reader:
        status = _status(_line(reader))
        headers = read_headers(reader)
        answer, complete = _answer_body(reader, headers)
    if status == 429:
        later = headers.get("retry-after", "")
        raise TooOften(float(later) if later.isdecimal() and len(later) < 6 else 1.0)
    return status, answer, complete and headers.get("connection", "").lower() != "close"


def get_request(path: str) -> bytes:
    """A GET of `path`, after whose response the connection is closed."""
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()


def begins_response(line: bytes) -> bool:
    """Whether this is the first line of an HTTP response."""
    try:
        return _status(line.decode("latin-1")) > 0
    except WireError:
        return False


def get(stream: socket.socket, path: str) -> tuple[int, bytes]:
    """GET `path` and return status and body."""
    stream.sendall(get_request(path))
    with stream.makefile("rb") as reader:
        status = _status(_line(reader))
        return status, _answer_body(reader, read_headers(reader))[0]


def read_request(reader: BufferedReader) -> tuple[str, str, bytes]:
    """Read one request and return method, path and body."""
    parts = _line(reader).split()
    if len(parts) != 3 or not parts[2].startswith("HTTP/1."):
        raise WireError("not a request")
    headers = read_headers(reader)
    return parts[0], parts[1], _sized(reader, headers.get("content-length", "0"))


def answer(status: int, body: bytes = b"") -> bytes:
    """Render a JSON response; the connection is closed after it."""
    reasons = {200: "OK", 202: "Accepted", 204: "No Content", 400: "Bad Request", 404: "Not Found"}
    lines = [f"HTTP/1.1 {status} {reasons.get(status, 'Error')}", "Connection: close"]
    if status != 204:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body


def read_headers(reader: BufferedReader) -> dict[str, str]:
    """Read header lines up to the empty one; names in lower case."""
    headers: dict[str, str] = {}
    for _ in range(100):
        line = _line(reader)
        if not line:
            return headers
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    raise WireError("too many headers")


def _answer_body(reader: BufferedReader, headers: dict[str, str]) -> tuple[bytes, bool]:
    if headers.get("transfer-encoding", "").lower() == "chunked":
        return _chunks(reader), True
    if "content-length" in headers:
        return _sized(reader, headers["content-length"]), True
    return reader.read(LONGEST_BODY), False


def _chunks(reader: BufferedReader) -> bytes:
    body = b""
    while True:
        try:
            size = int(_line(reader).partition(";")[0], 16)
        except ValueError:
            raise WireError("bad chunk") from None
        if len(body) + size > LONGEST_BODY:
            raise WireError("answer too long")
        if size == 0:
            read_headers(reader)
            return body
        body += _sized(reader, str(size))
        _line(reader)


def _sized(reader: BufferedReader, length: str) -> bytes:
    if not length.isdecimal() or int(length) > LONGEST_BODY:
        raise WireError("bad length")
    body = reader.read(int(length))
    if len(body) != int(length):
        raise WireError("connection ended early")
    return body


def _line(reader: BufferedReader) -> str:
    line = reader.readline(LONGEST_LINE)
    if not line.endswith(b"\n"):
        raise WireError("connection ended early")
    return line.decode("latin-1").rstrip("\r\n")


def _status(line: str) -> int:
    parts = line.split(None, 2)
    if len(parts) < 2 or not parts[0].startswith("HTTP/1.") or not parts[1].isdecimal():
        raise WireError("not an answer")
    return int(parts[1])
