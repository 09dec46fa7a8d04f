-- tables: pivots

-- cpu
PIVOT t ON a USING sum(x)

PIVOT t ON a

PIVOT t ON g USING sum(x) GROUP BY a

-- ordered
PIVOT t ON a USING sum(x) AS s, max(x) GROUP BY g ORDER BY g DESC LIMIT 2

-- cpu
PIVOT t ON a || '_' || b USING sum(x) GROUP BY g

PIVOT t ON a IN ('x' AS xx,'y') USING sum(x), count(*) AS c GROUP BY g

-- cpu
PIVOT t ON a IN ('x', NULL) USING sum(x) GROUP BY g

PIVOT t ON a IN (1, 2) USING sum(x) GROUP BY g

PIVOT t ON g IN (1, 2), a IN ('x','y') USING sum(x)

PIVOT t ON g % 2 USING sum(x)

PIVOT t ON a USING sum(x)+1 GROUP BY g

PIVOT t ON a USING sum(DISTINCT x) GROUP BY g

PIVOT t ON a USING first(x) GROUP BY g

-- cpu
FROM t PIVOT (sum(x) AS s, count(*) FOR a IN ('x' AS p,'y' AS q) GROUP BY g)

SELECT p.m FROM t PIVOT (sum(x) FOR a IN ('x','y') GROUP BY g) AS p(k, m, n)

WITH p AS (PIVOT t ON a USING sum(x) GROUP BY g) SELECT * FROM p

PIVOT (SELECT * FROM t WHERE g < 3) ON a USING sum(x) GROUP BY g

PIVOT (SELECT * FROM t WHERE false) ON a IN ('x') USING sum(x) GROUP BY g

PIVOT t JOIN (VALUES (1,'one'),(2,'two')) n(g, w) USING (g) ON w USING sum(x) GROUP BY a

PIVOT t ON a USING count(*), sum(x)

PIVOT t ON g IN ('01', 2) USING sum(x) GROUP BY a

PIVOT t ON g IN (1::BIGINT, CAST('2' AS TINYINT), '1') USING sum(x) GROUP BY a

PIVOT t ON d IN (1.50, 0) USING sum(x) GROUP BY a

-- cpu
PIVOT t ON x USING coalesce(sum(x), 0) GROUP BY g

PIVOT t ON a USING sum(x) GROUP BY a

PIVOT t ON a USING sum(x) GROUP BY g ORDER BY x

SELECT (SELECT max(x) FROM (PIVOT t ON a USING sum(x) GROUP BY g)) q

SELECT * FROM n2 JOIN t PIVOT (sum(x) FOR a IN ('x','y') GROUP BY g) p USING (g)

FROM t PIVOT (sum(x) FOR (a, b) IN (('x',true),('y',false)) GROUP BY g)

FROM t PIVOT (sum(x) FOR lower(a) IN ('x') GROUP BY g)

PIVOT t ON g, a USING count(*) GROUP BY b

PIVOT t ON a IN ('x' AS g) USING sum(x) AS g GROUP BY g

-- cpu
SELECT * FROM (PIVOT t ON a IN ('x','y') USING sum(x) AS s, sum(g) as s GROUP BY g)

UNPIVOT w ON jan, feb INTO NAME m VALUE v

UNPIVOT w ON COLUMNS(* EXCLUDE (k, s)) INTO NAME m VALUE v

UNPIVOT w ON * EXCLUDE (k, s)

UNPIVOT w ON (jan, k), (feb, k) INTO NAME m VALUE v, u

UNPIVOT w ON (jan, k) AS a, (feb, k) AS b INTO NAME m VALUE (v, u)

FROM w UNPIVOT (v FOR m IN (jan, feb))

FROM w UNPIVOT INCLUDE NULLS (v FOR m IN (jan, feb))

FROM w UNPIVOT ((v, u) FOR m IN ((jan, k) AS a, (feb, k)))

-- cpu
FROM w UNPIVOT (v FOR m IN (COLUMNS(* EXCLUDE (k, s))))

FROM w UNPIVOT (v FOR m IN (* EXCLUDE (k,s)))

UNPIVOT w ON jan, feb INTO NAME k VALUE v

UNPIVOT (SELECT 1 a, 2.5 b, 3::bigint c) ON a, b, c

UNPIVOT (SELECT DATE '2020-01-01' a, TIMESTAMP '2020-01-01 10:00:00' b) ON a, b

-- ordered
UNPIVOT w ON jan, feb ORDER BY value DESC LIMIT 2

SELECT m, sum(v) FROM (UNPIVOT w ON jan, feb INTO NAME m VALUE v) GROUP BY m ORDER BY m

-- cpu
UNPIVOT w JOIN n2 ON k = g ON jan, feb

PIVOT (UNPIVOT w ON jan, feb) ON name USING sum(value) GROUP BY s

-- cpu
PIVOT t GROUP BY g

PIVOT dd ON n USING sum(v) GROUP BY d

PIVOT dd ON d IN (DATE '2020-01-01') USING sum(v)

PIVOT dd ON d IN ('2020-01-01'::DATE) USING sum(v)

PIVOT dd ON d IN ('2020-01-01') USING sum(v)

PIVOT dd ON year(d) USING sum(v)

SELECT * FROM n2 CROSS JOIN t PIVOT (sum(x) FOR a IN ('x','y') GROUP BY nm)

SELECT * FROM (n2 JOIN t USING (g)) PIVOT (sum(x) FOR a IN ('x','y') GROUP BY nm)

PIVOT t JOIN n2 ON t.g = n2.g ON nm USING sum(x) GROUP BY a

-- cpu
SELECT * FROM n2 WHERE EXISTS (SELECT 1 FROM t PIVOT (sum(x) FOR a IN ('x','y') GROUP BY g) p WHERE p.g = n2.g AND p.x > 10)

FROM (PIVOT t ON a USING sum(x) GROUP BY g) UNPIVOT (v FOR n IN (x, y, z))

PIVOT t ON a USING count(DISTINCT x) GROUP BY g

PIVOT t ON a USING approx_count_distinct(x) GROUP BY g

-- ordered
(PIVOT t ON a USING sum(x) GROUP BY g) ORDER BY g LIMIT 1

-- ordered
PIVOT t ON a ORDER BY 1 LIMIT 1

PIVOT t ON a IN ('x'), a IN ('y') USING sum(x) GROUP BY g

PIVOT (VALUES (1,'a'),(2,'b')) ON col1 USING sum(col0)

PIVOT t ON CASE WHEN a = 'x' THEN 'one' ELSE 'other' END USING sum(x) GROUP BY b

-- cpu
PIVOT t ON a IN (SELECT DISTINCT a FROM t ORDER BY a DESC) USING sum(x) GROUP BY b

UNPIVOT dd ON v, n INTO NAME a VALUE b

DESCRIBE SELECT g, a AS q FROM t

DESC t

SELECT * FROM (SHOW t)

DESCRIBE VALUES (1)

PIVOT (SELECT a, x FROM t WHERE false) ON a IN ('x') USING sum(x)

PIVOT t ON a IN (x AS y, z) USING sum(x) GROUP BY g

WITH RECURSIVE r(n, a) AS (SELECT 1, 'x' UNION ALL SELECT n+1, 'y' FROM r WHERE n < 3) PIVOT r ON a USING sum(n)

-- cpu
SELECT (SELECT max(x) FROM (PIVOT (SELECT * FROM t WHERE t.g = o.g) ON a IN ('x') USING sum(x)  GROUP BY b)) q FROM t o

-- cpu
PIVOT (SELECT range % 7 AS g, range % 50 AS a, range AS x FROM range(400)) ON a USING sum(x), count(*) AS n GROUP BY g

PIVOT (SELECT range % 3 AS g, (range % 40)::VARCHAR AS a, 'k' || range % 90 AS s FROM range(100)) ON a USING max(s) GROUP BY g

PIVOT (SELECT range % 3 AS g, range % 40 / 2 AS a, range % 5 AS x FROM range(100)) ON a USING avg(x) + 1 GROUP BY g

PIVOT (SELECT range % 3 AS g, range % 30 AS a, range % 5 AS x FROM range(100)) ON a USING median(x) GROUP BY g

PIVOT (SELECT range % 3 AS g, range % 30 AS a, range % 5 AS x FROM range(100)) ON a USING coalesce(sum(x), -1), count(DISTINCT x)

PIVOT t ON a, g, b USING count(DISTINCT x), min(x) GROUP BY d

PIVOT (SELECT range % 30 AS a FROM range(100)) ON a IN (SELECT range FROM range(40)) USING count(*)
