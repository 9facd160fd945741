"""The names of the workers of a search, each of one worker of one process."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import List

__all__ = ["Slot", "abandoned", "take"]


class Slot:
    """The name of one worker, which no other worker of any process has at the same time. Who takes
    the name of one that died is given the trial that it left behind.

    The file has a byte in it as long as the name is taken, and after a death; it is empty once a
    name was freed with no trial open in it."""

    def __init__(self, path: Path) -> None:
        self.name = path.name
        self.path = path
        self.busy = False  # a trial was asked for in this name, and has not ended
        self._file = open(path, "a+b")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.close()
            raise
        self._file.truncate(0)
        self._file.write(b"1")
        self._file.flush()
        _slots.add(self)

    def free(self) -> None:
        if not self.busy and not self._file.closed:
            self._file.truncate(0)
        self.close()

    def close(self) -> None:
        """As a death would: what is open in this name is left behind."""
        _slots.discard(self)
        self._file.close()


_slots: "set[Slot]" = set()


def _free_all() -> None:
    for slot in list(_slots):  # closes a forked process's copy: the owner's stays locked
        slot.close()


os.register_at_fork(after_in_child=_free_all)


def take(folder: Path, count: int) -> List[Slot]:
    """So many names, the first that are free."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    taken: List[Slot] = []
    number = 0
    while len(taken) < count:
        number += 1
        try:
            taken.append(Slot(folder / f"python-{number}"))
        except OSError:
            continue
    return taken


def abandoned(folder: Path) -> List[Path]:
    """The names of other processes' workers, living or dead, that were not freed: trials may be
    open in those of the dead. In one that was freed there is none, and to ask would make one."""
    ours = {slot.path for slot in list(_slots)}
    return sorted(p for p in folder.glob("python-*") if p not in ours and p.stat().st_size > 0)
