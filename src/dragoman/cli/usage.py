"""One sentence for a command line that cannot be read: an option that is not there, a missing argument, a
value of the wrong kind."""

import re
from typing import Any

from dragoman.cli.examples import EXAMPLES
from dragoman.errors import UserError
from dragoman.runs.field_names import EXAMPLE_VALUES, USUAL_NAMES

_PLAIN = (
    (r"Value error, ", ""),
    (r"Input should be a valid integer.*", "expected a whole number"),
    (r"Input should be a valid number.*", "expected a number"),
    (r"Input should be less than or equal to (\S+)", r"expected at most \1"),
    (r"Input should be greater than or equal to (\S+)", r"expected at least \1"),
)
"""What the library that reads values says, and what is printed in its place."""


def explained_usage(error: Exception, command: str, parameters: list[Any]) -> UserError | None:
    """One sentence for a usual mistake; None for other errors."""
    option = getattr(error, "option_name", None)
    if option is not None and hasattr(error, "possibilities"):
        return UserError(f"{command}: there is no option {option}{_advice(error, option, parameters)}")
    parameter = getattr(error, "param", None)
    if parameter is None:
        return None
    message = str(getattr(error, "message", ""))
    if not message:
        name = parameter.metavar or parameter.name.upper()
        example = next(
            one for one in (*EXAMPLES.get(command, ()), f"dragoman help {command}") if "#" not in one
        )
        return UserError(f"{command}: {name} is missing; for example:  {example}")
    for pattern, plain in _PLAIN:
        message = re.sub(pattern, plain, message)
    name = max(parameter.opts, key=len) if parameter.param_type_name == "option" else parameter.name.upper()
    if name == "--minutes":
        message += " of minutes, such as 90 or 0.5"
    return UserError(f"{command} {name}: {message.rstrip('.')}")


def _advice(error: Any, option: str, parameters: list[Any]) -> str:
    """What to type instead: a field, or an option that looks alike."""
    takes_fields = any("field=value" in (getattr(p, "metavar", None) or "") for p in parameters)
    field = USUAL_NAMES.get(option.lstrip("-").replace("-", "_")) if takes_fields else None
    if field is not None:
        return f"; set the field:  {field}={EXAMPLE_VALUES.get(field, '4')}"
    if takes_fields and option == "--test":
        return "; evaluate after training:  dragoman evaluate RUN TEST_FILES"
    if error.possibilities:
        return f"; did you mean {' or '.join(sorted(error.possibilities))}?"
    return "; the help lists all options:  -h"
