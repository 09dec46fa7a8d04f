"""One value as text by a specification of `format` or `printf`: fill, sign, width, precision, separator, type.

The rules are those of the library that DuckDB formats with. Where that gives what nobody can want (``#`` of most floats, a
precision of 0 without a type) the specification is refused.
"""

from __future__ import annotations

import math

from gquery.errors import DataError, NotSupportedError
from gquery.runtime.records import dataclass, replace

Value = bool | int | float | str
_WORD = 1 << 64
_BYTE, _ASCII = 256, 128
_LETTERS = {"": "d", "d": "d", "n": "d", "x": "x", "X": "X", "b": "b", "B": "b", "o": "o"}
_LEAST_EXPONENT = -4  # below which a float without a type has an exponent


@dataclass(frozen=True)
class Place:
    """A number that stands among the arguments."""

    argument: int


@dataclass(frozen=True)
class Spec:
    """How a value is written. ``is_printf``: as C has it, with negative numbers in two's complement where they are unsigned."""

    kind: str = ""
    fill: str = " "
    align: str = ""
    sign: str = ""
    alternate: bool = False
    zeros: bool = False
    width: int | Place = 0
    precision: int | Place | None = None
    separator: str = ""
    is_printf: bool = False


def written(spec: Spec, value: Value, width: int, precision: int | None) -> str:
    """The text of a value. DataError where its type does not go with the specification."""
    if isinstance(value, bool):
        if spec.is_printf and spec.kind == "s":
            return _text(spec, "true" if value else "false", width, precision)
        if spec.kind:
            return _number(spec, int(value), width, precision)
        if precision is not None or spec.sign:
            raise DataError("format: a precision or a sign of a BOOLEAN")
        return _filled(spec, "true" if value else "false", width, "<")
    if isinstance(value, str):
        return _text(spec, value, width, precision)
    if isinstance(value, int):
        return _number(spec, value, width, precision)
    return _float(spec, value, width, precision)


def _wrong(spec: Spec, type_: str) -> DataError:
    return DataError(f'format: the type "{spec.kind}" of a specification does not go with {type_}')


def _filled(spec: Spec, text: str, width: int, default: str) -> str:
    """Filled up to a width; what fills a number up stands behind its sign."""
    missing = width - len(text)
    if missing <= 0:
        return text
    fill = "0" if spec.zeros else spec.fill
    align = default if spec.zeros or spec.align in ("", "=") else spec.align
    if align == "<":
        return text + fill * missing
    if align == "^":
        return fill * (missing // 2) + text + fill * (missing - missing // 2)
    return fill * missing + text


def _padded(spec: Spec, sign: str, digits: str, width: int) -> str:
    """A sign and digits, filled up between them with zeros, or where the specification says so."""
    if spec.zeros or spec.align == "=":
        fill = "0" if spec.zeros else spec.fill
        return sign + fill * (width - len(sign) - len(digits)) + digits
    return _filled(spec, sign + digits, width, ">")


def _text(spec: Spec, value: str, width: int, precision: int | None) -> str:
    if spec.kind not in ("", "s"):
        raise _wrong(spec, "a text")
    if spec.is_printf:
        spec = replace(spec, zeros=False)
    elif spec.sign or spec.zeros or spec.alternate or spec.align == "=":
        raise DataError("format: a specification of numbers for a text")
    return _filled(spec, value if precision is None else value[:precision], width, ">" if spec.is_printf else "<")


def _number(spec: Spec, value: int, width: int, precision: int | None) -> str:
    kind, is_unsigned = spec.kind, spec.is_printf and spec.kind in "uxXobB"
    if kind == "c" and spec.is_printf and value % _BYTE < _ASCII:
        return chr(value % _BYTE).rjust(width)
    letter = _LETTERS.get(kind, "i" if spec.is_printf and kind in ("i", "u") else "d" if spec.separator else "")
    if not letter:
        raise _wrong(spec, "an integer")
    if precision is not None and not spec.is_printf:
        raise DataError("format: a precision of an integer")
    magnitude = value % _WORD if is_unsigned and value < 0 else abs(value)
    sign = "-" if value < 0 and not is_unsigned else spec.sign.replace("-", "")
    if spec.separator:
        return _padded(spec, sign, f"{magnitude:,}".replace(",", spec.separator).rjust(precision or 0, "0"), width)
    digits = f"{magnitude:{letter if letter != 'i' else 'd'}}".rjust(precision or 0, "0")
    if spec.alternate and letter in "xXb" and (magnitude or not spec.is_printf):
        sign += f"0{kind}"
    elif spec.alternate and letter == "o" and digits[0] != "0":
        digits = f"0{digits}"
    return _padded(spec, sign, digits, width)


def _float(spec: Spec, value: float, width: int, precision: int | None) -> str:
    kind = {"n": "g", "": ""}.get(spec.kind, spec.kind)
    if kind not in ("", "f", "F", "e", "E", "g", "G", "a", "A"):
        raise _wrong(spec, "a float")
    if spec.alternate and (kind not in ("f", "F", "e", "E") or precision == 0):
        raise NotSupportedError("not supported: format of a float with #")
    sign = "-" if math.copysign(1.0, value) < 0 and not math.isnan(value) else spec.sign.replace("-", "")
    size = abs(value)
    if not math.isfinite(size):
        text = sign + ("nan" if math.isnan(size) else "inf")
        return _filled(
            spec, text.upper() if kind.isupper() else text, width, ">" if spec.is_printf and not spec.zeros else "<"
        )
    if precision is not None and kind in ("a", "A"):
        raise NotSupportedError("not supported: format of a float in hexadecimal digits with a precision")
    if precision == 0 and kind in ("", "g", "G"):
        raise NotSupportedError("not supported: format of a float with a precision of 0 and no type")
    if kind in ("a", "A"):
        digits = _hexadecimal(size)
        digits = digits.upper() if kind == "A" else digits
    elif not kind:
        digits = repr(size) if precision is None else _significant(size, precision)
    else:
        digits = f"{size:.{6 if precision is None else precision}{kind}}"
    whole, point, fraction = digits.partition(".")
    if spec.separator and (whole + fraction).isdigit():  # not so with an exponent
        digits = f"{int(whole):,}".replace(",", spec.separator) + point + fraction
    return _padded(spec, sign, digits, width)


def _hexadecimal(size: float) -> str:
    """As C writes a double in hexadecimal: without zeros at the end."""
    mantissa, exponent = size.hex().split("p")
    return f"{mantissa.rstrip('0').rstrip('.') if '.' in mantissa else mantissa}p{exponent}"


def _significant(size: float, precision: int) -> str:
    """So many digits, zeros at the end included but below 1."""
    if not size:
        return "0." + "0" * max(precision - 1, 1)
    digits, exponent = f"{size:.{precision - 1}e}".split("e")
    power = int(exponent)
    if not _LEAST_EXPONENT <= power < precision:
        return f"{digits}e{exponent}"
    if power < 0:
        return f"{size:.{precision}g}"
    fixed = f"{size:.{precision - 1 - power}f}"
    return fixed if "." in fixed else f"{fixed}.0"
