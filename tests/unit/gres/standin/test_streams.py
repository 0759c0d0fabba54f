"""Streams have an order of their own, events a context, green contexts a part of the GPU."""

from __future__ import annotations

import pytest

from tests.unit.gres.conftest import Standin
from tests.unit.gres.programs import output

STREAMS = """
import threading, time
start()
NONE, LEGACY, OWN = None, c.c_void_p(1), c.c_void_p(2)
def stream(flags=1, priority=0):
    made = c.c_void_p(); ok(d.cuStreamCreateWithPriority(c.byref(made), flags, priority))
    return made
def event():
    made = c.c_void_p(); ok(d.cuEventCreate(c.byref(made), 0)); return made
def mark(stream):
    made = event(); ok(d.cuEventRecord(made, stream)); return made
def launch(us, stream=None, blocks=1, form=""):
    value = c.c_uint(us); values = (c.c_void_p * 1)(c.addressof(value))
    return d["cuLaunchKernel" + form](None, blocks, 1, 1, 1, 1, 1, 0, stream, values, None)
def ms(one, other):
    ok(d.cuEventSynchronize(other)); found = c.c_float()
    ok(d.cuEventElapsedTime(c.byref(found), one, other)); return found.value
def is_done(stream): return {0: True, 600: False}[d.cuStreamQuery(stream)]
"""


def busy_ms(standin: Standin) -> float:
    busy: int = standin.show()["gpus"][0]["busy_ns"]
    return busy / 1e6


def run(standin: Standin, text: str) -> None:
    output(standin, STREAMS + text + "\nok(d.cuCtxSynchronize())")


@pytest.mark.parametrize(("blocks", "busy"), [(1, 40), (8, 40), (9, 80), (64, 80)])
def test_kernels_overlap_as_far_as_they_have_room(
    standin: Standin, blocks: int, busy: float
) -> None:
    """Two streams with 40 ms each, on 16 multiprocessors."""
    run(
        standin,
        f"""
a, b = stream(), stream()
for _ in range(4):
    ok(launch(10000, a, {blocks})); ok(launch(10000, b, {blocks}))""",
    )
    # Until the first kernel of the second stream was given, the first one had the GPU for itself.
    assert busy <= busy_ms(standin) < busy + 10


def test_one_stream_is_in_order_whatever_the_size(standin: Standin) -> None:
    run(standin, "a = stream()\nfor _ in range(4): ok(launch(5000, a))")
    assert busy_ms(standin) == 20


def test_a_stream_waits_for_an_event_of_another(standin: Standin) -> None:
    text = """
a, b, free = stream(), stream(), stream()
begin = mark(a); ok(launch(60000, a)); end = mark(a)
ok(d.cuStreamWaitEvent(b, end, 0)); ok(launch(1000, b)); after = mark(b)
ok(launch(1000, free)); ok(d.cuStreamSynchronize(free))
assert not is_done(a) and not is_done(b)  # the third waits for nobody
assert 60 <= ms(begin, end) < 200 and 61 <= ms(begin, after) < 200, ms(begin, after)
ok(d.cuStreamWaitEvent(b, event(), 0))  # never recorded: no wait
ok(d.cuEventDestroy_v2(end)); ok(d.cuStreamDestroy_v2(a))"""
    run(standin, text)


def test_an_event_is_of_what_was_recorded_last_before_the_wait(standin: Standin) -> None:
    text = """
a, b = stream(), stream()
one = mark(a); ok(d.cuStreamWaitEvent(b, one, 0))
ok(launch(100000, a)); ok(d.cuEventRecord(one, a))
ok(launch(1000, b)); ok(d.cuStreamSynchronize(b))
assert not is_done(a) and d.cuEventQuery(one) == 600"""
    run(standin, text)


def test_the_default_stream_waits_for_blocking_streams_and_they_for_it(standin: Standin) -> None:
    text = """
blocking, other = stream(0), stream(1)
begin = mark(blocking); ok(launch(40000, blocking))
ok(launch(20000, NONE)); default = mark(NONE)
ok(launch(10000, blocking)); last = mark(blocking)
ok(launch(1000, other)); ok(d.cuStreamSynchronize(other))
assert not is_done(NONE) and not is_done(LEGACY) and not is_done(blocking)
assert 60 <= ms(begin, default) < 200 and 70 <= ms(begin, last) < 250
ok(launch(30000, blocking)); ok(d.cuStreamSynchronize(NONE)); assert is_done(blocking)"""
    run(standin, text)
    assert 100 <= busy_ms(standin) <= 101


def test_each_thread_has_a_default_stream_of_its_own(standin: Standin) -> None:
    text = """
ok(launch(100000, NONE, form="_ptsz"))
def elsewhere():
    context = c.c_void_p(); ok(d.cuDevicePrimaryCtxRetain(c.byref(context), 0))
    ok(d.cuCtxSetCurrent(context))
    ok(launch(1000, OWN)); ok(d.cuStreamSynchronize_ptsz(NONE)); seen.append(is_done(OWN))
seen = []
thread = threading.Thread(target=elsewhere); thread.start(); thread.join()
assert seen == [True] and not is_done(OWN) and d.cuStreamQuery_ptsz(NONE) == 600
assert not is_done(NONE)  # the legacy one waits for it, as for all blocking streams
begin = mark(NONE); ok(d.cuStreamSynchronize(NONE)); assert is_done(OWN)"""
    run(standin, text)


def test_an_event_belongs_to_the_context_of_its_creation(standin: Standin) -> None:
    text = """
first, second = event(), c.c_void_p()
ok(d.cuCtxCreate_v2(c.byref(second), 0, 0))
assert d.cuEventRecord(first, None) == 400
a, own = stream(), event(); ok(launch(20000, a)); ok(d.cuEventRecord(own, a))
ok(d.cuCtxPopCurrent_v2(None))
assert d.cuEventRecord(first, a) == 400 and d.cuEventRecord(own, None) == 400
assert launch(1000, a) == 400  # a stream of another context
b = stream(); ok(d.cuStreamWaitEvent(b, own, 0)); ok(launch(1000, b))  # waits across contexts
ok(d.cuStreamSynchronize(b)); ok(d.cuEventQuery(own))
ok(d.cuEventRecord(first, b))"""
    run(standin, text)


def test_a_capture_takes_in_streams_that_wait_for_it(standin: Standin) -> None:
    text = """
a, b = stream(), stream()
ok(d.cuStreamBeginCapture_v2(a, 0)); ok(launch(10000, a))
fork = mark(a); ok(d.cuStreamWaitEvent(b, fork, 0)); ok(launch(10000, b))
capturing = c.c_int(); ok(d.cuStreamIsCapturing(b, c.byref(capturing))); assert capturing.value
assert d.cuEventQuery(fork) == 907 and d.cuStreamQuery(b) == 900
ok(d.cuStreamWaitEvent(a, mark(b), 0))
graph, run = c.c_void_p(), c.c_void_p()
ok(d.cuStreamEndCapture(a, c.byref(graph)))
assert is_done(a) and is_done(b)
ok(d.cuGraphInstantiateWithFlags(c.byref(run), graph, u64(0)))
ok(d.cuGraphLaunch(run, b))"""
    run(standin, text)
    assert busy_ms(standin) == 20


def test_a_stream_with_priority_goes_first(standin: Standin) -> None:
    text = """
low, high = stream(1, 0), stream(1, -5)
begin = mark(low)
for _ in range(10): ok(launch(5000, low, 64))
for _ in range(4): ok(launch(5000, high, 64))
first, last = mark(high), mark(low)
assert ms(begin, first) < ms(begin, last) - 15, (ms(begin, first), ms(begin, last))"""
    run(standin, text)


GREEN = """
class Resource(c.Structure):
    _fields_ = [("type", c.c_int), ("pad", c.c_ubyte * 92), ("sms", c.c_uint)]
    _fields_ += [("rest", c.c_ubyte * 44)]
whole, rest, parts, many = Resource(), Resource(), (Resource * 2)(), c.c_uint(2)
ok(d.cuDeviceGetDevResource(0, c.byref(whole), 1)); assert whole.sms == 16
ok(d.cuDevSmResourceSplitByCount(parts, c.byref(many), c.byref(whole), c.byref(rest), 0, 5))
assert (many.value, parts[0].sms, parts[1].sms, rest.sms) == (2, 6, 6, 4)
def green(part):
    text, made = c.c_void_p(), c.c_void_p()
    ok(d.cuDevResourceGenerateDesc(c.byref(text), c.byref(part), 1))
    ok(d.cuGreenCtxCreate(c.byref(made), text, 0, 1)); return made
before = free()
one, two = green(parts[0]), green(parts[1])
assert free() == before
def green_stream(of):
    made = c.c_void_p(); ok(d.cuGreenCtxStreamCreate(c.byref(made), of, 1, 0)); return made
a, b = green_stream(one), green_stream(two)
"""


def test_green_contexts(standin: Standin) -> None:
    text = """
found, base = c.c_void_p(), c.c_void_p()
ok(d.cuStreamGetGreenCtx(a, c.byref(found))); assert found.value == one.value
ok(d.cuStreamGetCtx_v2(a, c.byref(base), c.byref(found))); assert found.value == one.value
primary = c.c_void_p(); ok(d.cuCtxGetCurrent(c.byref(primary))); assert base.value == primary.value
# Kernels of any size have the context's multiprocessors, so that both run side by side.
ok(launch(40000, a, 64)); ok(launch(40000, b, 64))
assert d.cuEventRecord(event(), a) == 400  # an event of the primary context
context = c.c_void_p(); ok(d.cuCtxFromGreenCtx(c.byref(context), one))
ok(d.cuCtxPushCurrent_v2(context))
own = event(); ok(d.cuEventRecord(own, a)); ok(d.cuEventSynchronize(own))
whole_context = event(); ok(launch(5000, a)); ok(d.cuGreenCtxRecordEvent(one, whole_context))
ok(d.cuEventSynchronize(whole_context)); assert is_done(a)
ok(d.cuCtxPopCurrent_v2(None))
ok(d.cuGreenCtxWaitEvent(two, own))
ok(d.cuStreamDestroy_v2(a)); ok(d.cuGreenCtxDestroy(one)); assert d.cuGreenCtxDestroy(one) == 201
ok(d.cuCtxSynchronize_v2(two))
ok(d.cuGreenCtxDestroy(two))"""
    run(standin, GREEN + text)
    assert 45 <= busy_ms(standin) < 60


def test_streams_of_two_processes_take_turns(standin: Standin) -> None:
    """Streams do not get a process more than its half of the GPU."""
    text = """
many = [stream() for _ in range(4)]
begin = mark(many[0])
for _ in range(10):
    for one in many: ok(launch(2000, one, 64))
print(ms(begin, mark(many[3])))"""
    assert 80 <= float(output(standin, STREAMS + text)) < 200
    assert busy_ms(standin) == 80
