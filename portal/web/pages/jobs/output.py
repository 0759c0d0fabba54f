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
    """The wanted stream; anything else is the output."""
    return Stream.STDERR if request.args.get("stream") == Stream.STDERR else Stream.STDOUT


@blueprint.get("/jobs/<shown_id>/output")
def job_output(shown_id: str) -> ResponseReturnValue:
    """The page; a script loads the text in pieces."""
    page, wanted = page_of(shown_id), _stream()
    found = streams_of(page.job)
    tabs = [LogTab(title_of(page.job, one), _part(one)) for one in found]
    return render_template(
        "job_output.html",
        page=page,
        row=page.row,
        path=path_of(page.job, wanted),
        part=_part(wanted) if wanted in found else "",
        tabs=tabs if len(tabs) > 1 else [],
        reading=page.reading,
        person=person(),
    )


def _part(wanted: Stream) -> str:
    return "stream=stderr" if wanted is Stream.STDERR else ""


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
    outputs, wanted = services().job_outputs, _stream()
    offset, before = requested_offset(), requested_end()
    if offset is not None:
        found = outputs.read(person(), job.shown_id, wanted, offset, PIECE)
        text, following = decode(found.data, found.offset)
        return Piece(text, found.offset, following)
    if before is not None:
        start = max(before - TAIL, 0)
        found = outputs.read(person(), job.shown_id, wanted, start, before - start)
    else:
        found = outputs.read(person(), job.shown_id, wanted, None, TAIL)
    data, place = whole_lines(found.data, found.offset)
    text, following = decode(data, place)
    return Piece(text, place, following)


@blueprint.get("/jobs/<shown_id>/output/download")
def job_output_download(shown_id: str) -> ResponseReturnValue:
    """The whole output as it is now, as a file; streamed."""
    job, wanted = services().jobs.get(person(), shown_id), _stream()
    # The pieces are read when the request is over, and its context with it.
    outputs, who = services().job_outputs, person()
    size = outputs.size(who, job.shown_id, wanted) or 0

    def read(offset: int, limit: int) -> bytes:
        return outputs.read(who, job.shown_id, wanted, offset, limit).data

    number = re.sub("[^0-9_+-]+", "-", job.shown_id).strip("-")
    name = f"job-{number}.{SUFFIXES[wanted]}"
    return send_download(person().name, name, stream(read, size), size)
