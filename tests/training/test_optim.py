"""Optimizers against their formulas in NumPy, float64; and their state by parameter name."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn

from dragoman.errors import UserError
from dragoman.runs.optim import OptimConfig
from dragoman.training.optim import build_optimizer, load_optimizer, optimizer_tensors, set_rate

RATES = [0.1, 0.05, 0.2, 0.1, 0.01]
Step = Callable[[np.ndarray, np.ndarray, float, int], np.ndarray]


def two_parameters() -> nn.Module:
    """A matrix, which decays, and a bias, which does not."""
    torch.manual_seed(0)
    return nn.Linear(3, 2).double()


def gradients(step: int, shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng([step, *shape]).normal(size=shape)


def adam_step(config: OptimConfig, decay: float, decoupled: bool) -> Step:
    m: np.ndarray | float = 0.0
    v: np.ndarray | float = 0.0

    def step(theta: np.ndarray, gradient: np.ndarray, rate: float, t: int) -> np.ndarray:
        nonlocal m, v
        if decoupled:
            theta = theta - rate * decay * theta
        else:
            gradient = gradient + decay * theta
        m = config.beta1 * m + (1 - config.beta1) * gradient
        v = config.beta2 * v + (1 - config.beta2) * gradient**2
        m_hat, v_hat = m / (1 - config.beta1**t), v / (1 - config.beta2**t)
        return theta - rate * m_hat / (np.sqrt(v_hat) + config.eps)

    return step


def sgd_step(config: OptimConfig, decay: float) -> Step:
    buffer: np.ndarray | float = 0.0

    def step(theta: np.ndarray, gradient: np.ndarray, rate: float, _t: int) -> np.ndarray:
        nonlocal buffer
        gradient = gradient + decay * theta
        buffer = config.momentum * buffer + gradient
        return theta - rate * (gradient + config.momentum * buffer if config.nesterov else buffer)

    return step


def step_for(config: OptimConfig, decay: float) -> Step:
    if config.name == "sgd":
        return sgd_step(config, decay)
    return adam_step(config, decay, decoupled=config.name == "adamw")


@pytest.mark.parametrize(
    "config",
    [
        OptimConfig("adam", rate=0.1),
        OptimConfig("adam", rate=0.1, weight_decay=0.2, beta1=0.8, beta2=0.95, eps=1e-6),
        OptimConfig("adamw", rate=0.1, weight_decay=0.2),
        OptimConfig("sgd", rate=0.1, momentum=0.0, weight_decay=0.1),
        OptimConfig("sgd", rate=0.1, momentum=0.9),
        OptimConfig("sgd", rate=0.1, momentum=0.9, nesterov=True, weight_decay=0.1),
    ],
    ids=["adam", "adam with l2", "adamw", "sgd", "momentum", "nesterov"],
)
def test_steps_follow_the_formula(config: OptimConfig) -> None:
    model = two_parameters()
    optimizer = build_optimizer(config, model)
    expected = {name: p.detach().numpy().copy() for name, p in model.named_parameters()}
    formulas = {
        name: step_for(config, config.weight_decay if theta.ndim > 1 else 0.0)
        for name, theta in expected.items()
    }
    for t, rate in enumerate(RATES, 1):
        for name, parameter in model.named_parameters():
            gradient = gradients(t, tuple(parameter.shape))
            parameter.grad = torch.from_numpy(gradient.copy())
            expected[name] = formulas[name](expected[name], gradient, rate, t)
        set_rate(optimizer, rate)
        optimizer.step()
        for name, parameter in model.named_parameters():
            np.testing.assert_allclose(parameter.detach().numpy(), expected[name], rtol=1e-12, atol=1e-12)


def test_the_state_is_there_from_the_start_by_name() -> None:
    model = two_parameters()
    tensors = optimizer_tensors(build_optimizer(OptimConfig(rate=0.1), model), model)
    assert set(tensors) == {
        f"{key}.{name}" for key in ("step", "exp_avg", "exp_avg_sq") for name in ("weight", "bias")
    }


def test_a_loaded_state_continues_bit_for_bit() -> None:
    models = [two_parameters() for _ in range(2)]
    optimizers = [build_optimizer(OptimConfig("adamw", rate=0.1, weight_decay=0.1), m) for m in models]

    def step(which: int, t: int) -> None:
        for parameter in models[which].parameters():
            parameter.grad = torch.from_numpy(gradients(t, tuple(parameter.shape)))
        optimizers[which].step()

    for t in range(3):
        step(0, t)
    saved = {name: tensor.clone() for name, tensor in optimizer_tensors(optimizers[0], models[0]).items()}
    models[1].load_state_dict(models[0].state_dict())
    load_optimizer(optimizers[1], models[1], saved, "checkpoint")
    for t in range(3, 6):
        step(0, t)
        step(1, t)
    for a, b in zip(models[0].parameters(), models[1].parameters(), strict=True):
        assert torch.equal(a, b)


def test_a_missing_an_extra_or_a_misshapen_state_is_refused_by_name() -> None:
    model = two_parameters()
    optimizer = build_optimizer(OptimConfig(rate=0.1), model)
    good = {name: tensor.clone() for name, tensor in optimizer_tensors(optimizer, model).items()}
    missing = {name: tensor for name, tensor in good.items() if name != "exp_avg.bias"}
    with pytest.raises(UserError, match=r"lacks tensor 'exp_avg\.bias'"):
        load_optimizer(optimizer, model, missing, "checkpoint")
    with pytest.raises(UserError, match=r"unknown tensor 'momentum_buffer\.bias'"):
        load_optimizer(optimizer, model, good | {"momentum_buffer.bias": torch.zeros(2)}, "checkpoint")
    with pytest.raises(UserError, match=r"'exp_avg\.bias' has the shape \[3\]"):
        load_optimizer(optimizer, model, good | {"exp_avg.bias": torch.zeros(3)}, "checkpoint")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("rate", 0.0),
        ("rate", float("nan")),
        ("beta1", 1.0),
        ("beta2", -0.1),
        ("eps", 0.0),
        ("weight_decay", -1.0),
    ],
)
def test_bad_numbers_are_refused_by_name(field: str, value: float) -> None:
    with pytest.raises(UserError, match=f"^{field}: "):
        OptimConfig(**{field: value})  # type: ignore[arg-type]


def test_relative_rates_are_those_of_the_sizes() -> None:
    """A matrix of ones, one of thousandths of that, and zeros, which are taken for 10⁻³."""
    config = OptimConfig("adamw", rate=0.1, weight_decay=0.2, relative=True)
    model = nn.ParameterDict({name: nn.Parameter(torch.ones(3, 2).double()) for name in "abc"})
    with torch.no_grad():
        model["b"] *= 0.004
        model["c"] *= 0
    optimizer = build_optimizer(config, model, {"a": 1.0, "b": 0.5, "c": 1.0})
    expected = {name: p.detach().numpy().copy() for name, p in model.named_parameters()}
    formulas = {name: step_for(config, config.weight_decay) for name in expected}
    for number, rate in enumerate(RATES, 1):
        for name, parameter in model.named_parameters():
            gradient = gradients(number, (3, 2))
            parameter.grad = torch.from_numpy(gradient)
            own = rate * max(1e-3, float(np.sqrt(np.mean(expected[name] ** 2)))) * (0.5 if name == "b" else 1)
            expected[name] = formulas[name](expected[name], gradient, own, number)
        set_rate(optimizer, rate)
        optimizer.step()
    for name, parameter in model.named_parameters():
        np.testing.assert_allclose(parameter.detach().numpy(), expected[name], rtol=1e-9)


def test_relative_rates_are_not_for_sgd() -> None:
    with pytest.raises(UserError, match=r"^relative"):
        OptimConfig("sgd", relative=True)


def test_nesterov_needs_momentum() -> None:
    with pytest.raises(UserError, match=r"^nesterov"):
        OptimConfig("sgd", momentum=0.0, nesterov=True)
