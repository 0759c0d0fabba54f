"""A job's output: its page, its text in pieces, and the whole file."""

from __future__ import annotations

import re

from flask import render_template, request
from flask.typing import ResponseReturnValue

from portal.core.jobs.job import Job, JobTab
from portal.core.jobs.output import Stream, path_of, streams_of, title_of
from portal.web.context import person, services
from portal.web.http.downloads import send_download
from portal.web.log_response import LogTab, piece_response, requested_end, requested_offset
from portal.web.log_text import PIECE, TAIL, Piece, decode, stream, whole_lines
from portal.web.pages.blueprint import blueprint
from portal.web.pages.jobs.detail import page_of

SUFFIXES = {Stream.STDOUT: "out", Stream.STDERR: "err"}


def _stream() -> Stream:
    """The requested stream; standard output by default."""
    return Stream.STDERR if request.args.get("stream") == Stream.STDERR else Stream.STDOUT


@blueprint.get("/jobs/<shown_id>/output")
def job_output(shown_id: str) -> ResponseReturnValue:
    """The page; a script loads the text in pieces."""
    page, selected = page_of(shown_id), _stream()
    streams = streams_of(page.job)
    tabs = [LogTab(title_of(page.job, item), _part(item)) for item in streams]
    return render_template(
        "job_output.html",
        page=page,
        row=page.row,
        path=path_of(page.job, selected),
        part=_part(selected) if selected in streams else "",
        tabs=tabs if len(tabs) > 1 else [],
        reading=page.reading,
        person=person(),
    )


def _part(selected: Stream) -> str:
    return "stream=stderr" if selected is Stream.STDERR else ""


@blueprint.get("/jobs/<shown_id>/output/text")
def job_output_text(shown_id: str) -> ResponseReturnValue:
    """A piece of the output, its offset and that of the next piece, both in bytes.

    It begins at `offset` or ends at `before`; without either, it is the end of the file. A file
    that has become shorter than `offset` is read from its beginning.
    """
    job = services().jobs.get(person(), shown_id)
    over = job.tab is JobTab.ENDED or job.gone is not None
    return piece_response(lambda: _piece(job), over)


def _piece(job: Job) -> Piece:
    outputs, selected = services().job_outputs, _stream()
    offset, before = requested_offset(), requested_end()
    if offset is not None:
        chunk = outputs.read(person(), job.shown_id, selected, offset, PIECE)
        text, following = decode(chunk.data, chunk.offset)
        return Piece(text, chunk.offset, following)
    if before is not None:
        start = max(before - TAIL, 0)
        chunk = outputs.read(person(), job.shown_id, selected, start, before - start)
    else:
        chunk = outputs.read(person(), job.shown_id, selected, None, TAIL)
    data, begin = whole_lines(chunk.data, chunk.offset)
    text, following = decode(data, begin)
    return Piece(text, begin, following)


@blueprint.get("/jobs/<shown_id>/output/download")
def job_output_download(shown_id: str) -> ResponseReturnValue:
    """The whole output as it is now, as a file; streamed."""
    job, selected = services().jobs.get(person(), shown_id), _stream()
    # The pieces are read after the end of the request and its context.
    outputs, reader = services().job_outputs, person()
    size = outputs.size(reader, job.shown_id, selected) or 0

    def read(offset: int, limit: int) -> bytes:
        return outputs.read(reader, job.shown_id, selected, offset, limit).data

    number = re.sub("[^0-9_+-]+", "-", job.shown_id).strip("-")
    name = f"job-{number}.{SUFFIXES[selected]}"
    return send_download(person().name, name, stream(read, size), size)
