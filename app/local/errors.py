"""Why parts of `parley up` cannot run; apart from `up`, which other commands need not import."""


class CannotStart(RuntimeError):
    """The message is one line for the operator."""
