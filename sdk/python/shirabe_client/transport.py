"""HTTP to one server: JSON in and out, retries where they change nothing, and event streams.

Only the standard library. Thread-safe: every request has a connection of its own.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import re
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional

from .errors import ShirabeError, Unavailable, from_reply

__all__ = ["Event", "Transport", "encode_json", "python_number"]

_IDEMPOTENT = ("GET", "PUT", "DELETE")
_FIRST_PAUSE = 0.1  # seconds; doubles
# What JSON may hold as it is, and a reader of YAML may not.
_ESCAPED = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
_QUIET = 60.0  # seconds without a byte after which a stream is dead: the server beats every 15


def encode_json(body: Any) -> bytes:
    """A body as servers of every version read it: those before 0.2 know no character that JSON
    escapes as two halves, such as an emoji, unless it stands there itself."""
    text = json.dumps(body, ensure_ascii=False, default=python_number)
    return _ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", text).encode()


def python_number(value: Any) -> Any:
    """Of a number of NumPy or PyTorch, for json.dumps. TypeError for what JSON has not."""
    if hasattr(value, "item") and getattr(value, "shape", None) == ():
        return value.item()
    raise TypeError(
        f"JSON has no {type(value).__name__}: give None, bools, numbers, texts, lists or dicts"
    )


class Event(NamedTuple):
    """One event of a stream: its kind, its data, and the id after which a reader goes on."""

    kind: str
    data: Any
    id: str


class Transport:
    """Requests to `url`, with a bearer token. `retry_for`: seconds for which a server that has
    answered before may be gone."""

    def __init__(
        self,
        url: str,
        token: str = "",
        *,
        ca: Optional[str] = None,
        certificate: Optional[str] = None,
        key: Optional[str] = None,
        timeout: float = 30.0,
        retry_for: float = 10.0,
    ) -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f'the url "{url}" is not an address: write http://HOST:PORT')
        self.url = url.rstrip("/")
        self._token = token
        self._timeout = timeout
        self._retry_for = retry_for
        self._reached = False
        handlers: List[urllib.request.BaseHandler] = [urllib.request.ProxyHandler({})]
        if parts.scheme == "https":
            context = ssl.create_default_context(cafile=ca)
            if certificate:
                context.load_cert_chain(certificate, key)
            handlers.append(urllib.request.HTTPSHandler(context=context))
        self._opener = urllib.request.build_opener(*handlers)

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Optional[Mapping[str, Any]] = None,
        headers: Optional[Mapping[str, str]] = None,
        timeout: Optional[float] = None,
        idempotent: Optional[bool] = None,
    ) -> Any:
        """The JSON of the reply, or its text where it is none; None for no content.

        body: sent as JSON; as YAML if it is text.
        idempotent: may be sent twice; by default GET, PUT and DELETE.
        Raises an error of `errors` for anything but success.
        """
        again = method in _IDEMPOTENT if idempotent is None else idempotent
        request = self._request(method, path, body, query, headers)
        with self._open(request, timeout or self._timeout, again) as reply:
            text = reply.read()
            kind = reply.headers.get_content_type()
        if kind == "application/json":
            return json.loads(text) if text else None
        return text.decode("utf-8", "replace") if text else None

    def events(
        self, path: str, query: Optional[Mapping[str, Any]] = None, last_id: str = ""
    ) -> Iterator[Event]:
        """The events of a stream, until the server ends it with an event `end`. A connection that
        is lost is made again, after the last event that was seen."""
        lost_at: Optional[float] = None
        while True:
            headers = {"Accept": "text/event-stream"}
            if last_id:
                headers["Last-Event-ID"] = last_id
            request = self._request("GET", path, None, query, headers)
            with self._open(request, _QUIET, True) as reply:
                try:
                    for event in _read_events(reply):
                        lost_at = None
                        last_id = event.id or last_id
                        if event.kind == "end":
                            return
                        if event.kind != "message":
                            yield event
                except (OSError, http.client.HTTPException):
                    pass
            lost_at = lost_at or time.monotonic()
            if time.monotonic() - lost_at > self._retry_for:
                raise Unavailable(f"the stream from {self.url} ends again and again", "UNAVAILABLE")
            time.sleep(_FIRST_PAUSE)

    def _request(
        self,
        method: str,
        path: str,
        body: Any,
        query: Optional[Mapping[str, Any]],
        headers: Optional[Mapping[str, str]],
    ) -> urllib.request.Request:
        asked = {k: _text(v) for k, v in (query or {}).items() if v is not None}
        url = self.url + path + ("?" + urllib.parse.urlencode(asked) if asked else "")
        request = urllib.request.Request(url, method=method)
        request.add_header("Accept", "application/json")
        if self._token:
            request.add_header("Authorization", f"Bearer {self._token}")
        if body is not None:
            yaml = isinstance(body, str)
            request.data = body.encode() if yaml else encode_json(body)
            request.add_header("Content-Type", "application/yaml" if yaml else "application/json")
        for name, value in (headers or {}).items():
            request.add_header(name, value)
        return request

    def _open(
        self, request: urllib.request.Request, timeout: float, again: bool
    ) -> http.client.HTTPResponse:
        deadline = time.monotonic() + self._retry_for
        pause = _FIRST_PAUSE
        while True:
            try:
                reply: http.client.HTTPResponse = self._opener.open(request, timeout=timeout)
                self._reached = True
                return reply
            except urllib.error.HTTPError as error:
                self._reached = True
                failure = _failure_of(error)
                may = again and failure.status in (429, 503)
            except (OSError, http.client.HTTPException) as error:
                reason = getattr(error, "reason", error)
                failure = Unavailable(
                    f"cannot reach the server {self.url}: {reason}", "UNAVAILABLE"
                )
                # What was refused was not read, so that nothing can have come of it.
                refused = isinstance(reason, ConnectionRefusedError)
                may = (again or refused) and self._reached
            if not may or time.monotonic() + pause > deadline:
                raise failure
            time.sleep(pause * (1 + random.random() / 4))
            pause *= 2


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _failure_of(error: urllib.error.HTTPError) -> ShirabeError:
    with error:
        text = error.read().decode("utf-8", "replace")
    try:
        return from_reply(error.code, json.loads(text))
    except ValueError:
        return from_reply(error.code, text.strip())


def _read_events(reply: Any) -> Iterator[Event]:
    data: List[str] = []
    kind, number = "message", ""
    for raw in reply:
        line = raw.decode("utf-8", "replace").rstrip("\r\n")
        if not line:
            if data or number:
                yield Event(
                    kind if data else "message", json.loads("\n".join(data) or "{}"), number
                )
            kind, data, number = "message", [], ""
        elif not line.startswith(":"):
            name, _, value = line.partition(":")
            value = value[1:] if value.startswith(" ") else value
            if name == "event":
                kind = value
            elif name == "data":
                data.append(value)
            elif name == "id":
                number = value


def find_token(token: Optional[str], token_file: Optional[str], url: str) -> str:
    """The token itself, or the last word of the file's first line. Without either, the file that a
    server of this user makes; it is only used for a server of this machine."""
    if token is not None:
        return token
    named = token_file or os.environ.get("SHIRABE_TOKEN_FILE")
    if not named and not _is_loopback(urllib.parse.urlsplit(url).hostname or ""):
        return ""
    path = Path(named) if named else _home() / "token"
    try:
        words = path.read_text("utf-8").split("\n", 1)[0].split()
    except OSError:
        if named:
            raise
        return ""
    return words[-1] if words else ""


def _is_loopback(host: str) -> bool:
    # A name that merely begins with 127. belongs to whoever registered it.
    digits = host.replace(".", "").isdigit()
    return host in ("localhost", "::1") or (digits and host.startswith("127."))


def _home() -> Path:
    if home := os.environ.get("SHIRABE_HOME"):
        return Path(home)
    data = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(data) / "shirabe"
