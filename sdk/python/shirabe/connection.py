"""HTTP to the child: one connection a thread, kept; JSON in and out."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import struct
import threading
import time
from typing import Any, Dict, Iterator, List, Optional, Tuple
from urllib.parse import urlencode

from shirabe_client.errors import Unavailable, from_reply
from shirabe_client.transport import encode_json

from .child import Child

__all__ = ["Connection"]

_TIMEOUT = 90.0  # seconds for one answer; the longest that is asked for is 20
_PIECE = 1 << 16  # bytes received at once
_RESTARTS = 3
_HANDOVER = 60.0  # seconds for "not just now": another process's child may still be letting go
_PAUSES = (0.02, 0.5)  # seconds between calls while it does: the first, the longest


class Connection:
    """Calls of the child. What is called here may be sent twice: a child that has died is started
    again, and goes on where it was; one that cannot do it just now is asked again. Thread-safe."""

    def __init__(self, child: Child) -> None:
        self._child = child
        self._local = threading.local()
        self._made: List[_Wire] = []
        self._over = False

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """The JSON of the answer. Errors are those of shirabe_client.errors."""
        deadline = time.monotonic() + _HANDOVER
        pause, longest = _PAUSES
        while True:
            try:
                return self._answered(method, path, body)
            except Unavailable as error:
                if error.status == 0 or time.monotonic() > deadline:
                    raise
            time.sleep(pause)
            pause = min(2 * pause, longest)

    def _answered(self, method: str, path: str, body: Any) -> Any:
        for attempt in range(_RESTARTS + 1):
            seen = self._child.starts
            try:
                return self._once(method, path, body)
            except OSError as error:
                self.close()
                if attempt == _RESTARTS:
                    raise Unavailable(f"the child {method} {path}: {error!r}") from error
                if isinstance(error, ConnectionResetError) and attempt == 0:
                    continue  # it may have closed a connection that was idle
                time.sleep(0.05)  # it may be about to end
                self._child.start(seen)

    def pages(self, path: str, **query: Any) -> Iterator[Dict[str, Any]]:
        """The items of a list, page by page."""
        token: Optional[str] = None
        while True:
            asked = {**query, "pageSize": 1000, **({"pageToken": token} if token else {})}
            page = self.call("GET", f"{path}?{urlencode(asked)}")
            yield from page["items"]
            token = page.get("nextPageToken")
            if not token:
                return

    def close(self) -> None:
        """This thread's connection."""
        wire = getattr(self._local, "wire", None)
        self._local.wire = None
        if wire:
            if wire in self._made:
                self._made.remove(wire)
            wire.close()

    def close_all(self) -> None:
        """Those of all threads. A thread that a second Ctrl-C has left behind can tell nothing any
        more: Unavailable. Its trial stays open, for the next call."""
        self._over = True
        while self._made:
            self._made.pop().close()

    def _once(self, method: str, path: str, body: Any) -> Any:
        if self._over:
            raise Unavailable("the search is over")
        wire = getattr(self._local, "wire", None)
        now = (self._child.starts, os.getpid())  # a forked process needs one of its own
        if wire is None or self._local.made != now:
            self.close()
            wire = _Wire(self._child.address, self._child.token)
            self._made.append(wire)
            self._local.wire, self._local.made = wire, now
        try:
            status, text = wire.exchange(method, path, body)
        except BaseException:  # also Ctrl-C: a reply may be on its way
            self.close()
            raise
        if status >= 300:
            try:
                raise from_reply(status, json.loads(text))
            except ValueError:
                raise from_reply(status, text.decode("utf-8", "replace")) from None
        return json.loads(text) if text else None


class _Wire:
    """One connection. Of HTTP it knows what the child says, at a tenth of http.client's time: a
    reply has a length, and mostly comes in one piece."""

    def __init__(self, address: Tuple[str, int], token: str) -> None:
        self._socket = socket.create_connection(address, timeout=_TIMEOUT)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # The kernel's own limit: Python's asks it twice for each piece.
        self._socket.settimeout(None)
        limit = struct.pack("ll", int(_TIMEOUT), 0)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
        self._owner = os.getpid()
        self._rest = b""  # of what has been received, after the last reply
        self._head = f"Host: {address[0]}:{address[1]}\r\nAuthorization: Bearer {token}\r\n"

    def exchange(self, method: str, path: str, body: Any) -> Tuple[int, bytes]:
        """Status and body of the reply. OSError: there is none, or not all of it."""
        data = b"" if body is None else encode_json(body)
        kind = "Content-Type: application/json\r\n" if data else ""
        head = f"{method} {path} HTTP/1.1\r\n{self._head}{kind}Content-Length: {len(data)}\r\n\r\n"
        self._socket.sendall(head.encode("ascii") + data)
        received = self._rest
        while (end := received.find(b"\r\n\r\n")) < 0:
            received += self._more()
        first, *lines = received[:end].split(b"\r\n")
        words = first.split(None, 2)
        if len(words) < 2 or not words[1].isdigit():
            raise ConnectionResetError("the connection has ended")
        length = 0
        for line in lines:
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        begin, missing = end + 4, end + 4 + length - len(received)
        pieces = [received]
        while missing > 0:
            pieces.append(self._more())
            missing -= len(pieces[-1])
        received = b"".join(pieces)
        self._rest = received[begin + length :]
        return int(words[1]), received[begin : begin + length]

    def _more(self) -> bytes:
        piece = self._socket.recv(_PIECE)
        if not piece:
            raise ConnectionResetError("the connection has ended")
        return piece

    def close(self) -> None:
        if os.getpid() == self._owner:  # a forked process has a copy, of the same connection
            with contextlib.suppress(OSError):  # also for a thread that waits in it
                self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
