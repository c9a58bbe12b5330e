"""What can go wrong. Messages are the command's: what is wrong, where, and what is accepted."""

from __future__ import annotations


class SuimonError(Exception):
    """Anything that suimon refuses or cannot do."""


class InputError(SuimonError, ValueError):
    """Bad input. The message names the argument, or the file with line and key."""


class FileError(SuimonError, OSError):
    """A file could not be written."""


class InternalError(SuimonError, RuntimeError):
    """An error of suimon itself. Please report it."""
