"""Why parts of `parley up` cannot run. Apart from `up`, so that other commands need not import it."""


class CannotStart(RuntimeError):
    """The message is one line for the operator."""
