"""The program `shirabe` as a child of this process, one for each storage folder, for as long as
something uses it. It ends with its last user, and with this process however that ends. Where
another process has one for that folder already, that is used, and replaced once it has gone."""

from __future__ import annotations

import atexit
import fcntl
import json
import os
import shutil
import socket
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, Dict, Optional, Tuple

from shirabe_client.errors import Unavailable

from .texts import check_storable

__all__ = ["Child", "default_folder", "find_binary", "release", "use"]

_PATIENCE = 60.0  # seconds until the child answers; it takes 0.06 without history
_END = 15.0  # seconds until it is killed
_LOG_TAIL = 2000  # characters shown of what it said

_lock = threading.Lock()
_children: Dict[Path, "Child"] = {}


def find_binary(named: Optional[str] = None) -> str:
    """The program: as named, or $SHIRABE_BINARY, beside this Python's scripts, on the PATH, or in
    the checkout that this file belongs to. FileNotFoundError, saying where it was looked for."""
    for what, path in (("binary", named), ("SHIRABE_BINARY", os.environ.get("SHIRABE_BINARY"))):
        if path:
            found = shutil.which(path)
            if not found:
                raise FileNotFoundError(f"{what}={path} is no program that can be run")
            return found
    scripts = [sysconfig.get_path("scripts"), os.path.dirname(sys.executable)]
    checkout = Path(__file__).resolve().parents[3] / "build" / "release" / "bin"
    places = [*scripts, *os.get_exec_path(), str(checkout)]
    found = shutil.which("shirabe", path=os.pathsep.join(places))
    if found:
        return found
    raise FileNotFoundError(
        f"the program `shirabe` is neither in {scripts[0]}, nor on the PATH, nor in {checkout}: "
        "pip install shirabe, or set SHIRABE_BINARY to where it is"
    )


def default_folder() -> Path:
    """$SHIRABE_HOME/python: apart from what `shirabe run` keeps, which a child would go on with.
    FileNotFoundError where there is no home."""
    home = _home()
    if home is None:
        raise FileNotFoundError("this user has no home: give storage=, or set SHIRABE_HOME")
    return home / "python"


def _home() -> Optional[Path]:
    """The program's, or None where nothing says which that is."""
    if home := os.environ.get("SHIRABE_HOME"):
        return Path(home)
    try:
        data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    except RuntimeError:  # a user that the machine does not know, as in containers
        return None
    return Path(data) / "shirabe"


class Child:
    """A running program and how to reach it. Thread-safe."""

    def __init__(self, folder: Path, binary: str, memory: bool) -> None:
        self.folder = folder
        self._binary = binary
        self._memory = memory
        self._owner = os.getpid()
        self._starting = threading.Lock()
        self._process: Optional[subprocess.Popen[bytes]] = None
        self._log: Any = None
        self._lock: Any = None  # the file, while this process runs the child
        self.users = 0
        self._over = False
        self.starts = 0
        self.address: Tuple[str, int] = ("", 0)
        self.token = ""

    def start(self, seen: int) -> None:
        """Starts it, again if it has ended since a caller has seen this many starts."""
        if os.getpid() != self._owner:
            raise Unavailable("the process that began this search has ended, or its child has")
        with self._starting:
            if self._over:  # a thread that a second Ctrl-C has left behind
                raise Unavailable("the search is over")
            if self.starts > seen:
                return
            if self._process and self._process.poll() is None:
                raise Unavailable(f"{self._binary} runs and does not answer: {self.tail()}")
            self._obtain()
            self.starts += 1

    def _obtain(self) -> None:
        """The one that holds the lock runs the child; others find its address in the file."""
        if self._lock:  # this process runs it, and it has ended
            self._start()
            return
        file = self._open_lock()
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._lock = file
                self._start()
                return
            except BlockingIOError:
                pass
            file.seek(0)
            if self._borrow(file.read()):
                file.close()
                return
            if time.monotonic() > deadline:
                file.close()
                raise Unavailable(f"another process runs a child in {self.folder}: no answer")
            time.sleep(0.02)

    def _open_lock(self) -> Any:
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            return open(self.folder / "serving.json", "a+", encoding="utf-8")
        except OSError as error:
            raise OSError(
                error.errno,
                f"{error.strerror}: the folder of the search cannot be used: give storage= or "
                "SHIRABE_HOME one that can be written to",
                str(self.folder),
            ) from None

    def _borrow(self, text: str) -> bool:
        """Whether another process's child answers at the address of this text."""
        try:
            host, port = json.loads(text)["http"]
            socket.create_connection((host, port), timeout=5).close()
            self._read_token(self.folder / "token")
        except (OSError, ValueError, KeyError, TypeError):
            return False
        self.address = (host, port)
        return True

    def _start(self) -> None:
        handle, name = tempfile.mkstemp(prefix="ready-", dir=self.folder)
        os.close(handle)
        os.unlink(name)  # there is a file again once it answers
        if self._log:
            self._log.close()
        self._log = tempfile.TemporaryFile()
        database = "memory:" if self._memory else f"sqlite:{self.folder / 'shirabe.db'}"
        words = ["serve", "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0", "--ready-file", name]
        words += ["--db", database, "--rate", "0", "--parent-pid", str(os.getpid())]
        kept = {k: v for k, v in os.environ.items() if not k.startswith("SHIRABE_")}
        # The objective may be training on the GPU: suggestions use it where that is asked for.
        kept["SHIRABE_GPU"] = os.environ.get("SHIRABE_GPU") or "off"
        if folder := os.environ.get("SHIRABE_GPU_LIBRARY_DIR"):
            kept["SHIRABE_GPU_LIBRARY_DIR"] = folder
        self._process = subprocess.Popen(
            [self._binary, *words],
            env={**kept, "SHIRABE_HOME": str(self.folder)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._log,
            start_new_session=True,  # Ctrl-C is for this process alone
        )
        try:
            self._await(Path(name))
            self._publish()
        except BaseException:
            self.end()
            raise
        finally:
            if os.path.exists(name):
                os.unlink(name)

    def _publish(self) -> None:
        assert self._lock
        self._lock.seek(0)
        self._lock.truncate()
        self._lock.write(json.dumps({"http": self.address}))
        self._lock.flush()

    def _read_token(self, path: Path) -> None:
        self.token = path.read_text("utf-8").split("\n", 1)[0].split()[-1]

    def _await(self, ready: Path) -> None:
        assert self._process
        deadline = time.monotonic() + _PATIENCE
        pause = 0.002
        while True:
            try:
                found = json.loads(ready.read_text("utf-8"))
                break
            except (OSError, ValueError):
                pass
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise Unavailable(f"{self._binary} serve does not start: {self.tail()}")
            time.sleep(pause)
            pause = min(2 * pause, 0.05)
        host, _, port = found["http"].rpartition(":")
        self.address = (host, int(port))
        self._read_token(Path(found["tokenFile"]))

    def tail(self) -> str:
        """The end of what it has said."""
        if not self._log:
            return "it is another process's"
        self._log.seek(0)
        text: str = self._log.read().decode("utf-8", "replace").strip()
        code = self._process.poll() if self._process else None
        ended = f", and has ended with {code}" if code else ""
        return text[-_LOG_TAIL:] or "it says nothing" + ended

    def close(self) -> None:
        """Ends it for good."""
        with self._starting:
            self._over = True
            self.end()

    def end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.terminate()
            try:
                process.wait(_END)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for file in (self._log, self._lock):
            if file:
                file.close()
        self._log = self._lock = None

    def forget(self) -> None:
        """In a forked process: the child is another's, and so is the lock."""
        self._process = None
        if self._lock:
            self._lock.close()
            self._lock = None


def use(folder: Path, binary: Optional[str] = None, memory: bool = False) -> Child:
    """The child of a folder, started if it is not running; release() it."""
    folder = folder.expanduser().absolute()
    check_storable("storage", str(folder))
    home = _home()
    if home is not None and folder == home.absolute():
        raise ValueError(
            f"storage={str(folder)!r} belongs to `shirabe run` and `shirabe serve`: give a folder "
            "of its own"
        )
    with _lock:
        child = _children.get(folder)
        if child is None:
            child = _children[folder] = Child(folder, find_binary(binary), memory)
        child.users += 1
    try:
        if child.starts == 0:
            child.start(0)
    except BaseException:
        release(child)
        raise
    return child


def release(child: Child) -> None:
    """Ends the child if this was its last user."""
    with _lock:
        child.users -= 1
        last = child.users <= 0 and _children.get(child.folder) is child
        if last:
            del _children[child.folder]
    if last:
        child.close()


def _end_all() -> None:
    for child in list(_children.values()):
        child.end()


def _forget_all() -> None:
    global _lock
    _lock = threading.Lock()
    for child in _children.values():
        child.forget()
    _children.clear()


atexit.register(_end_all)
os.register_at_fork(after_in_child=_forget_all)
