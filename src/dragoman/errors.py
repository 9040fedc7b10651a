"""The mistakes that a person can mend. Everything else that is raised is a bug in dragoman."""


class UserError(ValueError):
    """Bad input, told in one sentence that names the file, line or field and the value.

    Commands print the sentence and exit with status 2; they never show a traceback for it.
    """


def missing_extra(module: str, extra: str, purpose: str) -> UserError:
    """The error to raise where an optional dependency is not installed."""
    return UserError(
        f"{purpose} needs the package '{module}': install it with  pip install 'dragoman[{extra}]'"
    )
