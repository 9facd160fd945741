"""Optuna's switches of what is said on stderr."""

import logging
from logging import CRITICAL, DEBUG, ERROR, FATAL, INFO, WARN, WARNING

__all__ = [
    "CRITICAL",
    "DEBUG",
    "ERROR",
    "FATAL",
    "INFO",
    "WARN",
    "WARNING",
    "disable_default_handler",
    "disable_propagation",
    "enable_default_handler",
    "enable_propagation",
    "get_logger",
    "get_verbosity",
    "set_verbosity",
]

_root = logging.getLogger("shirabe.compat.optuna")
_handler = logging.StreamHandler()
_handler.setFormatter(logging.Formatter("[%(levelname).1s %(asctime)s] %(message)s"))
_root.addHandler(_handler)
_root.setLevel(INFO)
_root.propagate = False


def get_logger(name: str) -> logging.Logger:
    return logging.getLogger(name)


def get_verbosity() -> int:
    return _root.getEffectiveLevel()


def set_verbosity(verbosity: int) -> None:
    _root.setLevel(verbosity)


def disable_default_handler() -> None:
    _root.removeHandler(_handler)


def enable_default_handler() -> None:
    _root.removeHandler(_handler)
    _root.addHandler(_handler)


def disable_propagation() -> None:
    _root.propagate = False


def enable_propagation() -> None:
    _root.propagate = True
