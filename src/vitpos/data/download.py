"""Fetch a data set once, however many jobs start with an empty folder."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from http.client import HTTPException
from pathlib import Path
from typing import TypeVar

from filelock import FileLock

T = TypeVar("T")
_may_fetch: ContextVar[bool] = ContextVar("may_fetch", default=True)
log = logging.getLogger(__name__)

SILENCE = 30.0  # seconds without a byte after which a server counts as dead


@contextmanager
def _impatient(seconds: float) -> Iterator[None]:
    """Give every new socket a time limit, since torchvision's downloads have none."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(seconds)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)


@contextmanager
def without_fetching() -> Iterator[None]:
    """Let a data set that is not on this machine be an error, for code that must create nothing."""
    token = _may_fetch.set(False)
    try:
        yield
    finally:
        _may_fetch.reset(token)


def find_or_fetch(
    name: str, root: Path, *, find: Callable[[], T | None], fetch: Callable[[], object], advice: str
) -> T:
    """Return what `find` returns, fetching the data set first if it finds none; once, over all processes.

    Args:
        name: of the data set, for messages and for its lock file.
        root: `data.root`.
        find: looks for the data set; asked again under the lock, and after fetching.
        fetch: brings the data set to `root`.
        advice: how a user without a network gets it.

    Raises:
        ValueError: the data is missing and could not be fetched.
    """
    found = find()
    if found is not None:
        return found
    if not _may_fetch.get():
        raise ValueError(f"data.root={root} holds no complete {name} yet")
    cause = "what came is incomplete"
    try:
        root.mkdir(parents=True, exist_ok=True)
        with FileLock(root / f".{name}.lock"):
            found = find()  # another process may have fetched it while this one waited
            if found is None:
                log.info("downloading %s to %s", name, root)
                with _impatient(SILENCE):
                    fetch()
                found = find()
    except (OSError, RuntimeError, HTTPException) as error:
        cause = " ".join(str(error).split())  # one line, however many mirrors were tried
    if found is None:
        raise ValueError(f"data.root={root} holds no complete {name}, and downloading it failed ({cause}). {advice}")
    return found
