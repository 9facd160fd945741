"""Writes the event files beside it, with the writers that people use: tensorboardX (whose format is
that of torch.utils.tensorboard) and tensorboard's own (whose format is that of TensorFlow 2).

    python3 -m venv venv && venv/bin/pip install tensorboardX==2.6.5 tensorboard==2.21.0
    venv/bin/python tests/testdata/events/make.py

Every file has its values from the same formulas, so that the tests know them; times are fixed but
for the first record of each file, which the writers stamp themselves.
"""

import glob
import os
import shutil

import numpy as np
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.plugins.histogram.summary_v2 import histogram_pb
from tensorboard.plugins.scalar.summary_v2 import scalar_pb
from tensorboard.summary.writer.event_file_writer import EventFileWriter
from tensorboardX import SummaryWriter

HERE = os.path.dirname(os.path.abspath(__file__))
START = 1_795_249_800  # seconds since 1970


def loss(step):
    return 1 / (step + 1)


def accuracy(step):
    return 0.9 + step / 1000


def fresh(name):
    folder = os.path.join(HERE, name)
    shutil.rmtree(folder, ignore_errors=True)
    return folder


def tensorboard_x():
    """Scalars as simple_value, among what else programs log; add_scalars makes subfolders."""
    folder = fresh("tensorboardx")
    writer = SummaryWriter(folder)
    writer.add_text("config", "lr: 0.1", 0, walltime=START)
    for step in range(10):
        writer.add_scalar("loss", loss(step), step, walltime=START + step)
        writer.add_scalar("loss_extra", -1, step, walltime=START + step)
        writer.add_scalar("valid/accuracy", accuracy(step), step * 100, walltime=START + step + 0.5)
    writer.add_histogram("weights", np.arange(20) / 20, 9, walltime=START + 9)
    writer.add_scalar("odd", float("nan"), 0, walltime=START)
    writer.add_scalar("odd", float("inf"), 1, walltime=START)
    writer.add_scalar("odd", float("-inf"), 2, walltime=START)
    writer.add_scalars("pair", {"train": 0.25, "valid": 0.5}, 3, walltime=START)
    writer.close()


def tensor_flow_2():
    """Scalars as tensors, in folders as Keras keeps them; a histogram under a name of its own."""
    folder = fresh("keras")
    for run, offset in (("train", 0), ("validation", 0.5)):
        writer = EventFileWriter(os.path.join(folder, run))
        for step in range(5):
            for summary in (
                scalar_pb("epoch_loss", np.float32(loss(step) + offset)),
                scalar_pb("lr", np.float64(0.1) / (step + 1)),
                histogram_pb("kernel", [0.1 * i for i in range(8)], buckets=3),
            ):
                writer.add_event(Event(wall_time=START + step, step=step, summary=summary))
        writer.close()


if __name__ == "__main__":
    tensorboard_x()
    tensor_flow_2()
    # A name without host, process and time, so that a new run replaces the old file.
    for path in glob.glob(os.path.join(HERE, "**", "*tfevents*"), recursive=True):
        os.rename(path, os.path.join(os.path.dirname(path), "events.out.tfevents.1795249800.test"))
