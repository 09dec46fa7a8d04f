"""States of central moments: the lines of kernels that begin, load and merge them.

A *state* stands for some rows: how many they are, their mean, and sums of powers of the distances from it. Two states become one,
exactly but for rounding, however far apart their means are (Chan, Golub and LeVeque; Pebay for higher powers). A mean is two
doubles, of which the second is what rounding took from the first: 1e9 + {0, 1, 2} loses no digit. Nothing is subtracted again, so
that no value spoils a frame that it is not in.
"""

from __future__ import annotations

from gquery.runtime.tuples import NamedTuple


class Shape(NamedTuple):
    """What a state has: of two ``variables`` the sum of products, of one those of its powers up to the ``power``-th."""

    variables: int
    power: int

    @property
    def means(self) -> tuple[str, ...]:
        """A name for each mean."""
        return ("x", "y")[: self.variables]

    @property
    def words(self) -> tuple[str, ...]:
        """The variables of a state: ``n`` rows, means in two words, sums of the second and higher powers."""
        means = [word for m in self.means for word in (f"{m}_high", f"{m}_low")]
        return ("n", *means, *[f"s{k}" for k in range(2, self.power + 1)])


def nothing(shape: Shape) -> list[str]:
    """Lines that begin a state of no rows."""
    return [f"{word} = f64(0.0)" for word in shape.words]


def leaf(shape: Shape, masked: bool) -> list[str]:
    """Lines that load the state of one row: what is infinite has no distance from itself."""
    lines = [f"n_ = f64({'i64(present[row_index(at)])' if masked else '1.0'})"]
    for m in shape.means:
        lines += [f"{m}_high_ = f64({m}s[row_index(at)])", f"{m}_low_ = f64(0.0)"]
    away = [f"sub_f64({m}_high_, {m}_high_)" for m in shape.means]
    zero = away[0] if shape.variables == 1 else f"add_f64({away[0]}, {away[1]})"
    return [*lines, *[f"s{k}_ = {zero}" for k in range(2, shape.power + 1)]]


def node(shape: Shape) -> list[str]:
    """Lines that load the state of a node."""
    words = shape.words
    lines = [f"slot = mul_i64(add_i64(base, at), {len(words)})"]
    return [*lines, *[f"{w}_ = f64(nodes[row_index(add_i64(slot, {k}))])" for k, w in enumerate(words)]]


def merge(shape: Shape) -> list[str]:
    """Lines that add the state that was loaded to the one at hand."""
    last = shape.means[-1]
    lines = [
        "total = add_f64(n, n_)",
        "own = div_f64(n, total)",
        "other = div_f64(n_, total)",
        *[f"d{m} = add_f64(sub_f64({m}_high_, {m}_high), sub_f64({m}_low_, {m}_low))" for m in shape.means],
        "square = mul_f64(dx, dx)",
        "weight = mul_f64(mul_f64(own, other), total)",
    ]
    if "s4" in shape.words:
        lines += [
            "curve = add_f64(sub_f64(mul_f64(own, own), mul_f64(own, other)), mul_f64(other, other))",
            "s4 = add_f64(add_f64(s4, s4_), mul_f64(mul_f64(square, square), mul_f64(weight, curve)))",
            "across = add_f64(mul_f64(mul_f64(own, own), s2_), mul_f64(mul_f64(other, other), s2))",
            "s4 = add_f64(s4, mul_f64(mul_f64(6.0, square), across))",
            "s4 = add_f64(s4, mul_f64(mul_f64(4.0, dx), sub_f64(mul_f64(own, s3_), mul_f64(other, s3))))",
        ]
    if "s3" in shape.words:
        lines += [
            "s3 = add_f64(add_f64(s3, s3_), mul_f64(mul_f64(square, dx), mul_f64(weight, sub_f64(own, other))))",
            "s3 = add_f64(s3, mul_f64(mul_f64(3.0, dx), sub_f64(mul_f64(own, s2_), mul_f64(other, s2))))",
        ]
    lines.append(f"s2 = add_f64(add_f64(s2, s2_), mul_f64(mul_f64(dx, d{last}), weight))")
    for m in shape.means:  # the sum of two doubles, and what rounding takes from it
        lines += [
            f"away = mul_f64(d{m}, other)",
            f"moved = add_f64({m}_high, away)",
            f"back = sub_f64(moved, {m}_high)",
            f"lost = add_f64(sub_f64({m}_high, sub_f64(moved, back)), sub_f64(away, back))",
            f"{m}_high = moved",
            f"{m}_low = add_f64({m}_low, lost)",
        ]
    return [
        "if gt_f64(n_, 0.0):",
        "    if gt_f64(n, 0.0):",
        *("        " + line for line in lines),
        "        n = total",
        "    else:",
        *(f"        {w} = {w}_" for w in shape.words),
    ]


def value_names(shape: Shape) -> str:
    """Parameters of kernels: the values by position, and flags of those that count."""
    return " ".join(f"{m}s:*f64" for m in shape.means) + " present:*u8"
