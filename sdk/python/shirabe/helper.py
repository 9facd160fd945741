"""What training code says to Shirabe, and hears from it: one file, only the standard library.

    p = shirabe.params(lr=0.1, epochs=20)
    first = load(shirabe.resume())            # None: from the beginning, epoch 1
    for epoch in range(first, p["epochs"] + 1):
        shirabe.report(epoch, loss=train(p["lr"]))
        if epoch % 10 == 0 or shirabe.should_checkpoint():
            with shirabe.checkpoint(epoch) as folder:
                save(folder)
        if shirabe.should_stop():
            sys.exit(75)                      # saved: run me again
    shirabe.done()

Outside Shirabe it prints the metrics and never fails. Of several processes of one training only
rank 0 writes; should_checkpoint() and should_stop() then agree on all ranks (PyTorch), so every
rank must call them. In a function that shirabe.optimize runs, and in a thread that it starts, the
same names act on its trial.
"""

import contextlib
import contextvars
import json
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Union

__all__ = ["params", "report", "resume", "checkpoint", "should_checkpoint", "should_stop", "done"]
_RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID", "LOCAL_RANK")
_state = {"saved": 0, "terminated": False}  # the last request that was saved for; SIGTERM came
_clock = {"saved": time.monotonic()}  # when anything was saved last, or this began
# The trial that a function of this process runs (shirabe.optimize), whose methods have these names.
_here: "contextvars.ContextVar[Any]" = contextvars.ContextVar("shirabe-trial", default=None)
_running: List[Any] = []  # those of all threads


def _trial() -> Any:
    """The trial of the function that calls; in a thread that a function started, the one that runs.
    None outside shirabe.optimize. RuntimeError where several run, and it may be any of them."""
    found = _here.get()
    running = list(_running) if found is None else []
    if len(running) > 1:
        raise RuntimeError(
            "several trials run in this process, and this thread belongs to none: start it with "
            "threading.Thread(target=contextvars.copy_context().run, args=(function,)), or use the "
            "argument `trial` of the function"
        )
    return running[0] if running else found


def params(**defaults: Any) -> Dict[str, Any]:
    """The trial's parameters, over these defaults."""
    trial = _trial()
    if trial:
        return {**defaults, **trial.params}
    path = os.environ.get("SHIRABE_PARAMS_FILE")
    return {**defaults, **(json.loads(Path(path).read_text("utf-8")) if path else {})}


def report(step: Optional[int] = None, **metrics: Any) -> None:
    """Metrics at a step. Without one, each metric counts its own. Sending a step twice is safe."""
    trial = _trial()
    if trial:
        trial.report(step, **metrics)
    else:
        _report(step, metrics)


def _report(step: Optional[int], metrics: Dict[str, Any]) -> None:
    """Of metrics with any names, `step` too."""
    values = {name: _number(value) for name, value in metrics.items()}
    at = {} if step is None else {"step": int(step)}
    if _rank() == 0 and not _write({**at, "metrics": values}):
        print(" ".join(f"{name}={value}" for name, value in {**at, **values}.items()), flush=True)


def done() -> None:
    """The training is complete: do not run it again, even if it was asked to stop meanwhile."""
    if _rank() == 0 and not _trial():
        _write({"done": True})


def resume() -> Optional[Path]:
    """The folder of the checkpoint to go on from, named after its step; None at the beginning."""
    trial = _trial()
    if trial:
        found: Optional[Path] = trial.resume()
        return found
    path = os.environ.get("SHIRABE_RESUME_FROM")
    return Path(path) if path and os.path.isdir(path) else None


@contextlib.contextmanager
def checkpoint(step: int) -> Iterator[Path]:
    """A folder to save into, which counts once the block has ended without an exception. It is
    thrown away for a step that is saved already, on other ranks than 0, and outside Shirabe.
    In a trial step 0 warns, since it means from the beginning and is not taken; ValueError for one
    below."""
    trial = _trial()
    if trial:
        with trial.checkpoint(step) as folder:
            yield folder
        return
    root = os.environ.get("SHIRABE_CHECKPOINT_DIR")
    request = _request().get("id", 0)
    target = Path(root or ".") / str(int(step))
    if root and int(step) < 0:
        raise ValueError(f"checkpoint: step must be 1 or more, not {step}: number steps from 1")
    if root and int(step) == 0:
        warnings.warn("checkpoint: step 0 is not taken: number steps from 1", stacklevel=3)
    if not root or _rank() != 0 or target.exists():
        with tempfile.TemporaryDirectory(prefix="shirabe-") as scratch:
            yield Path(scratch)
    else:
        with _committed(target) as beside:
            yield beside
    _state["saved"] = max(_state["saved"], request)
    _clock["saved"] = time.monotonic()


def should_checkpoint() -> bool:
    """Whether a checkpoint is wanted now, by a request or because machines are taken back so often
    that the last one is too old; false again once it is saved."""
    trial = _trial()
    if trial:
        return bool(trial.should_checkpoint())
    request = _request()
    wanted = request.get("reason") in ("checkpoint", "preempt")
    return _agree((wanted and request.get("id", 0) > _state["saved"]) or _overdue())


def should_stop() -> bool:
    """Whether to end now: save first if should_checkpoint(), then exit with 75, or 0."""
    trial = _trial()
    if trial:
        return bool(trial.should_stop())
    return _agree(_request().get("reason") in ("preempt", "early-stop", "cancel"))


def _overdue() -> bool:
    """Whether the last checkpoint is older than preemptions of this experiment advise."""
    try:
        every = float(os.environ.get("SHIRABE_CHECKPOINT_SECONDS") or "inf")
    except ValueError:
        return False
    return 0 < every <= time.monotonic() - _clock["saved"]


def _number(value: Any) -> Union[float, str]:
    """A number of any library as a float; what is none is text, and is shown as bad."""
    try:
        return float(value)
    except (TypeError, ValueError):
        shape = getattr(value, "shape", None)
        if shape and isinstance(shape, tuple):
            return f"an array of shape {'x'.join(map(str, shape))}"
        return str(value)


def _rank() -> int:
    return int(next((os.environ[r] for r in _RANKS if os.environ.get(r, "").isdigit()), 0))


def _write(line: Dict[str, Any]) -> bool:
    """One line of the metrics file, in one write, so that no other writer's can tear it."""
    try:
        with open(os.environ.get("SHIRABE_METRICS_FILE", ""), "ab", buffering=0) as file:
            return bool(file.write((json.dumps(line) + "\n").encode()))
    except OSError:
        return False


def _request() -> Dict[str, Any]:
    """What the control file asks for. Whoever looks hears SIGTERM too, instead of dying of it."""
    path = os.environ.get("SHIRABE_CONTROL_FILE", "")
    if path and threading.current_thread() is threading.main_thread():
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, lambda *_: _state.update(terminated=True))
    try:
        request = json.loads(Path(path).read_text("utf-8"))
    except (OSError, ValueError):
        request = {}
    unasked = _state["terminated"] and request.get("reason") in (None, "checkpoint")
    return {"id": sys.maxsize, "reason": "preempt"} if unasked else request


def _agree(flag: bool) -> bool:
    """True on every rank if it is on one: a rank that stopped alone would leave the others hung."""
    dist = getattr(sys.modules.get("torch"), "distributed", None)
    if dist is None or not dist.is_available() or not dist.is_initialized():
        return flag
    device = "cuda" if dist.get_backend() == "nccl" else "cpu"
    flags = sys.modules["torch"].tensor([int(flag)], device=device)
    dist.all_reduce(flags, op=dist.ReduceOp.MAX)
    return bool(flags.item())


@contextlib.contextmanager
def _committed(target: Path) -> Iterator[Path]:
    """A folder beside the target that becomes it, flushed, once the block has ended well."""
    beside = target.with_name(target.name + ".tmp")
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir(parents=True)
    try:
        yield beside
        for path in [*beside.rglob("*"), beside]:
            _sync(path)
        beside.rename(target)
        _sync(target.parent)
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
