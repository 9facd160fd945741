"""Takes files from a queue in Redis, trains on each, and goes on with the same model after a loss.

A trial of Shirabe is one worker. Its model learns from a file at a time (partial_fit), each file a
step with a checkpoint; when its machine is taken away, the trial starts elsewhere from the newest
one. Files that it has finished and the checkpoint does not know are learned again first, so that
the model of a worker has exactly the files that the queue lists as done by it.
"""

import argparse
import json
import os
import pickle
import sys
import time
from pathlib import Path

# Workers run side by side: one thread each. Must be set before numpy is loaded.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import redis
from sklearn.linear_model import SGDClassifier

from work_queue import WorkQueue

# From a checkout, or an image with the same folders; `pip install` of it does as well.
sys.path.append(str(Path(__file__).resolve().parents[3] / "sdk" / "python"))
import shirabe

RUN_ME_AGAIN = 75  # saved: costs the trial nothing


class Worker:
    """A model, and the files that it has learned from."""

    def __init__(self, args):
        self.args = args
        self.name = os.environ.get("SHIRABE_TRIAL", "worker")
        self.model = SGDClassifier(alpha=args.alpha, random_state=0)
        self.files = []
        test = np.load(args.data / "test.npz")
        self.x_test, self.y_test = test["x"], test["y"]
        folder = shirabe.resume()
        if folder is not None:
            self.model, self.files = pickle.loads((folder / "model.pickle").read_bytes())
            print(f"going on with {len(self.files)} files learned", flush=True)
            self.tell()  # the machine may have gone between that checkpoint and its report

    def learn(self, file):
        data = np.load(self.args.data / file)
        self.model.partial_fit(data["x"], data["y"], classes=np.arange(10))
        time.sleep(self.args.pause)

    def keep(self, file):
        """The file counts: it is in the checkpoint of this step, and reported."""
        self.files.append(file)
        with shirabe.checkpoint(len(self.files)) as folder:
            (folder / "model.pickle").write_bytes(pickle.dumps((self.model, self.files)))
            (folder / "files.json").write_text(json.dumps(self.files), encoding="utf-8")
        self.tell()

    def tell(self):
        accuracy = self.model.score(self.x_test, self.y_test)
        shirabe.report(len(self.files), accuracy=accuracy, files=len(self.files))

    def run(self, queue):
        for file in queue.done_by(self.name):
            if file not in self.files:
                self.learn(file)
                self.keep(file)
        while not shirabe.should_stop():
            file, others = queue.take(self.name)
            if file is None and others == 0:
                return
            if file is None:  # what others have may come back
                time.sleep(0.1)
                continue
            before = pickle.dumps(self.model)
            with queue.kept(file, self.name):
                self.learn(file)
            if shirabe.should_stop() and queue.give_back(file, self.name):
                break
            if queue.finish(file, self.name):
                self.keep(file)
            else:  # the lease had ended: another worker learns from it
                self.model = pickle.loads(before)
        sys.exit(RUN_ME_AGAIN)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder that fill.py has made")
    parser.add_argument("--queue", default="digits", help="name of the queue in Redis")
    parser.add_argument("--lease", type=float, default=30, help="seconds")
    parser.add_argument("--alpha", type=float, default=1e-4, help="L2 penalty")
    parser.add_argument("--pause", type=float, default=0, help="seconds to wait after each file")
    args = parser.parse_args()
    url = os.environ.get("REDIS_URL", "redis://127.0.0.1:6379/0")
    try:
        worker = Worker(args)
        worker.run(WorkQueue(redis.Redis.from_url(url), args.queue, args.lease))
    except redis.exceptions.ConnectionError as error:
        print(f"no Redis at REDIS_URL={url}, trying again later: {error}", flush=True)
        time.sleep(1)
        sys.exit(RUN_ME_AGAIN)
    if not worker.files:  # others were quicker
        shirabe.report(0, accuracy=0, files=0)
    shirabe.done()


if __name__ == "__main__":
    main()
