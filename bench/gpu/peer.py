#!/usr/bin/env python3
"""BoTorch on the GPU that bench/gpu/gpu.cc measures: the same sizes, in doubles.

    bench/gpu/peer.py

Prints rows for the same table, or why there are none: it needs torch with CUDA, botorch and a GPU.
"""

import statistics
import sys
import time

COORDINATES = 20


def load():
    try:
        import botorch
        import gpytorch
        import torch
    except ImportError as error:
        sys.exit(f"not measured: {error.name} is not installed")
    if not torch.cuda.is_available():
        sys.exit("not measured: no GPU here, or a torch without CUDA")
    return botorch, gpytorch, torch


botorch, gpytorch, torch = load()


def timed(repetitions: int, call) -> float:
    """Median milliseconds."""
    times = []
    for _ in range(repetitions):
        torch.cuda.synchronize()
        start = time.perf_counter()
        call()
        torch.cuda.synchronize()
        times.append(1000 * (time.perf_counter() - start))
    return statistics.median(times)


def make_model(n: int):
    x = torch.rand(n, COORDINATES, dtype=torch.double, device="cuda")
    y = sum(torch.sin((3 + j) * x[:, j]) for j in range(5)) + 0.1 * torch.rand_like(x[:, 0])
    y = ((y - y.mean()) / y.std()).unsqueeze(-1)
    kernel = gpytorch.kernels.ScaleKernel(
        gpytorch.kernels.MaternKernel(nu=2.5, ard_num_dims=COORDINATES))
    model = botorch.models.SingleTaskGP(x, y, covar_module=kernel, outcome_transform=None)
    return model, gpytorch.mlls.ExactMarginalLogLikelihood(model.likelihood, model)


def value_and_gradient(model, mll) -> None:
    model.train()
    model.zero_grad()
    loss = -mll(model(*model.train_inputs), model.train_targets)
    loss.backward()


def main() -> None:
    # As exact as what it is compared with, at every size.
    gpytorch.settings.max_cholesky_size._set_value(10**6)
    model, mll = make_model(2000)
    value_and_gradient(model, mll)
    step = timed(11, lambda: value_and_gradient(model, mll))
    print(f"| BoTorch {botorch.__version__}, n = 2000, value and gradient | {step:.4g} |")

    def fit() -> None:
        botorch.fit.fit_gpytorch_mll(make_model(2000)[1])

    print(f"| BoTorch, n = 2000, a whole fit | {timed(3, fit):.4g} |")
    model, _ = make_model(1000)
    model.eval()
    points = torch.rand(65536, COORDINATES, dtype=torch.double, device="cuda")

    def score() -> None:
        with torch.no_grad():
            for block in points.split(8192):
                # One point a batch: variances alone, not the covariance of all of them.
                posterior = model.posterior(block.unsqueeze(-2))
                _ = posterior.mean, posterior.variance

    score()
    print(f"| BoTorch, 65536 candidates, n = 1000 | {timed(5, score):.4g} |")


main()
