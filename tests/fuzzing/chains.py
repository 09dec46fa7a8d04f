"""Random chains of DataFrame methods that Polars and gquery both have: the same code makes both.

A chain begins with a frame whose rows have an order. Methods that depend on that order are drawn as long as there is one: what
joins, groups or makes rows unique gives rows as they come, until a sort by all columns. Integers stay small, since Polars' wrap,
and text is ASCII. What differs by intent stands in docs/howto/dataframe.md and is not drawn.
"""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from tests.fuzzing.tape import Tape

INT, DBL, STR, BOOL, DAY = "int", "dbl", "str", "bool", "day"
Kinds = dict[str, str]
"""The columns of a frame, with what they hold."""

_WORDS = ("", "a", "b", "tea", "Tea", "jam", " jam ", "tea-12", "x", "yy")
_DAYS = (
    datetime.date(1969, 12, 31),
    datetime.date(2020, 2, 29),
    datetime.date(2021, 12, 31),
    datetime.date(2024, 3, 1),
)
_NUMBERS = (0.0, 1.5, -2.0, 0.25, 4.0, 1e10, -0.5)


def table(seed: int, rows: int) -> pa.Table:
    """A frame of every kind of column, with NULLs and repeated values; ``i`` tells rows apart."""
    rng = random.Random(seed)

    def some(values: Sequence[Any]) -> list[Any]:
        nulls = rng.choice((0.0, 0.2, 0.2, 0.9))
        return [None if rng.random() < nulls else rng.choice(values) for _ in range(rows)]

    return pa.table(
        {
            "i": pa.array(range(rows), pa.int64()),
            "a": pa.array(some(range(-5, 6)), pa.int64()),
            "b": pa.array(some((1, 2)), pa.int64()),
            "x": pa.array(some(_NUMBERS), pa.float64()),
            "s": pa.array(some(_WORDS), pa.string()),
            "k": pa.array(some("uvw"), pa.string()),
            "t": pa.array(some((True, False)), pa.bool_()),
            "d": pa.array(some(_DAYS), pa.date32()),
        }
    )


KINDS: Kinds = {"i": INT, "a": INT, "b": INT, "x": DBL, "s": STR, "k": STR, "t": BOOL, "d": DAY}


@dataclass(frozen=True)
class Chain:
    """A chain up to some method: its text, the columns of what it gives, whether the rows have an order, and whether it is that
    of a sort, which a window over them keeps whatever is filtered then."""

    text: str
    kinds: Kinds
    is_ordered: bool
    is_sorted: bool = False


class Chains:
    """Draws one chain. In its text ``f`` and ``o`` are two frames and ``p`` is the library."""

    def __init__(self, tape: Tape) -> None:
        self._tape = tape
        self._made = 0

    def chain(self) -> Chain:
        now = Chain("f", KINDS, is_ordered=True)
        for _ in range(self._tape.count(1, 6)):
            now = self._step(now)
        return now

    # ---- methods of frames -----------------------------------------------------------------------------------------

    def _step(self, now: Chain) -> Chain:
        steps: list[Callable[[Chain], Chain]] = [
            self._filter, self._with_columns, self._select, self._sort, self._drop, self._rename, self._fill, self._join,
            self._grouped, self._unique, self._drop_nulls, self._totals, self._unpivot, self._twice,
            self._filter_by_all, self._whole, self._several,
        ]  # fmt: skip
        if now.is_ordered:
            steps += [
                self._part,
                self._windows,
                self._kept_unique,
                self._numbered,
                self._windows,
                self._part,
                self._some_of_groups,
            ]
        return self._tape.one(steps)(now)

    def _filter(self, now: Chain) -> Chain:
        return replace(now, text=f"{now.text}.filter({self._of(now, BOOL, 2)})")

    def _with_columns(self, now: Chain) -> Chain:
        kind = self._kind()
        name = self._tape.one([self._name(), *now.kinds])
        text = f"{now.text}.with_columns({name}={self._of(now, kind, 2)})"
        return replace(now, text=text, kinds=now.kinds | {name: kind})

    def _select(self, now: Chain) -> Chain:
        kept = [n for n in now.kinds if self._tape.chance(60)]
        made = {self._name(): self._kind(now.kinds) for _ in range(self._tape.count(0 if kept else 1, 2))}
        listed = [*(f'"{n}"' for n in kept), *(f"{n}={self._of(now, k, 2, columns=True)}" for n, k in made.items())]
        kinds = {n: now.kinds[n] for n in kept} | made
        return replace(now, text=f"{now.text}.select({', '.join(listed)})", kinds=kinds)

    def _sort(self, now: Chain) -> Chain:
        names = list(now.kinds)
        first = self._tape.one(names)
        keys = [first, *(n for n in names if n != first)]
        ways = [self._tape.chance(40) for _ in keys]
        last = self._tape.chance(50)
        listed = ", ".join(f'"{n}"' for n in keys)
        return Chain(
            f"{now.text}.sort({listed}, descending={ways}, nulls_last={last})", now.kinds, True, is_sorted=True
        )

    def _filter_by_all(self, now: Chain) -> Chain:
        """A filter that looks at other rows, too."""
        names = [n for n, k in now.kinds.items() if k in (INT, DBL)]
        if not names:
            return now
        name = self._tape.one(names)
        way = self._tape.one(("mean", "max", "median", "min"))
        over = f'.over("{self._tape.one(list(now.kinds))}")' if self._tape.chance(50) else ""
        is_ordered = now.is_ordered and (not over or now.is_sorted)
        text = f'{now.text}.filter(p.col("{name}") >= p.col("{name}").{way}(){over})'
        return Chain(text, now.kinds, is_ordered, is_ordered and now.is_sorted)

    def _some_of_groups(self, now: Chain) -> Chain:
        key, way = self._tape.one(list(now.kinds)), self._tape.one(("head", "tail"))
        kinds = {key: now.kinds[key]} | now.kinds
        return Chain(f'{now.text}.group_by("{key}").{way}({self._tape.count(1, 3)})', kinds, is_ordered=False)

    def _whole(self, now: Chain) -> Chain:
        """A frame's method that gives one row."""
        way = self._tape.one(("min", "max", "count", "null_count"))
        kinds = now.kinds if way in ("min", "max") else dict.fromkeys(now.kinds, INT)
        cast = "" if way in ("min", "max") else ".cast(integer)"
        return Chain(f"{now.text}.{way}(){cast}", kinds, is_ordered=True)

    def _several(self, now: Chain) -> Chain:
        """An expression of all columns of a kind."""
        kind = self._tape.one(list(now.kinds.values()))
        listed = ", ".join(f'"{n}"' for n, k in now.kinds.items() if k is kind)
        ways = {INT: "{} + 1", DBL: "{}.abs()", STR: "{}.str.to_uppercase()", BOOL: "~{}", DAY: "{}.dt.month_start()"}
        made = ways[kind].format(f"p.col({listed})")
        if self._tape.chance(50):
            return replace(now, text=f"{now.text}.with_columns(({made}).name.keep())")
        made = f"({made}).name.suffix('_')"
        kinds = now.kinds | {f"{n}_": k for n, k in now.kinds.items() if k is kind}
        return replace(now, text=f"{now.text}.with_columns({made})", kinds=kinds)

    def _drop(self, now: Chain) -> Chain:
        if len(now.kinds) < 2:
            return now
        name = self._tape.one(list(now.kinds))
        return replace(now, text=f'{now.text}.drop("{name}")', kinds={n: k for n, k in now.kinds.items() if n != name})

    def _rename(self, now: Chain) -> Chain:
        old, new = self._tape.one(list(now.kinds)), self._name()
        kinds = {new if n == old else n: k for n, k in now.kinds.items()}
        return replace(now, text=f'{now.text}.rename({{"{old}": "{new}"}})', kinds=kinds)

    def _fill(self, now: Chain) -> Chain:
        return replace(now, text=f"{now.text}.fill_null({self._constant(self._tape.one((STR, BOOL)))})")

    def _drop_nulls(self, now: Chain) -> Chain:
        subset = "" if self._tape.chance(30) else f'"{self._tape.one(list(now.kinds))}"'
        return replace(now, text=f"{now.text}.drop_nulls({subset})")

    def _join(self, now: Chain) -> Chain:
        how = self._tape.one(("inner", "left", "semi", "anti", "right", "full", "cross"))
        if how == "cross":
            new = self._name()
            return Chain(f'{now.text}.join(o.select({new}=p.col("i")).head(3), how="cross")', now.kinds | {new: INT}, False)
        keys = [n for n, k in now.kinds.items() if k in (INT, STR, DAY)]
        if not keys:
            return now
        key = self._tape.one(keys)
        own = {INT: "b", STR: "k", DAY: "d"}[now.kinds[key]]
        new = self._name()
        right = f'o.select({new}=p.col("i"), {key}=p.col("{own}"))'
        kinds = now.kinds if how in ("semi", "anti") else now.kinds | {new: INT}
        more = ", **one_key" if how == "full" else ""
        text = f'{now.text}.join({right}.head(7), on="{key}", how="{how}"{more})'
        if how == "right":  # Polars has the key behind the columns of the left side
            text += f".select({', '.join(map(repr, kinds))})"
        return Chain(text, kinds, is_ordered=False)

    def _grouped(self, now: Chain) -> Chain:
        keys = [n for n in now.kinds if self._tape.chance(25)][:2] or [self._tape.one(list(now.kinds))]
        others = replace(now, kinds={n: k for n, k in now.kinds.items() if n not in keys} or now.kinds)
        made, listed = self._aggregates(others)
        text = f"{now.text}.group_by({', '.join(f'{k!r}' for k in keys)}).agg({listed})"
        return Chain(text, {k: now.kinds[k] for k in keys} | made, is_ordered=False)

    def _totals(self, now: Chain) -> Chain:
        made, listed = self._aggregates(now)
        return Chain(f"{now.text}.select({listed})", made, is_ordered=True)

    def _aggregates(self, now: Chain) -> tuple[Kinds, str]:
        made: Kinds = {}
        listed = []
        for _ in range(self._tape.count(1, 3)):
            kind = self._kind(now.kinds)
            of = self._of(now, kind, 1, columns=True)
            if self._tape.chance(20):
                of = f"{of}.filter({self._of(now, BOOL, 1)})"
            ways = {"count": INT, "min": kind, "max": kind}
            ways |= {"n_unique": INT} if "filter" not in of else {}
            ways |= {"mean": DBL, "median": DBL, "std": DBL} if kind in (INT, DBL) else {}
            ways |= {"first": kind, "last": kind} if now.is_ordered else {}
            if kind is BOOL:
                ways = {"count": INT, "any": BOOL, "all": BOOL}
            way = self._tape.one(list(ways))
            name = self._name()
            made[name] = ways[way]
            listed.append(f"{name}={of}.{way}()")
        return made, ", ".join(listed)

    def _unique(self, now: Chain) -> Chain:
        return Chain(f"{now.text}.unique()", now.kinds, is_ordered=False)

    def _kept_unique(self, now: Chain) -> Chain:
        keep, by = self._tape.one(("first", "last", "none")), self._tape.one(list(now.kinds))
        return replace(now, text=f'{now.text}.unique("{by}", keep="{keep}", **in_order)')

    def _part(self, now: Chain) -> Chain:
        n, m = self._tape.count(0, 12), self._tape.count(0, 12)
        return replace(
            now, text=now.text + self._tape.one((f".head({n})", f".tail({n})", f".slice({m}, {n})", f".slice({m})"))
        )

    def _numbered(self, now: Chain) -> Chain:
        name = self._name()
        text = f'{now.text}.with_row_index("{name}").with_columns({name}=p.col("{name}").cast(integer))'
        return replace(now, text=text, kinds={name: INT} | now.kinds)

    def _windows(self, now: Chain) -> Chain:
        kind = self._kind({n: k for n, k in now.kinds.items() if k in (INT, DBL, STR)} or now.kinds)
        of = self._of(now, kind, 1, columns=True)
        ways = {f"shift({self._tape.one((1, -1, 2, 0))})": kind, "first()": kind, "max()": kind, "count()": INT}
        if kind is INT:
            ways |= {
                "cum_sum()": INT,
                "cum_max()": INT,
                "diff()": INT,
                "rolling_sum(3, min_samples=1)": INT,
                "sum().fill_null(0)": INT,
            }
        if kind is DBL:
            ways |= {"cum_min()": DBL, "rank('min')": INT, "rank('dense')": INT, "forward_fill()": DBL}
        way = self._tape.one(list(ways))
        way_, *behind = way.split(".fill_null")
        text = f"{of}.{way_}"
        if self._tape.chance(50):
            keys = [self._tape.one(list(now.kinds)) for _ in range(1 + self._tape.chance(30))]
            text += f".over({', '.join(repr(k) for k in dict.fromkeys(keys))})"
        text = ".fill_null".join((text, *behind))
        name = self._name()
        text = f"{now.text}.with_columns({name}=({text}){'.cast(integer)' if ways[way] is INT else ''})"
        is_ordered = (
            now.is_sorted or ".over" not in text
        )  # else rows come as their plan has them, once they are filtered
        return Chain(text, now.kinds | {name: ways[way]}, is_ordered, now.is_sorted)

    def _unpivot(self, now: Chain) -> Chain:
        on = [n for n, k in now.kinds.items() if k is INT][:3]
        index = [n for n in now.kinds if n not in on][:2]
        if len(on) < 2:
            return now
        name, value = self._name(), self._name()
        text = f"{now.text}.unpivot(on={on}, index={index}, variable_name={name!r}, value_name={value!r})"
        return Chain(text, {n: now.kinds[n] for n in index} | {name: STR, value: INT}, is_ordered=False)

    def _twice(self, now: Chain) -> Chain:
        return replace(now, text=f"p.concat([{now.text}.filter({self._of(now, BOOL, 1)}), {now.text}])")

    # ---- expressions -----------------------------------------------------------------------------------------------

    def _kind(self, held: Kinds | None = None) -> str:
        """A kind; of columns that are there, or a truth, where some are given."""
        return self._tape.one((INT, DBL, STR, BOOL, DAY) if held is None else [BOOL, *held.values()])

    def _name(self) -> str:
        self._made += 1
        return f"n{self._made}"

    def _of(self, now: Chain, kind: str, depth: int, columns: bool = False) -> str:
        """An expression of a kind; one of ``columns`` has a row for each, where a constant would have one."""
        held = [f'p.col("{n}")' for n, k in now.kinds.items() if k is kind]
        assert held or not columns or kind is BOOL
        if columns and not held:
            return f'p.col("{next(iter(now.kinds))}").is_null()'
        if depth == 0 or self._tape.chance(20):
            return self._tape.one(held) if held else self._literal(kind)
        makers: dict[str, Callable[[Chain, int], str]] = {
            INT: self._integer, DBL: self._double, STR: self._string, BOOL: self._truth, DAY: self._day,
        }  # fmt: skip
        made = makers[kind](now, depth - 1)
        return made if not columns or "p.col" in made else self._tape.one(held)

    def _constant(self, kind: str) -> str:
        match kind:
            case "int":
                return str(self._tape.one((0, 1, 2, -3)))
            case "dbl":
                return str(self._tape.one((0.5, 2.0, -1.0)))
            case "str":
                return repr(self._tape.one(_WORDS[1:6]))
            case "bool":
                return str(self._tape.one((True, False)))
            case _:
                return repr(self._tape.one(_DAYS))

    def _literal(self, kind: str) -> str:
        return f"p.lit({self._constant(kind)})"

    def _either(self, now: Chain, kind: str, depth: int) -> str:
        a, b = self._of(now, kind, depth), self._of(now, kind, depth)
        return f"p.when({self._of(now, BOOL, depth)}).then({a}).otherwise({b})"

    def _integer(self, now: Chain, depth: int) -> str:
        a, b = self._of(now, INT, depth), self._of(now, INT, depth)
        shapes = [
            f"({a}).clip(-4, 4)",
            f"({a} + {b})",
            f"({a} - {b})",
            f"(-{a})",
            f"({a}).abs()",
            f"({a}).fill_null({self._constant(INT)})",
        ]
        shapes += [f"({self._of(now, STR, depth)}).str.len_chars().cast(integer)", self._either(now, INT, depth)]
        shapes += [
            f"({self._of(now, DAY, depth)}).dt.{part}().cast(integer)"
            for part in ("month", "day", "weekday", "quarter")
        ]
        shapes += [f"({self._of(now, BOOL, depth)}).cast(integer)"]
        return self._tape.one(shapes)

    def _double(self, now: Chain, depth: int) -> str:
        a, b = self._of(now, DBL, depth), self._of(now, DBL, depth)
        shapes = [f"({a} + {b})", f"({a} * 0.5)", f"({a}).abs().sqrt()", f"({a}).floor()", f"({a}).ceil()"]
        shapes += [
            f"({self._of(now, INT, depth)} / 4)",
            f"({a}).fill_null(0.5)",
            self._either(now, DBL, depth),
            f"({a}).clip(-1.0, 9.5)",
        ]
        return self._tape.one(shapes)

    def _string(self, now: Chain, depth: int) -> str:
        a, b = self._of(now, STR, depth), self._of(now, STR, depth)
        shapes = [
            f"({a}).str.to_uppercase()",
            f"({a}).str.slice(1, 2)",
            f"({a} + {b})",
            f"({a}).str.head(2)",
            f"({a}).str.tail(2)",
        ]
        shapes += [f"({a}).str.strip_chars()", f"({a}).str.replace('a', 'o')", f"({a}).str.replace_all('[ae]', '')"]
        shapes += [
            f"({a}).fill_null('none')",
            f"({a}).str.pad_start(4, '*')",
            f"({a}).str.reverse()",
            self._either(now, STR, depth),
        ]
        return self._tape.one(shapes)

    def _truth(self, now: Chain, depth: int) -> str:
        kind = self._kind()
        a, b = self._of(now, kind, depth), self._of(now, kind, depth)
        compared = self._tape.one(("==", "!=", "<", "<=", ">", ">=")) if kind is not BOOL else "=="
        shapes = [f"({a} {compared} {b})", f"({a}).is_null()", f"({a}).is_not_null()"]
        shapes += [
            f"({self._of(now, INT, depth)}).is_in([0, 1, -3])",
            f"({self._of(now, INT, depth)}).is_between(-2, 2)",
        ]
        shapes += [f"({self._of(now, STR, depth)}).str.{way}('a')" for way in ("contains", "starts_with", "ends_with")]
        shapes += [
            f"(~{self._of(now, BOOL, depth)})",
            f"({self._of(now, BOOL, depth)} {self._tape.one('&|')} {self._of(now, BOOL, depth)})",
        ]
        shapes += [f"({a}).eq_missing({b})"]
        return self._tape.one(shapes)

    def _day(self, now: Chain, depth: int) -> str:
        a = self._of(now, DAY, depth)
        return self._tape.one(
            [
                f"({a}).dt.month_start()",
                f"({a}).dt.month_end()",
                self._either(now, DAY, depth),
                f"({a}).fill_null(p.lit({_DAYS[1]!r}))",
            ]
        )
