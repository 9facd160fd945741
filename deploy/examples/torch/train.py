"""Trains a small PyTorch network on synthetic data, with checkpoints that a trial resumes from.

One process, or several that torchrun has started:

    python3 deploy/examples/torch/train.py --lr=0.01
    torchrun --nproc_per_node=2 deploy/examples/torch/train.py --lr=0.01

The same seed and parameters give the same numbers, interrupted or not. Needs nothing but torch.
"""

import argparse
import os
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn

# From a checkout, or an image with the same folders; `pip install` of it does as well.
sys.path.append(str(Path(__file__).resolve().parents[3] / "sdk" / "python"))
import shirabe

RUN_ME_AGAIN = 75  # saved: costs the trial nothing
FEATURES = 8


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lr", type=float, default=0.01, help="learning rate")
    parser.add_argument("--hidden", type=int, default=32, help="hidden units")
    parser.add_argument("--batch-size", type=int, default=64, help="examples a step, on each rank")
    parser.add_argument("--epochs", type=int, default=10)
    return parser.parse_args()


def make_data(count, seed):
    """Points and a smooth function of them. The same for all trials, or they could not be
    compared."""
    random = torch.Generator().manual_seed(seed)
    x = torch.randn(count, FEATURES, generator=random)
    return x, torch.sin(x[:, :1] + x[:, 1:2]) + 0.5 * x[:, 2:3] * x[:, 3:4]


def epoch_batches(count, args, seed, epoch):
    """This rank's batches. The order follows from seed and epoch alone, so that a resumed training
    sees what the undisturbed one would have seen."""
    random = torch.Generator().manual_seed(seed * 1_000_003 + epoch)
    rank, ranks = (dist.get_rank(), dist.get_world_size()) if dist.is_initialized() else (0, 1)
    order = torch.randperm(count, generator=random)
    whole = count // ranks * ranks  # as many on every rank, or one would wait for ever
    return order[:whole][rank::ranks].split(args.batch_size)


def save(model, optimizer, epoch):
    # Every rank enters; what ranks other than 0 save is thrown away.
    with shirabe.checkpoint(epoch) as folder:
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        torch.save(state, folder / "state.pt")


def load(model, optimizer):
    """The epochs that have been trained already."""
    folder = shirabe.resume()
    if folder is None:
        return 0
    state = torch.load(folder / "state.pt")
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return int(folder.name)


def main():
    args = parse_arguments()
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        dist.init_process_group("gloo")
    torch.set_num_threads(1)  # trials run side by side
    torch.use_deterministic_algorithms(True)
    seed = int(os.environ.get("SHIRABE_SEED") or 0)
    torch.manual_seed(seed)
    x, y = make_data(2048, seed=0)
    x_valid, y_valid = make_data(512, seed=1)
    model = nn.Sequential(nn.Linear(FEATURES, args.hidden), nn.Tanh(), nn.Linear(args.hidden, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    done = load(model, optimizer)
    trained = nn.parallel.DistributedDataParallel(model) if dist.is_initialized() else model
    for epoch in range(done + 1, args.epochs + 1):
        for batch in epoch_batches(len(x), args, seed, epoch):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(trained(x[batch]), y[batch])
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            validation = nn.functional.mse_loss(model(x_valid), y_valid)
        shirabe.report(epoch, loss=validation)
        save(model, optimizer, epoch)
        # Asked on every rank: all of them answer alike.
        if shirabe.should_stop() and epoch < args.epochs:
            sys.exit(RUN_ME_AGAIN)
    shirabe.done()
    if dist.is_initialized():
        del trained  # before its group: the other way round torch 1.13 may hang
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
