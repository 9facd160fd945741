"""Optuna's exceptions, and the one for what is not to be had here."""

__all__ = ["ExperimentalWarning", "NotSupported", "OptunaError", "TrialPruned"]


class OptunaError(Exception):
    """Of which all others are kinds."""


class TrialPruned(OptunaError):
    """Raised by an objective that gives its trial up."""


class ExperimentalWarning(Warning):
    """Never given here; programs that are written for Optuna name it to turn it off."""


class NotSupported(OptunaError, NotImplementedError):
    """Shirabe does not have this; the text says why, and what there is instead. It ends
    Study.optimize, whatever `catch` says."""


class DuplicatedStudyError(OptunaError):
    """There is a study of this name: load_if_exists=True goes on with it."""
