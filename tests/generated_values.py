"""What hypothesis makes its values from."""

from hypothesis.internal.conjecture import providers


def ignore_constants_of_modules() -> None:
    """Hypothesis also tries the constants of all modules of the project. Reading them takes each
    process four seconds at first and two later, and has another result after every change.
    """
    providers._get_local_constants = lambda: providers._local_constants
