"""Why an expression has no result."""

from typing import Literal

Code = Literal["expression_error", "expression_limit"]
MAX_MESSAGE = 300


class Problem(Exception):
    """The message tells the author of the expression what is wrong."""

    code: Code = "expression_error"

    def __init__(self, message: str, path: str = "") -> None:
        super().__init__(message[:MAX_MESSAGE])
        self.message = message[:MAX_MESSAGE]
        self.path = path


class LimitProblem(Problem):
    """The expression exceeds a limit on size, depth or time."""

    code: Code = "expression_limit"
