"""The HTTP interface held against its own description: /openapi.json is OpenAPI, and each operation
of a real server answers what it says, with no field that is not described."""

import contextlib
import copy
import http.client
import json
import math
import os
import re
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

from jsonschema import Draft202012Validator as Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

ROOT = Path(__file__).resolve().parents[2]
BINARY = Path(os.environ.get("SHIRABE_BINARY", ROOT / "build" / "release" / "bin" / "shirabe"))
PATIENCE = 60  # seconds
EXPERIMENTS = "/api/v1/namespaces/default/experiments"
SCHEDULES = "/api/v1/namespaces/default/schedules"
NODES = """
pools:
  - {name: cheap, capacity: spot, pricePerHour: 0.9, slots: 2}
  - {name: safe, capacity: on-demand, pricePerHour: 3.1, slots: 1}
"""
# Saves a checkpoint, and fails unless it finds one.
PROGRAM = """
echo loss=$1; echo other=nan; echo 1 >$SHIRABE_OUTPUT_DIR/model
if [ -n "$SHIRABE_RESUME_FROM" ]; then exit 0; fi
mkdir $SHIRABE_CHECKPOINT_DIR/1.tmp; echo 1 >$SHIRABE_CHECKPOINT_DIR/1.tmp/weights
mv $SHIRABE_CHECKPOINT_DIR/1.tmp $SHIRABE_CHECKPOINT_DIR/1; exit 1
"""


def asked(name, **spec):
    """An experiment whose caller runs the trials."""
    space = {"name": "x", "parameterType": "double", "feasibleSpace": {"min": "0", "max": "1"}}
    objective = {
        "type": "minimize",
        "objectiveMetricName": "loss",
        "additionalMetricNames": ["other"],
    }
    return {
        "apiVersion": "kubeflow.org/v1beta1",
        "kind": "Experiment",
        "metadata": {"name": name, "labels": {"of": "a test"}},
        "spec": {
            "objective": objective,
            "algorithm": {"algorithmName": "random"},
            "maxTrialCount": 5,
            "parameters": [space],
            "shirabe": {"askAndTell": True},
            **spec,
        },
    }


def run(name):
    """One whose trials are processes, each of which fails once, with a job that follows."""
    container = {
        "name": "training-container",
        "image": "none",
        "command": ["sh", "-c", PROGRAM, "trial", "${trialParameters.x}"],
    }
    pod = {"restartPolicy": "Never", "containers": [container]}
    template = {
        "trialParameters": [{"name": "x", "reference": "x"}],
        "trialSpec": {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "spec": {"template": {"spec": pod}},
        },
    }
    served = {"name": "serve", "image": "none", "command": ["echo", "served"]}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [served]}}},
    }
    shirabe = {"attempts": {"maxFailures": 3}, "onSuccess": {"job": job}}
    return asked(name, maxTrialCount=2, trialTemplate=template, shirabe=shirabe)


def scheduled(name):
    """A schedule of such experiments, due once a year."""
    return {
        "apiVersion": "kubeflow.org/v1beta1",
        "kind": "ScheduledExperiment",
        "metadata": {"name": name},
        "spec": {"schedule": "0 0 1 1 *", "experimentTemplate": {"spec": asked(name)["spec"]}},
    }


# What operations are sent, where no sample of their schema will do.
BODIES = {
    "tell": {"metrics": {"loss": 0.5, "other": "NaN"}, "step": 1, "end": "completed"},
    "patchExperiment": {"spec": {"maxTrialCount": 9}},
    "tryPoint": {"parameters": {"x": 0.5}, "like": 1},
    "scaleExperiment": {
        "parallelTrialCount": 2,
        "parameters": [{"name": "x", "feasibleSpace": {"max": 2}}],
    },
    "annotateExperiment": {"note": "*odd*", "addTags": ["again"]},
    "annotateTrial": {"note": "*odd*", "addTags": ["again"], "removeTags": ["new"]},
}

# Parameters that an operation cannot do without.
QUERIES = {"getPartialDependence": "parameter=x"}
# Those that only a trial with a program has an answer to.
RAN = {"getOutput": "path=model", "getCheckpointFile": "path=weights"}


@unittest.skipUnless(BINARY.exists(), f"{BINARY} is not built")
class OpenapiTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        home = Path(cls.folder.name)
        (home / "nodes.yaml").write_text(NODES)
        words = ["--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0", "--ready-file", home / "ready"]
        kept = {k: v for k, v in os.environ.items() if not k.startswith("SHIRABE_")}
        server = subprocess.Popen(
            [BINARY, "serve", *words, "--nodes", home / "nodes.yaml"],
            env={**kept, "SHIRABE_HOME": str(home)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        cls.addClassCleanup(server.wait, PATIENCE)
        cls.addClassCleanup(server.terminate)
        eventually((home / "ready").exists)
        found = json.loads((home / "ready").read_text())
        cls.address = found["http"]
        cls.token = Path(found["tokenFile"]).read_text().split()[0]
        cls.document = json.loads(cls.send("GET", "/openapi.json")[2])
        cls.operations = {
            operation["operationId"]: (method.upper(), path, operation)
            for path, methods in cls.document["paths"].items()
            for method, operation in methods.items()
        }
        # Replies may get new fields; here each must be described.
        cls.components = copy.deepcopy(cls.document["components"])
        for schema in cls.components["schemas"].values():
            if "properties" in schema:
                schema.setdefault("additionalProperties", False)

    @classmethod
    def send(cls, method, path, body=None, token=None, kind="application/json"):
        """Status, media type and text of the answer; of an event stream what comes at once."""
        connection = http.client.HTTPConnection(cls.address, timeout=PATIENCE)
        headers = {"Authorization": f"Bearer {cls.token if token is None else token}"}
        if body is not None:
            body = body if isinstance(body, bytes) else json.dumps(body).encode()
            headers["Content-Type"] = kind
        with contextlib.closing(connection):
            connection.request(method, path, body, headers)
            reply = connection.getresponse()
            kind = reply.headers.get_content_type() if "Content-Type" in reply.headers else ""
            if kind != "text/event-stream":
                return reply.status, kind, reply.read().decode(errors="replace")
            text = ""
            with contextlib.suppress(TimeoutError):
                while line := reply.readline().decode():
                    text += line
                    if "\ndata:" in text:
                        connection.sock.settimeout(0.2)
            return reply.status, kind, text

    def check(self, value, schema):
        whole = {**schema, "components": self.components}
        errors = Validator(whole, format_checker=Validator.FORMAT_CHECKER).iter_errors(value)
        self.assertEqual([f"{e.json_path}: {e.message}" for e in errors], [])

    def check_reply(self, operation, reply):
        status, kind, text = reply
        self.assertIn(str(status), operation["responses"], text)
        content = operation["responses"][str(status)].get("content", {})
        self.assertEqual([kind] if kind else [], [k for k in content if k == kind], content.keys())
        if kind == "application/json":
            self.check(json.loads(text), content[kind]["schema"])
        if kind == "text/event-stream":
            events = [e for e in text.split("\n\n") if "data:" in e and "event: end" not in e]
            self.assertTrue(events)
            for event in events:
                data = event.partition("data:")[2]
                self.check(json.loads(data), content[kind]["x-event-data"])

    def create(self, spec):
        status, _, text = self.send("POST", EXPERIMENTS, spec)
        self.assertEqual(status, 201, text)

    def prepare(self, name):
        """An experiment with a trial that is told of, so that every path leads to something."""
        self.create(asked(name))
        status, _, text = self.send("POST", SCHEDULES, scheduled(name))
        self.assertEqual(status, 201, text)
        path = f"{EXPERIMENTS}/{name}"
        status, _, text = self.send("POST", path + ":ask", {"caller": "x"})
        self.assertEqual((status, json.loads(text)["attempt"]), (200, 1), text)
        status, _, text = self.send("POST", path + "/trials/1:tell", BODIES["tell"])
        self.assertEqual(status, 200, text)

    def target(self, path, name):
        if "{namespace}" not in path and "{name}" in path:  # of a list beside the experiments
            name = json.loads(self.send("GET", path.partition("/{name}")[0])[2])["items"][0]["name"]
        if "{file}" in path:  # of the dashboard
            page = self.send("GET", "/")[2]
            path = path.replace("{file}", re.search(r"assets/([\w.-]+)", page)[1])
        for key, value in {"namespace": "default", "name": name}.items():
            path = path.replace(f"{{{key}}}", value)
        for key in ("trial", "attempt", "step"):
            path = path.replace(f"{{{key}}}", "1")
        return path + ("?after=0" if path.endswith(("/watch", "/updates")) else "")

    def sample(self, schema, whole):
        """A value of the schema, of required fields only or of all."""
        if "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            return self.sample(self.components["schemas"][name], whole)
        if "const" in schema or "enum" in schema:
            return schema.get("const") or schema["enum"][0]
        kind = schema.get("type", "string")
        if kind == "object":
            names = schema.get("properties", {}) if whole else schema.get("required", [])
            return {n: self.sample(schema["properties"][n], whole) for n in names}
        if kind == "array":
            return [self.sample(schema["items"], whole)]
        plain = {"string": "x", "boolean": True}
        return plain.get(kind, math.ceil(schema.get("minimum", 0)) or 1)

    def bodies(self, operation, name):
        content = operation.get("requestBody", {}).get("content")
        if not content:
            return [(None, "")]
        kind = next(iter(content))
        schema = content[kind]["schema"]
        if operation["operationId"] in BODIES:
            bodies = [BODIES[operation["operationId"]]]
        elif schema.get("$ref", "").endswith("/Experiment"):
            named = "{name}" in self.operations[operation["operationId"]][1]
            bodies = [asked(name if named else name + "-new")]
        elif schema.get("$ref", "").endswith("/ScheduledExperiment"):
            named = "{name}" in self.operations[operation["operationId"]][1]
            bodies = [scheduled(name if named else name + "-new")]
        else:
            bodies = [self.sample(schema, False), self.sample(schema, True)]
        for body in bodies:
            self.check(body, schema)
        return [(body, kind) for body in bodies]

    def test_is_openapi(self):
        errors = OpenAPIV31SpecValidator(self.document).iter_errors()
        self.assertEqual([(list(e.absolute_path), e.message) for e in errors], [])

    def test_every_operation_answers_what_is_described(self):
        self.create(run("ran"))
        eventually(lambda: "OnSuccessSucceeded" in self.send("GET", f"{EXPERIMENTS}/ran/events")[2])
        for number, (id, (method, path, operation)) in enumerate(self.operations.items()):
            name = f"told-{number}"
            with self.subTest(id):
                self.prepare(name)
                replies = []
                for body, kind in self.bodies(operation, name):
                    target = self.target(path, name) + "?" * (id in QUERIES) + QUERIES.get(id, "")
                    replies.append(self.send(method, target, body, kind=kind))
                if method == "GET" and id not in QUERIES:
                    ran = self.target(path, "ran") + "?" * (id in RAN) + RAN.get(id, "")
                    replies.append(self.send(method, ran))
                    if any(p["name"] == "pageSize" for p in operation["parameters"]):
                        replies.append(self.send(method, ran + "?pageSize=1"))
                for reply in replies:
                    self.check_reply(operation, reply)
                self.assertIn(2, [r[0] // 100 for r in replies], f"{replies}: add it to BODIES")

    def test_a_log_that_is_followed_is_as_described(self):
        self.create(run("followed"))
        _, path, operation = self.operations["getLog"]
        path = self.target(path, "followed")
        eventually(lambda: self.send("GET", path)[0] == 200)
        self.check_reply(operation, self.send("GET", path + "?follow"))

    def test_every_error_is_described(self):
        self.prepare("there")  # and streams have events
        for id, (method, path, operation) in self.operations.items():
            if operation.get("security") == []:
                continue
            body = b"{" if "requestBody" in operation else None
            target = self.target(path, "none")
            for token, refused in (("", 401), ("0" * 32, 403), (self.token, None)):
                with self.subTest(id, token=token):
                    reply = self.send(method, target, body, token)
                    self.check_reply(operation, reply)
                    self.assertEqual(reply[0], refused or reply[0], reply)


def eventually(what):
    deadline = time.monotonic() + PATIENCE
    while not what():
        if time.monotonic() > deadline:
            raise AssertionError("it does not happen")
        time.sleep(0.05)


if __name__ == "__main__":
    unittest.main()
