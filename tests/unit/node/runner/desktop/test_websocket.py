"""Frames of WebSockets, as browsers send them and as they get them."""

from __future__ import annotations

import asyncio

import pytest

from portal.node.runner.desktop import websocket
from portal.node.runner.desktop.websocket import BINARY, CLOSE, PING, Messages, ProtocolError
from tests.support.websockets import MASK, masked


def read(sent: bytes, count: int) -> list[tuple[int, bytes]]:
    """The first messages of what a browser has sent."""

    async def work() -> list[tuple[int, bytes]]:
        reader = asyncio.StreamReader()
        reader.feed_data(sent)
        reader.feed_eof()
        messages = Messages(reader)
        return [await messages.next() for _ in range(count)]

    return asyncio.run(work())


def test_the_answer_to_a_key_is_that_of_the_standard() -> None:
    assert websocket.accept("dGhlIHNhbXBsZSBub25jZQ==") == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="


@pytest.mark.parametrize(
    ("size", "head"),
    [
        (0, b"\x82\x00"),
        (125, b"\x82\x7d"),
        (126, b"\x82\x7e\x00\x7e"),
        (0xFFFF, b"\x82\x7e\xff\xff"),
        (0x10000, b"\x82\x7f\x00\x00\x00\x00\x00\x01\x00\x00"),
    ],
)
def test_a_frame_begins_with_its_kind_and_size(size: int, head: bytes) -> None:
    assert websocket.frame(BINARY, b"x" * size) == head + b"x" * size


def test_messages_are_unmasked_in_order() -> None:
    sent = masked(BINARY, b"hello") + masked(PING, b"") + masked(CLOSE, b"\x03\xe8")
    assert read(sent, 3) == [(BINARY, b"hello"), (PING, b""), (CLOSE, b"\x03\xe8")]


def test_the_parts_of_a_message_are_data_as_well() -> None:
    sent = masked(BINARY, b"one", final=False) + masked(0, b"two")
    assert read(sent, 2) == [(BINARY, b"one"), (BINARY, b"two")]


def test_a_long_message_comes_in_pieces_and_stays_the_same() -> None:
    data = bytes(n % 251 for n in range(websocket.CHUNK * 2 + 3))
    found = read(masked(BINARY, data), 3)
    assert [len(piece) for _, piece in found] == [websocket.CHUNK, websocket.CHUNK, 3]
    assert b"".join(piece for _, piece in found) == data


def test_a_mask_goes_on_where_a_piece_has_ended() -> None:
    # A reader's pieces are multiples of four bytes; a turned mask is needed only for others.
    assert websocket.unmask(b"\x01\x02\x03\x04\x01", MASK) == b"\0\0\0\0\0"
    assert websocket.unmask(b"", MASK) == b""


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (b"\x82\x05hello", "without a mask"),
        (b"\xc2\x80" + MASK, "with extensions"),
        (b"\x81\x80" + MASK, "of the kind 1"),
        (b"\x8b\x80" + MASK, "of the kind 11"),
        (masked(PING, b"x" * 126), "control frame"),
        (masked(PING, b"x", final=False), "control frame"),
    ],
)
def test_what_a_browser_never_sends_is_refused(sent: bytes, reason: str) -> None:
    with pytest.raises(ProtocolError, match=reason):
        read(sent, 1)


def test_an_end_inside_a_frame_is_an_end() -> None:
    with pytest.raises(asyncio.IncompleteReadError):
        read(masked(BINARY, b"hello")[:-1], 1)
