"""How long a query of 100 rows takes that was never seen before, and what comes before it.

    python benchmarks/latency.py [python] [cpu] [cuda]

Each device has a process of its own: importing gquery, connecting (which imports the engine), the first query, and 20 more,
each of another shape and so planned from its text, with nothing compiled for it. Times are from the text to Python rows.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from typing import Any

FIRST = "SELECT kind, count(*), sum(amount) FROM orders WHERE amount > 10 GROUP BY kind"
UNSEEN = (
    "SELECT id, amount * 2 FROM orders WHERE id % 7 = 3",
    "SELECT name FROM people WHERE name LIKE '%7%' ORDER BY name",
    "SELECT count(*) FROM orders JOIN people ON orders.person = people.id",
    "SELECT name, sum(amount) FROM orders JOIN people ON person = people.id GROUP BY name ORDER BY 2 DESC LIMIT 5",
    "SELECT kind, avg(price), min(day), max(day) FROM orders GROUP BY kind HAVING count(*) > 3 ORDER BY kind",
    "SELECT count(DISTINCT person) FROM orders WHERE day >= DATE '2024-02-01'",
    "SELECT name FROM people WHERE EXISTS (SELECT 1 FROM orders WHERE person = people.id AND amount > 90)",
    "SELECT name FROM people WHERE id NOT IN (SELECT person FROM orders WHERE amount < 50)",
    "SELECT id, (SELECT max(amount) FROM orders AS o WHERE o.person = people.id) FROM people",
    "SELECT kind, sum(CASE WHEN price > 20 THEN amount ELSE 0 END) FROM orders GROUP BY kind",
    "SELECT extract(year FROM day) AS y, extract(month FROM day) AS m, sum(price) FROM orders GROUP BY y, m ORDER BY y, m",
    "SELECT people.name, orders.id FROM people LEFT JOIN orders ON person = people.id AND amount > 95",
    "WITH t AS (SELECT person, sum(amount) AS s FROM orders GROUP BY person) SELECT name, s FROM t JOIN people ON id = person",
    "SELECT kind || '-' || name FROM orders JOIN people ON person = people.id WHERE amount BETWEEN 20 AND 30",
    "SELECT id FROM orders WHERE amount > (SELECT avg(amount) FROM orders) ORDER BY price DESC, id LIMIT 10 OFFSET 3",
    "SELECT kind, person, count(*) FROM orders GROUP BY kind, person ORDER BY 3 DESC, 1, 2",
    "SELECT 'a', id FROM people UNION ALL SELECT kind, id FROM orders",
    "SELECT a.id, b.id FROM orders AS a, orders AS b WHERE a.person = b.person AND a.amount < b.amount AND a.kind = b.kind",
    "SELECT coalesce(nullif(kind, 'b'), 'none') AS k, sum(price * (1 - amount / 100.0)) FROM orders GROUP BY k",
    "SELECT substring(name, 1, 3) AS s, count(*) FROM people GROUP BY s ORDER BY s",
)


def one_device(device: str) -> dict[str, Any]:
    """The times of one device in this process, in milliseconds."""
    start = time.perf_counter()
    import gquery

    imported = time.perf_counter()
    connection = gquery.connect(device=device)
    connected = time.perf_counter()
    import datetime

    import pyarrow as pa

    days = [datetime.date(2024, 1, 1) + datetime.timedelta(i) for i in range(100)]
    connection.register("people", pa.table({"id": range(100), "name": [f"name {i}" for i in range(100)]}))
    orders = {"id": range(100), "person": [i * 37 % 50 for i in range(100)], "kind": [("a", "b", "c")[i % 3] for i in range(100)],
              "amount": [i * 13 % 101 for i in range(100)], "price": [i / 3 for i in range(100)], "day": days}  # fmt: skip
    connection.register("orders", pa.table(orders))

    def answer(sql: str) -> float:
        start = time.perf_counter()
        connection.sql(sql).fetchall()
        return (time.perf_counter() - start) * 1e3

    first = answer(FIRST)
    unseen = [answer(sql) for sql in UNSEEN]
    again = [answer(sql) for sql in UNSEEN]
    slowest = UNSEEN[unseen.index(max(unseen))]
    return {
        "import": (imported - start) * 1e3, "connect": (connected - imported) * 1e3, "first": first,
        "median": statistics.median(unseen), "max": max(unseen), "again": statistics.median(again), "slowest": slowest,
    }  # fmt: skip


def main() -> None:
    if sys.argv[1:2] == ["--in-process"]:
        print(json.dumps(one_device(sys.argv[2])))
        return
    names = ("import", "connect", "first", "median", "max", "again")
    print(f"{'ms':8}" + "".join(f"{name:>10}" for name in names))
    for device in sys.argv[1:] or ["python", "cpu"]:
        command = [sys.executable, __file__, "--in-process", device]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found = json.loads(done.stdout.splitlines()[-1])
        print(f"{device:8}" + "".join(f"{found[name]:10.1f}" for name in names) + f"   slowest: {found['slowest']}")


if __name__ == "__main__":
    main()
