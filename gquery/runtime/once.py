"""What is made once for each argument, though threads ask for it at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from functools import wraps
from typing import ParamSpec, TypeVar

from gquery.runtime.forking import free_in_child

P = ParamSpec("P")
T = TypeVar("T")


def once(make: Callable[P, T]) -> Callable[P, T]:
    """``make``, whose values are kept for ever, one for each choice of arguments by position. As `functools.cache`, but that two
    threads which ask at once get the same value: where it owns memory of a GPU, that of a second one would be freed while kernels
    read it.

    >>> @once
    ... def numbers(n):
    ...     return list(range(n))
    >>> numbers(2) is numbers(2), numbers(3)
    (True, [0, 1, 2])
    """
    made: dict[Hashable, T] = {}
    making = free_in_child(threading.RLock())

    @wraps(make)
    def found(*args: P.args, **kwargs: P.kwargs) -> T:
        if args not in made:
            with making:
                if args not in made:
                    made[args] = make(*args, **kwargs)
        return made[args]

    return found
