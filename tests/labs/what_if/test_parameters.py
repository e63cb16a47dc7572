"""Values as people write them, and what is said to those that cannot be."""

import pytest

from cliffwatch.base.errors import Problem
from cliffwatch.labs.what_if.parameters import PARAMETERS, Parameter, Value


@pytest.mark.parametrize(
    ("name", "text", "values"),
    [
        ("unpartitioned", "0, 10%,0.2", (0.0, 0.1, 0.2)),
        ("over-provisioning", "12.5%,0.125", (0.125,)),
        ("trim", "off,on", (False, True)),
        ("retention", "1", (1.0,)),
        ("streams", "72,288", (72, 288)),
        ("write-size", "16KiB,16384", (16384,)),
        ("disorder", "0,1", (0.0, 1.0)),
    ],
)
def test_lists_are_read_and_name_each_value_once(name: str, text: str, values: tuple[Value, ...]) -> None:
    assert PARAMETERS[name].parse_list(text) == values


@pytest.mark.parametrize(
    ("name", "text", "remedy"),
    [
        ("unpartitioned", "1", "write 0.1 or 10%"),
        ("unpartitioned", "-5%", "write 0.1 or 10%"),
        ("over-provisioning", "much", "write 0.1 or 10%"),
        ("retention", "0", "above 0"),
        ("disorder", "1.5", "0 to 1"),
        ("trim", "sometimes", "neither on nor off"),
        ("streams", "0", "such as 288"),
        ("streams", "2.5", "such as 288"),
        ("write-size", "16 kilo", "such as 4GiB"),
        ("write-size", "0", "such as 16KiB"),
        ("retention", " , ", "write one or more"),
    ],
)
def test_an_invalid_parameter_value_is_refused_by_name_and_with_a_remedy(name: str, text: str, remedy: str) -> None:
    with pytest.raises(Problem) as raised:
        PARAMETERS[name].parse_list(text)
    [fault] = raised.value.faults
    assert fault.field == name
    assert remedy in fault.message


@pytest.mark.parametrize("parameter", PARAMETERS.values(), ids=lambda parameter: parameter.name)
def test_a_shown_parameter_value_can_be_parsed_back(parameter: Parameter) -> None:
    for value in (parameter.default, *parameter.values):
        assert parameter.parse(parameter.show(value).replace(" ", "")) == value
