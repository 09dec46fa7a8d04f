-- tables: pivots

SELECT COLUMNS(['x', 'A']) FROM t

SELECT COLUMNS(lambda c: c IN ('x', 'g')), max(COLUMNS(lambda n: upper(n) LIKE 'X%' OR length(n) > 90)) OVER () FROM t

SELECT COLUMNS(c -> c < 'h') FROM t WHERE COLUMNS(lambda c: c = 'x') IS NOT NULL

SELECT max(COLUMNS(['g', 'x'])) FROM t

SELECT COLUMNS(* RENAME (x AS xx)) FROM t

SELECT * ILIKE 'A%' FROM t

SELECT * NOT ILIKE 'A%' FROM t

SELECT * GLOB '[ag]' FROM t

SELECT * RENAME x AS xx FROM t

SELECT * REPLACE x * 2 AS x FROM t

SELECT * EXCLUDE a REPLACE (x + 1 AS x) RENAME (d AS dd) FROM t

SELECT a, x FROM t WHERE a COLLATE NOCASE = 'X'

-- cpu
SELECT a, x FROM t WHERE 'W' COLLATE NOCASE < a

SELECT 'É' COLLATE NOACCENT = 'E', 'É' COLLATE NOCASE.NOACCENT = 'e', 'a' < 'B' COLLATE NOCASE, 'a' = 'A' COLLATE "BINARY"

-- ordered
SELECT v FROM (VALUES ('b'), ('A'), ('a'), ('B'), (NULL)) u(v) ORDER BY v COLLATE NOCASE DESC, v

SELECT rank() OVER (ORDER BY v COLLATE NOCASE), v FROM (VALUES ('b'), ('A'), ('a'), ('B')) u(v)

-- ordered
(SELECT 'b' AS v UNION ALL SELECT 'A') ORDER BY v COLLATE NOCASE

SELECT g, x, sum(x) OVER (ORDER BY g, x ROWS BETWEEN -1 PRECEDING AND 2 FOLLOWING) FROM t

SELECT g, x, sum(x) OVER (ORDER BY g, x ROWS BETWEEN 2 PRECEDING AND -1 FOLLOWING) FROM t

SELECT (g, a) = ROW(1, 'x'), ROW(g, x) < ROW(2, 7) FROM t

SELECT g FROM t WHERE ROW(g, a) IN (SELECT g, 'x' FROM n2)

SELECT g FROM t LIMIT ALL

SELECT * FROM range(1 + 2)

SELECT * FROM range((SELECT max(g) FROM n2), 7, 2)

SELECT * FROM range(NULL)

SELECT * FROM range(3, NULL)

SELECT * FROM range(DATE '2020-01-01', DATE '2020-01-04', INTERVAL 1 DAY)

-- cpu
SELECT * FROM generate_series(TIMESTAMP '2020-01-01', TIMESTAMP '2020-01-02', INTERVAL 6 HOUR) m(hour)

SELECT * FROM generate_series(DATE '2020-01-05', DATE '2020-01-01', INTERVAL (-2) DAY)

SELECT * FROM range(TIMESTAMP '2020-01-31', TIMESTAMP '2020-06-01', INTERVAL 1 MONTH)

SELECT * FROM generate_series((SELECT min(d) FROM dd), (SELECT max(d) FROM dd), INTERVAL '10 days')

SELECT * FROM range(DATE '2020-01-01', NULL, INTERVAL 1 DAY)

SELECT day::DATE AS day, v FROM range(DATE '2020-01-30', DATE '2020-02-03', INTERVAL 1 DAY) r(day) LEFT JOIN dd ON dd.d = day

SELECT * FROM (VALUES (1, ['a', 'b']), (2, ['c']), (3, NULL), (4, [])) v(n, xs)

SELECT ['a'] AS xs FROM t WHERE g > 100

SELECT * FROM (SELECT 'a' AS name, ['x'] AS xs UNION ALL SELECT 'b', ['y']) WHERE name = 'b'

SELECT list_concat(['a'], [a]), list_contains(['a'], a), ['a'] = [a], ['a'][g] FROM t WHERE g > 100
