"""Why an expression has no result."""

from typing import Literal

Code = Literal["expression_error", "expression_limit"]


class ExpressionProblem(Exception):
    """The message is for the author of the expression. `path` is its place in the rendered value,
    empty for the value itself.
    """

    def __init__(self, message: str, *, code: Code = "expression_error", path: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.code: Code = code
        self.path = path


class Overrun(ExpressionProblem):
    """The expression ended its process: by time, memory or the depth of its stack."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code="expression_limit")
