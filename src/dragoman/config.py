"""Frozen dataclasses <-> YAML, with dotted overrides. An unknown key is an error.

A configuration is a closed schema: it can hold numbers, strings, lists and nested dataclasses, and it
never names code. Every error says which field it is about, and what was found there.
"""

import contextlib
import dataclasses
import math
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import yaml

from dragoman.errors import UserError, did_you_mean, no_such_file, shown
from dragoman.plain import DEEPEST, parse_yaml, read_yaml

T = TypeVar("T")
_LONGEST_NAME = 60


def check_counts(config: object, *names: str, most: int | None = None) -> None:
    """These fields are None or whole numbers from 1 to `most`."""
    for name in names:
        value = getattr(config, name)
        if value is not None and value < 1:
            raise UserError(f"{name}: expected a whole number of at least 1, found {value}")
        if value is not None and most is not None and value > most:
            raise UserError(f"{name}: expected at most {most:,}, found {shown(value)}")


MOST_LAYERS, WIDEST, MOST_PLACES = 1000, 1 << 18, 1 << 20
"""Limits of a model's sizes: far above those of real models, and far below those that exhaust a
machine. A file with larger values is damaged or hostile."""


def check_sizes(
    config: object, depths: Sequence[str] = (), widths: Sequence[str] = (), places: Sequence[str] = ()
) -> None:
    """Check the sizes of a model: numbers of layers, widths, and sizes of tables (positions, labels)."""
    check_counts(config, *depths, most=MOST_LAYERS)
    check_counts(config, *widths, most=WIDEST)
    check_counts(config, *places, most=MOST_PLACES)


def check_shares(config: object, *names: str) -> None:
    """These fields are shares from 0 up to 1, 1 excluded, such as dropout."""
    for name in names:
        if not 0 <= getattr(config, name) < 1:
            raise UserError(f"{name}: expected a share from 0 up to 1, found {getattr(config, name)}")


def check_heads(config: Any) -> None:
    """`num_heads` divides `model_dim`."""
    if config.model_dim % config.num_heads:
        raise UserError(
            f"num_heads: model_dim {config.model_dim} cannot be divided into {config.num_heads} heads; "
            "choose another number"
        )


def check_not_negative(config: object, *names: str, most: float = math.inf) -> None:
    """These fields are finite numbers from 0 to `most`."""
    for name in names:
        value = getattr(config, name)
        if not 0 <= value < math.inf:
            raise UserError(f"{name}: expected a number of 0 or more, found {value}")
        if value > most:
            raise UserError(f"{name}: expected at most {most:,}, found {shown(value)}")


def from_dict(cls: type[T], data: object, where: str = "") -> T:
    """Build the dataclass `cls` from plain data, checking every key and every type."""
    label = where or cls.__name__
    if not isinstance(data, Mapping):
        raise UserError(f"{label}: expected a mapping of fields, found {shown(data)}")
    variant = getattr(cls, "variant", None)  # a union: the data say which of its classes they are of
    if variant is not None:
        with naming(where):
            cls, data = typing.cast(tuple[type[T], Mapping[str, Any]], variant(data))
    known = typing.get_type_hints(cls)
    fields = _known_fields(cls, data, where)
    values = {key: _convert(known[key], value, _dotted(where, key)) for key, value in data.items()}
    for name, field in fields.items():
        required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if required and name not in values:
            raise UserError(f"{_dotted(where, name)}: this field is required")
    with naming(where):
        return cls(**values)


@contextlib.contextmanager
def naming(where: str) -> Iterator[None]:
    """An error inside the block is about a field of `where`."""
    try:
        yield
    except UserError as error:
        raise UserError(_dotted(where, str(error))) from None


def check_given(cls: type, data: Mapping[Any, Any], where: str = "") -> None:
    """Check names and types of the given fields, but not missing fields or combinations. This finds mistakes
    before the rest of a configuration is chosen."""
    variant = getattr(cls, "variant", None)
    if variant is not None:
        with naming(where):
            cls, data = variant(data)
    known = typing.get_type_hints(cls)
    _known_fields(cls, data, where)
    for key, value in data.items():
        inner = _dataclass_of(known[key])
        if inner is not None and isinstance(value, Mapping):
            check_given(inner, value, _dotted(where, key))
        else:
            _convert(known[key], value, _dotted(where, key))


def _known_fields(cls: type, data: Mapping[Any, Any], where: str) -> dict[str, "dataclasses.Field[Any]"]:
    """The fields of a dataclass; a key of `data` that is none of them is an error."""
    fields = {f.name: f for f in dataclasses.fields(cls) if f.init}
    for key in data:
        if key not in fields:
            name = key if isinstance(key, str) and len(key) <= _LONGEST_NAME else shown(key)
            raise UserError(f"{_dotted(where, name)}: unknown field{_suggest(name, fields, cls)}")
    return fields


def _dataclass_of(hint: Any) -> type | None:
    """The dataclass in a type hint, optional or not."""
    for option in (hint, *typing.get_args(hint)):
        if isinstance(option, type) and dataclasses.is_dataclass(option):
            return option
    return None


LEFT_OUT = {"left_out": True}
"""Metadata of a field that is not written if it has its default, so that files written before the field
existed stay the same, byte for byte."""


def to_dict(config: object) -> dict[str, Any]:
    """The plain data of a dataclass: what `from_dict` takes and YAML and JSON can hold."""
    fields = [f for f in dataclasses.fields(config) if f.init]  # type: ignore[arg-type]
    values = {f.name: getattr(config, f.name) for f in fields}
    absent = {f.name for f in fields if f.metadata.get("left_out") and values[f.name] == f.default}
    return {name: _plain(value) for name, value in values.items() if name not in absent}


def dump_yaml(data: Mapping[str, Any]) -> str:
    return yaml.safe_dump(dict(data), sort_keys=False, allow_unicode=True, width=100)


def load_yaml(path: Path) -> dict[str, Any]:
    """Read a YAML mapping; errors name the file and, where YAML tells it, the line."""
    try:
        data = read_yaml(path)
    except FileNotFoundError:
        raise no_such_file(path) from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise UserError(f"{path}: expected a mapping of fields, found {shown(data)}")
    return data


def apply_overrides(data: Mapping[str, Any], assignments: Sequence[str]) -> dict[str, Any]:
    """Return `data` with `a.b.c=value` assignments applied; values are read as YAML."""
    result = _deep_copy(data)
    for assignment in assignments:
        dotted, sign, text = assignment.partition("=")
        name = f"override {shown(assignment)}"
        if not sign or not dotted:
            raise UserError(f"{name}: expected the form field.name=value")
        try:
            value = parse_yaml(text)
        except yaml.YAMLError:
            raise UserError(f"{name}: the value is not valid YAML") from None
        except UserError as error:
            raise UserError(f"{name}: {error}") from None
        *parents, last = dotted.split(".")
        if len(parents) > DEEPEST:
            raise UserError(f"{name}: no field lies so deep")
        node = result
        for key in parents:
            node = node.setdefault(key, {})
            if not isinstance(node, dict):
                raise UserError(f"{name}: '{key}' has no fields of its own")
        node[last] = value
    return result


def _deep_copy(data: Mapping[str, Any]) -> dict[str, Any]:
    return {k: _deep_copy(v) if isinstance(v, Mapping) else v for k, v in data.items()}


def _plain(value: object) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return to_dict(value)
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return value


def _convert(hint: Any, value: object, where: str) -> Any:
    """Check `value` against the type `hint` and turn lists into tuples, mappings into dataclasses."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return value
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return value if isinstance(value, hint) else from_dict(hint, value, where)
    if origin in (typing.Union, types.UnionType):
        return _convert_union(args, value, where)
    if origin is typing.Literal:
        if value not in args:
            options = ", ".join(str(a) for a in args)
            advice = did_you_mean(value, map(str, args)) if isinstance(value, str) else ""
            raise UserError(f"{where}: expected one of {options}, found {shown(value)}{advice}")
        return value
    if origin is tuple:
        if not isinstance(value, list | tuple):
            raise UserError(f"{where}: expected a list, found {shown(value)}")
        return tuple(_convert(args[0], item, f"{where}[{i}]") for i, item in enumerate(value))
    if origin in (dict, Mapping) or hint is dict:
        if not isinstance(value, Mapping):
            raise UserError(f"{where}: expected a mapping, found {shown(value)}")
        return dict(value)
    return _convert_scalar(hint, value, where)


def _convert_union(args: tuple[Any, ...], value: object, where: str) -> Any:
    if value is None and type(None) in args:
        return None
    options = [a for a in args if a is not type(None)]
    for option in options[:-1]:
        try:
            return _convert(option, value, where)
        except UserError:
            continue
    return _convert(options[-1], value, where)


def _convert_scalar(hint: Any, value: object, where: str) -> Any:
    if hint is float and isinstance(value, str):  # YAML 1.1 reads 3e-4 as a string
        try:
            return float(value)
        except ValueError:
            pass
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        with contextlib.suppress(OverflowError):  # and then it is refused below
            return float(value)
    if hint is int and isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, hint) and not (isinstance(value, bool) and hint is not bool):
        return value
    names = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}
    raise UserError(f"{where}: expected {names.get(hint, hint.__name__)}, found {shown(value)}")


def _dotted(where: str, key: str) -> str:
    return f"{where}.{key}" if where else key


def _suggest(key: str, known: Mapping[str, object], cls: type) -> str:
    """A field of a class may also go by names that other programs use, in `usual_names`."""
    usual = getattr(cls, "usual_names", {}).get(key.lower().replace("-", "_"))
    if usual is not None:
        return f"; the field is {usual}"
    return did_you_mean(key, known) or f"; known fields are {', '.join(known)}"
