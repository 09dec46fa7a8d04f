"""What is made once, by threads that ask at the same time."""

from __future__ import annotations

import threading

from gquery.runtime.once import once


def test_threads_that_ask_at_once_get_the_same() -> None:
    begin = threading.Barrier(8)
    made: list[object] = []
    got: list[object] = []

    @once
    def thing(key: int) -> object:
        made.append(object())
        threading.Event().wait(0.01)  # others come meanwhile
        return made[-1]

    def ask() -> None:
        begin.wait()
        got.append(thing(1))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1
    assert all(found is made[0] for found in got)
    assert thing(2) is not thing(1)


def test_what_fails_is_made_again() -> None:
    calls: list[int] = []

    @once
    def thing() -> int:
        calls.append(1)
        return 1 // (len(calls) - 1)

    for _ in range(2):
        try:
            found = thing()
        except ZeroDivisionError:
            found = 0
    assert (found, len(calls)) == (1, 2)
