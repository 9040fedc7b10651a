"""A small builder of ONNX graphs: tensors are names, and every method adds nodes and returns a name.

Weights are copied as float32. The operators are those of opset 17, which ONNX Runtime has on all platforms,
browsers included.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx  # pyright: ignore[reportMissingImports]
from onnx import TensorProto, helper, numpy_helper  # pyright: ignore[reportMissingImports]
from torch import nn

OPSET = 17
IR_VERSION = 8
HIDDEN = -1e9
"""The attention score of a hidden position: its weight becomes 0."""

AxisSizes = Sequence[str | int]
Wire = str
"""Name of a tensor in the graph."""


class OnnxGraph:
    def __init__(self, name: str) -> None:
        self.name = name
        self._nodes: list[Any] = []
        self._constants: dict[tuple[str, tuple[int, ...], bytes], Wire] = {}
        self._tensors: list[Any] = []
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []

    # Inputs, outputs and constants

    def input(self, name: str, shape: AxisSizes, dtype: int = TensorProto.FLOAT) -> Wire:
        self._inputs.append(helper.make_tensor_value_info(name, dtype, list(shape)))
        return name

    def output(self, name: str, tensor: Wire, shape: AxisSizes) -> None:
        self._nodes.append(helper.make_node("Identity", [tensor], [name]))
        self._outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, list(shape)))

    def constant(self, value: Any) -> Wire:
        """A constant from a torch tensor, an array or a number. Equal constants are stored once."""
        array = _array(value)
        key = str(array.dtype), array.shape, array.tobytes()
        if key not in self._constants:
            self._constants[key] = f"constant_{len(self._tensors)}"
            self._tensors.append(numpy_helper.from_array(array, self._constants[key]))
        return self._constants[key]

    def ints(self, *values: int) -> Wire:
        return self.constant(np.array(values, np.int64))

    def model(self) -> Any:
        graph = helper.make_graph(self._nodes, self.name, self._inputs, self._outputs, self._tensors)
        made = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
            producer_name="dragoman",
        )
        onnx.checker.check_model(made)
        return made

    # Operators

    def op(self, kind: str, *inputs: Wire, attributes: Mapping[str, Any] | None = None) -> Wire:
        """An operator with one output."""
        return self.ops(kind, inputs, 1, attributes)[0]

    def ops(
        self, kind: str, inputs: Sequence[Wire], count: int, attributes: Mapping[str, Any] | None = None
    ) -> list[Wire]:
        number = len(self._nodes)
        names = [f"{kind.lower()}_{number}" + (f"_{place}" if count > 1 else "") for place in range(count)]
        self._nodes.append(helper.make_node(kind, list(inputs), names, **(attributes or {})))
        return names

    def concat(self, axis: int, *parts: Wire) -> Wire:
        return self.op("Concat", *parts, attributes={"axis": axis})

    def transpose(self, x: Wire, *order: int) -> Wire:
        return self.op("Transpose", x, attributes={"perm": list(order)})

    def reshape(self, x: Wire, *shape: int) -> Wire:
        """0 keeps a dimension."""
        return self.op("Reshape", x, self.ints(*shape))

    def unsqueeze(self, x: Wire, *axes: int) -> Wire:
        return self.op("Unsqueeze", x, self.ints(*axes))

    def split(self, x: Wire, *widths: int) -> list[Wire]:
        """Split along the last axis."""
        if len(widths) == 1:
            return [x]
        return self.ops("Split", [x, self.ints(*widths)], len(widths), {"axis": -1})

    def size(self, x: Wire, axis: int) -> Wire:
        """Size of one axis, as a vector with one element."""
        return self.op("Gather", self.op("Shape", x), self.ints(axis))

    def first(self, x: Wire, end: Wire, axis: int) -> Wire:
        return self.op("Slice", x, self.ints(0), end, self.ints(axis))

    def last(self, x: Wire, axis: int) -> Wire:
        """The last element along an axis, which is removed."""
        return self.op("Gather", x, self.constant(np.int64(-1)), attributes={"axis": axis})

    def counted(self, start: Wire, end: Wire) -> Wire:
        """Integers from `start` to `end` (exclusive); both are vectors with one element."""
        bounds = (self.op("Squeeze", bound, self.ints(0)) for bound in (start, end))
        return self.op("Range", *bounds, self.constant(np.int64(1)))

    def scaled(self, x: Wire, factor: float) -> Wire:
        return x if factor == 1 else self.op("Mul", x, self.constant(np.float32(factor)))

    def penalty(self, visible: Wire) -> Wire:
        """The mask to add to scores: 0 where visible, else `HIDDEN`."""
        return self.op("Where", visible, self.constant(np.float32(0)), self.constant(np.float32(HIDDEN)))

    # Parts of models

    def linear(self, x: Wire, weight: Any, bias: Any = None) -> Wire:
        """`F.linear`."""
        product = self.op("MatMul", x, self.constant(_array(weight).T))
        return product if bias is None else self.op("Add", product, self.constant(bias))

    def norm(self, x: Wire, norm: nn.Module) -> Wire:
        if isinstance(norm, nn.Identity):
            return x
        weight = self.constant(norm.weight)
        if isinstance(norm, nn.LayerNorm):
            inputs = [x, weight, self.constant(norm.bias)]
            return self.op("LayerNormalization", *inputs, attributes={"axis": -1, "epsilon": norm.eps})
        assert isinstance(norm, nn.RMSNorm), "there are two kinds of norm"
        square = self.op("ReduceMean", self.op("Mul", x, x), attributes={"axes": [-1], "keepdims": 1})
        root = self.op("Sqrt", self.op("Add", square, self.constant(np.float32(norm.eps))))
        return self.op("Mul", self.op("Div", x, root), weight)

    def activation(self, x: Wire, name: str) -> Wire:
        if name in ("relu", "sigmoid"):
            return self.op(name.capitalize(), x)
        if name == "silu":
            return self.op("Mul", x, self.op("Sigmoid", x))
        if name == "gelu":
            inner = self.op("Erf", self.scaled(x, 0.5**0.5))
        else:
            cube = self.scaled(self.op("Mul", x, self.op("Mul", x, x)), 0.044715)
            inner = self.op("Tanh", self.scaled(self.op("Add", x, cube), (2 / np.pi) ** 0.5))
        return self.op("Mul", self.scaled(x, 0.5), self.op("Add", inner, self.constant(np.float32(1))))


def _array(value: Any) -> np.ndarray:
    """A contiguous array; a number becomes a scalar."""
    if hasattr(value, "detach"):
        value = value.detach().cpu().float().numpy()
    return np.array(value, order="C")
