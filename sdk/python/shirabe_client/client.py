"""Experiments of a Shirabe server, from Python.

    from shirabe_client import Client

    client = Client("http://127.0.0.1:7451")
    experiment = client.create(open("experiment.yaml").read())
    while trial := experiment.ask():
        for step in range(100):
            if trial.report(step, loss=train(trial.parameters)):
                break                       # not worth going on
        trial.tell(loss=evaluate())
    print(experiment.best.parameters)       # of several objectives: experiment.front

Only the standard library. Objects hold what the server last said (`raw`); `refresh()` asks again.
Errors are those of `shirabe_client.errors`. A client may be shared by threads.
"""

from __future__ import annotations

import itertools
import json
import os
import re
from pathlib import Path
from typing import Any, Iterator, List, Mapping, Optional, Union
from urllib.parse import quote

from . import replies
from .arguments import mapping, seconds
from .errors import NotFound, ShirabeError
from .experiment import Best, Change, Experiment, FrontPoint
from .transport import Transport, find_token
from .trial import Json, Observation, Trial

__all__ = ["Best", "Change", "Client", "Experiment", "FrontPoint", "Observation", "Trial"]

Spec = Union[str, Path, Mapping[str, Any]]


class Client:
    """A server, and who calls it.

    url: http://HOST:PORT or https://…; default $SHIRABE_URL.
    token, token_file: default $SHIRABE_TOKEN_FILE; for a server of this machine also the file that
        it makes in $SHIRABE_HOME.
    namespace: of names that come without one; default $SHIRABE_NAMESPACE, else "default".
    ca, certificate, key: PEM files, for https.
    timeout: seconds for one request. retry_for: seconds for which a server that has answered before
        may be gone; what cannot be sent twice is not.
    """

    def __init__(
        self,
        url: Optional[str] = None,
        token: Optional[str] = None,
        *,
        token_file: Optional[str] = None,
        namespace: Optional[str] = None,
        ca: Optional[str] = None,
        certificate: Optional[str] = None,
        key: Optional[str] = None,
        timeout: float = 30.0,
        retry_for: float = 10.0,
    ) -> None:
        url = url or os.environ.get("SHIRABE_URL")
        if not url:
            raise ValueError("no server: give Client(url) or set SHIRABE_URL to http://HOST:PORT")
        self.namespace = namespace or os.environ.get("SHIRABE_NAMESPACE") or "default"
        self.transport = Transport(
            url,
            find_token(token, token_file, url),
            ca=ca,
            certificate=certificate,
            key=key,
            timeout=timeout,
            retry_for=retry_for,
        )

    def create(self, spec: Spec) -> Experiment:
        """A new experiment: YAML or JSON text, a path to it, or the same as a mapping. Conflict if
        there is one of its name, Invalid with every field that is wrong."""
        return Experiment(self, self.transport.call("POST", self._list(), _body(spec)))

    def apply(self, spec: Spec) -> Experiment:
        """Creates the experiment, or changes the counts and the goal of the one that exists.
        Conflict if that is another search; ValueError without metadata.name."""
        body = _body(spec)
        if isinstance(body, str):
            try:
                return self.create(body)
            except ShirabeError as error:
                if error.code != "ALREADY_EXISTS":
                    raise
        return Experiment(self, self.transport.call("PUT", self.path(_name_of(body)), body))

    def get(self, name: str) -> Experiment:
        """NotFound if there is none."""
        return Experiment(self, self.transport.call("GET", self.path(name)))

    def list(self, filter: Optional[str] = None, sort: Optional[str] = None) -> List[Experiment]:
        """The experiments of the namespace. filter: 'state=Running'; sort: 'age', '~best'."""
        return [
            Experiment(self, item) for item in self.pages(self._list(), filter=filter, sort=sort)
        ]

    def delete(self, name: str, timeout: float = 60.0) -> None:
        """Ends it, waits until nothing of it runs, and removes it. What is not there is fine."""
        timeout = seconds("timeout", timeout)
        try:
            self.transport.call(
                "DELETE",
                self.path(name),
                query={"waitSeconds": int(min(timeout, 300))},
                timeout=timeout + 10,
            )
        except NotFound:
            pass

    def watch(
        self, experiment: Optional[str] = None, after: Optional[int] = None
    ) -> Iterator[Change]:
        """Yields what changes, for ever: of one experiment or of the namespace; from now on, or
        since a revision. A lost connection is taken up again where it was lost."""
        scope = (
            self.path(experiment) if experiment else f"/api/v1/namespaces/{quote(self.namespace)}"
        )
        for event in self.transport.events(scope + "/watch", {"after": after}):
            d: replies.Change = event.data
            yield Change(d["kind"], d["namespace"], d["experiment"], d.get("trial"), d["revision"])

    def validate(self, spec: Spec) -> List[replies.Finding]:
        """The findings about an experiment, each {level, field, message, line, column}; nothing is
        stored."""
        reply = self.transport.call("POST", "/api/v1/validate", _body(spec), idempotent=True)
        return list(reply["findings"])

    def algorithms(self) -> List[replies.Variant]:
        """The algorithms of the server, each {name, help, settings, …}."""
        return list(self.pages("/api/v1/algorithms"))

    def version(self) -> str:
        return str(self.transport.call("GET", "/version")["version"])

    def pages(self, path: str, **query: Any) -> Iterator[Any]:
        """The items of a list, page by page."""
        token: Optional[str] = None
        while True:
            page = self.transport.call("GET", path, query={**query, "pageToken": token})
            yield from page["items"]
            token = page.get("nextPageToken")
            if not token:
                return

    def path(self, name: str) -> str:
        """Of an experiment, "name" or "namespace/name"."""
        if not isinstance(name, str):
            raise TypeError(f"name must be the name of an experiment, not {name!r}")
        namespace, _, last = name.rpartition("/")
        if not last:
            raise ValueError(f"name={name!r} has no name of an experiment: give NAMESPACE/NAME")
        return f"/api/v1/namespaces/{quote(namespace or self.namespace)}/experiments/{quote(last)}"

    def _list(self) -> str:
        return f"/api/v1/namespaces/{quote(self.namespace)}/experiments"


def _body(spec: Spec) -> Any:
    if isinstance(spec, Path):
        return spec.read_text("utf-8")
    if isinstance(spec, str):
        return spec
    return mapping("spec", spec, "YAML or JSON text, a pathlib.Path, or a mapping")


def _name_of(body: Any) -> str:
    """metadata.name of a mapping, or of JSON or YAML text that the server has taken. ValueError if
    it has none."""
    if isinstance(body, str):
        try:
            body = json.loads(body)
        except ValueError:
            body = {"metadata": {"name": _name_in(body)}}
    metadata = body.get("metadata") if isinstance(body, Mapping) else None
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    if not name:
        raise ValueError(
            "metadata.name is not to be found: give the experiment a name, as "
            '{"metadata": {"name": "mine"}, …}'
        )
    return str(name)


def _name_in(yaml: str) -> str:
    """metadata.name of a YAML text: of metadata's own keys, which are those of the least indent in
    block style, and those in the outer braces in flow style. "" if it is not there."""
    lines = yaml.lstrip("\ufeff").splitlines()
    for begin, line in enumerate(lines):
        found = re.match(r"([\"']?)metadata\1\s*:(.*)", line)
        if not found:
            continue
        if found[2].lstrip().startswith("{"):
            return _name_in_flow("\n".join([found[2], *lines[begin + 1 :]]))
        inside = [line for line in lines[begin + 1 :] if re.match(r"\s*[^\s#]", line)]
        inside = list(itertools.takewhile(lambda line: line[0] == " ", inside))
        indent = min((len(line) - len(line.lstrip()) for line in inside), default=0)
        for line in inside:
            key = re.match(r"([\"']?)name\1\s*:\s+(.*)", line[indent:])
            if key:
                return _scalar(key[2])
    return ""


def _name_in_flow(text: str) -> str:
    """Of {name: a, labels: {name: b}}, and whatever follows."""
    depth, key = 0, ""
    for token in re.finditer(r"\s#.*|\"[^\"]*\"|'[^']*'|[{}\[\],:]|[^\s{}\[\],:\"']+", text):
        word = token[0]
        if word in ("{", "["):
            depth += 1
        elif word in ("}", "]"):
            depth -= 1
            if depth == 0:
                break
        elif depth == 1 and word == ",":
            key = ""
        elif depth == 1 and word != ":" and word.lstrip()[0] != "#":
            if key == "name":
                return word.strip("\"'")
            key = word.strip("\"'")
    return ""


def _scalar(text: str) -> str:
    """Without quotes and comment."""
    quoted = re.match(r"([\"'])(.*?)\1", text)
    return quoted[2] if quoted else re.split(r"\s#", text)[0].strip()
