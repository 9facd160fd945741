#!/usr/bin/env python3
"""Makes the fixtures of a release: what its program leaves on disk, and says about it.

    tests/testdata/releases/make.py PROGRAM FOLDER     e.g. build/release/bin/shirabe …/releases/0.1

Run once for a release, with the program of that release; tests/integration/releases_test.cc opens
the result with every later one. FOLDER gets home.tar.gz (SQLite database, logs, journals,
checkpoints), cut.yaml (of an experiment in it that was interrupted), postgres.sql (a dump, if
PostgreSQL is installed), verbs.json and routes.json. job.json, the Job of an attempt, was printed by
trial::BuildAttemptObject. sync.json, what a sidecar sends from its attempt's beginning to its end (requests
of Pods/Sync, base64), was written with the release's own .proto files.
"""
import gzip
import io
import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.error
import urllib.request

HOME = "/tmp/shirabe-release"
SPOT = """apiVersion: kubeflow.org/v1beta1
kind: Experiment
metadata: {name: NAME, labels: {team: vision}}
spec:
  objective: {type: maximize, objectiveMetricName: accuracy, additionalMetricNames: [loss]}
  algorithm: {algorithmName: bayesianoptimization}
  parallelTrialCount: 2
  maxTrialCount: 6
  maxFailedTrialCount: 2
  parameters:
    - {name: lr, parameterType: double, feasibleSpace: {min: "0.001", max: "0.1", distribution: logUniform}}
    - {name: layers, parameterType: int, feasibleSpace: {min: "1", max: "5"}}
    - {name: batch, parameterType: discrete, feasibleSpace: {list: ["16", "32"]}}
    - {name: kind, parameterType: categorical, feasibleSpace: {list: [plain, "with blank"]}}
  trialTemplate:
    primaryContainerName: main
    trialParameters: [{name: lr, reference: lr}, {name: kind, reference: kind}]
    trialSpec:
      apiVersion: batch/v1
      kind: Job
      spec:
        template:
          spec:
            containers:
              - {name: main, command: [python3, -c, PROGRAM, "${trialParameters.lr}", "${trialParameters.kind}"]}
  shirabe:
    seed: 7
    attempts: {gracePeriodSeconds: 2}
    budget: {maxCost: 5.0, currency: EUR}
    capacity: {spot: preferred}
"""
NODES = """seed: 1
pools:
  - {name: spot, capacity: spot, pricePerHour: 0.9, slots: 2,
     reclaim: {times: [0.8, 1.6], noticeSeconds: 0, returnsAfterSeconds: 0.2}}
  - {name: steady, capacity: on-demand, pricePerHour: 3.1, slots: 1}
"""
TRAIN = """import json, os, sys, time
lr, kind = float(sys.argv[1]), sys.argv[2]
folder, begin = os.environ["SHIRABE_CHECKPOINT_DIR"], 0
if os.environ.get("SHIRABE_RESUME_FROM"):
    begin = json.load(open(os.environ["SHIRABE_RESUME_FROM"] + "/state.json"))["step"]
print("training", kind, "from step", begin, flush=True)
if os.environ["SHIRABE_TRIAL"].endswith("-4"):
    sys.exit("out of data")
for step in range(begin + 1, 9):
    time.sleep(0.1)
    with open(os.environ["SHIRABE_METRICS_FILE"], "a") as file:
        value = {"accuracy": 1 - abs(lr - 0.03) - 0.5 / step, "loss": 1 / step}
        file.write(json.dumps({"step": step, "metrics": value}) + "\\n")
    if step % 2 == 0:
        os.makedirs(f"{folder}/{step}.tmp")
        json.dump({"step": step}, open(f"{folder}/{step}.tmp/state.json", "w"))
        os.rename(f"{folder}/{step}.tmp", f"{folder}/{step}")
"""
ASKED = """apiVersion: kubeflow.org/v1beta1
kind: Experiment
metadata: {name: asked, namespace: team}
spec:
  objective: {type: minimize, objectiveMetricName: loss, goal: 0.0001}
  algorithm: {algorithmName: tpe}
  earlyStopping: {algorithmName: medianstop, algorithmSettings: [{name: min_trials_required, value: "1"}]}
  parallelTrialCount: 2
  maxTrialCount: 5
  parameters:
    - {name: x, parameterType: double, feasibleSpace: {min: "0", max: "1"}}
  shirabe: {askAndTell: true, seed: 3, start: [{x: "0.5"}]}
"""
VERBS = [
    "get exp -A", "get exp spot", "get trials spot", "get attempts spot",
    "get checkpoints spot-1", "get metrics spot-2", "best spot", "events spot",
    "compare spot-1 spot-2", "compare spot quick", "get exp asked -n team",
    "get trials asked -n team", "events asked -n team", "best asked -n team",
    "get trials imported", "get trials quick", "best quick", "get exp none",
    "get trials spot --filter state=Failed", "algorithms", "explain algorithm tpe",
    "explain stopper medianstop", "version",
]


def environment():
    return {"PATH": os.environ["PATH"], "SHIRABE_HOME": HOME, "HOME": "/nonexistent"}


def run(program, *words, code=0):
    done = subprocess.run([program, *words], env=environment(), stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=120)
    if code is not None and done.returncode != code:
        sys.exit(f"{words}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def spec(name):
    return SPOT.replace("NAME", name).replace("PROGRAM", json.dumps(TRAIN))


def cut_short(program, path, db):
    """A run that is interrupted once something of it is saved."""
    started = subprocess.Popen([program, "run", "-f", path, *db], env=environment(),
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    for _ in range(200):
        time.sleep(0.05)
        saved = run(program, "get", "checkpoints", "cut-1", "--no-headers", *db, code=None).stdout
        if saved.strip():
            break
    started.send_signal(signal.SIGINT)
    if started.wait(timeout=60) != 130:
        sys.exit(f"the interrupted run ended with {started.returncode}")


def make_experiments(program, folder, db):
    def write(name, text):
        with open(f"{folder}/{name}", "w") as file:
            file.write(text)
        return f"{folder}/{name}"

    spot = write("spot.yaml", spec("spot"))
    run(program, "run", "-f", spot, "--nodes", write("nodes.yaml", NODES), *db)
    cut_short(program, write("cut.yaml", spec("cut")), db)
    run(program, "run", "--name", "quick", "--param", "x=0..1", "--param", "kind=a,b",
        "--minimize", "loss", "--max-trials", "3", "--seed", "1", *db, "--", "/bin/sh", "-c",
        'echo "loss=$1"', "sh", "{x}", "{kind}")
    table = write("table.csv", "lr,loss\n0.1,0.5\n0.2,0.25\n0.3,nan\n")
    run(program, "import", "csv", table, "--minimize", "loss", "--name", "imported", *db)
    run(program, "create", "-f", write("asked.yaml", ASKED), *db)
    for value in ("0.5", "0.25"):
        asked = json.loads(run(program, "ask", "asked", "-n", "team", "--caller", "a", "-o",
                               "json", *db).stdout)
        name = asked["trial"] if isinstance(asked["trial"], str) else asked["trial"]["metadata"]["name"]
        run(program, "report", name, "loss=0.9", "--step", "1", "-n", "team", *db)
        run(program, "tell", name, f"loss={value}", "-n", "team", *db)
    run(program, "ask", "asked", "-n", "team", "--caller", "b", *db)


def parsed(text):
    try:
        return json.loads(text)
    except ValueError:
        return text


def record_verbs(program):
    recorded = []
    for words in VERBS:
        words += " -o json"
        done = run(program, *words.split(), code=None)
        recorded.append({"words": words, "code": done.returncode, "out": parsed(done.stdout)})
    for words in ("export spot -o csv", "export spot -o jsonl", "best spot -o args"):
        done = run(program, *words.split())
        recorded.append({"words": words, "code": 0, "out": done.stdout})
    return recorded


def get(port, path):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def record_routes(program):
    ready = f"{HOME}/ready"
    server = subprocess.Popen([program, "serve", "--insecure", "--http", "127.0.0.1:0", "--grpc",
                               "127.0.0.1:0", "--ready-file", ready],
                              env=environment(), stderr=subprocess.DEVNULL)
    try:
        for _ in range(200):
            if os.path.exists(ready):
                break
            time.sleep(0.05)
        with open(ready) as file:
            port = json.load(file)["http"].rsplit(":", 1)[1]
        recorded = []
        schema = json.loads(get(port, "/openapi.json")[1])
        for path, methods in sorted(schema["paths"].items()):
            if "get" not in methods or path in ("/metrics", "/readyz", "/openapi.json") or \
                    path.endswith(("watch", "suggestions")):
                continue
            for ns, name in (("default", "spot"), ("team", "asked"), ("default", "none")):
                filled = (path.replace("{namespace}", ns).replace("{trial}", "1")
                          .replace("{attempt}", "1").replace("{step}", "1"))
                if "algorithms/{name}" in path or "stoppers/{name}" in path:
                    name = "tpe" if "algorithms" in path else "medianstop"
                filled = filled.replace("{name}", name)
                status, text = get(port, filled)
                if filled not in [route["path"] for route in recorded]:
                    recorded.append({"path": filled, "status": status, "body": parsed(text)})
        return recorded
    finally:
        server.terminate()
        server.wait(timeout=30)
        os.remove(ready)


def pack(path):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.add(HOME, arcname="home")
    with open(path, "wb") as file:
        file.write(gzip.compress(buffer.getvalue(), mtime=0))


def dump_postgres(program, folder, path):
    """The same experiments in PostgreSQL, as pg_dump prints them."""
    bin_dir = "/usr/lib/postgresql/15/bin"
    if not os.path.exists(f"{bin_dir}/initdb"):
        return print("no PostgreSQL here: postgres.sql is left as it is")
    data = tempfile.mkdtemp(prefix="shirabe-pg-")
    user = None
    if os.getuid() == 0:
        user = pwd.getpwnam("postgres")
        os.chown(data, user.pw_uid, user.pw_gid)

    def tool(*words):
        return subprocess.run(words, check=True, capture_output=True, text=True,
                              user=user.pw_uid if user else None)

    tool(f"{bin_dir}/initdb", "-D", f"{data}/db", "-U", "postgres", "-A", "trust", "--no-sync")
    tool(f"{bin_dir}/pg_ctl", "-D", f"{data}/db", "-w", "-l", f"{data}/log", "-o",
         f"-c listen_addresses='' -k {data}", "start")
    try:
        make_experiments(program, folder, ["--db", f"postgres:///postgres?host={data}&user=postgres"])
        dump = tool(f"{bin_dir}/pg_dump", "-h", data, "-U", "postgres", "--inserts",
                    "--no-owner", "postgres").stdout
        commands = [line for line in dump.splitlines(True) if not line.startswith("\\")]
        with open(path, "w") as file:
            file.writelines(commands)  # without psql's own
    finally:
        tool(f"{bin_dir}/pg_ctl", "-D", f"{data}/db", "-m", "fast", "stop")
        shutil.rmtree(data)


def main():
    program, out = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    os.makedirs(out, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        shutil.rmtree(HOME, ignore_errors=True)
        make_experiments(program, folder, [])
        with open(f"{out}/verbs.json", "w") as file:
            json.dump(record_verbs(program), file, indent=1)
        with open(f"{out}/cut.yaml", "w") as file:
            file.write(spec("cut"))
        pack(f"{out}/home.tar.gz")
        run(program, "delete", "cut")  # a server would run it
        with open(f"{out}/routes.json", "w") as file:
            json.dump(record_routes(program), file, indent=1)
        shutil.rmtree(HOME)
        dump_postgres(program, folder, f"{out}/postgres.sql")
        shutil.rmtree(HOME, ignore_errors=True)


if __name__ == "__main__":
    main()
