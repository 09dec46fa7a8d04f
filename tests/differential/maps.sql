-- tables: structs

-- cpu
select map(['a', 'b'], [1, k]), MAP {'x': k, 'y': 2}, MAP {}, map(), map([], []), map_from_entries([('a', k), ('b', 2)]) from r

-- cpu
select m['x'], m['q'], map_extract(m, 'x'), element_at(m, 'q'), m.y, map_contains(m, 'y'), map_contains_value(m, 3) from (select MAP {'x': k, 'y': null} m from r)

select m[1], m[k], m[-1], map_extract_value(m, 2), map_keys(m), map_values(m), map_entries(m), cardinality(m) from (select k, MAP {1: k, 7: 2} m from r)

select MAP {[1]: k}[[1]], MAP {1: [7, 8]}[1][2], (MAP {1: 5, 2: 6})[1], MAP {'a': {'x': k}}['a'].x, map([1], [k])[1], MAP {1: 2}[1.0] from r

select map_concat(MAP {k: 1}, MAP {3: 2, 7: 8}), map_concat(MAP {1: 2}, null), map_extract(null::map(int, int), 1), cardinality(null::map(int, int)), map([1, 2], null) from r

select MAP {'a': k}::varchar, MAP {'a': k}::MAP(varchar, double), MAP {k: s.b}::MAP(varchar, varchar), [MAP {'a': 1}], typeof(MAP {'a': s}) from r

-- cpu
select m, count(*), list(m order by m) from (select MAP {'a': s.a} m from r) group by m

-- ordered
select m, k from (select k, MAP {'a': s.a, 'b': k % 2} m from r) order by m desc, k

select MAP {'a': 1} = MAP {'a': k}, MAP {'a': 1, 'b': 2} = MAP {'b': 2, 'a': 1}, MAP {1: 2} < MAP {1: k}, coalesce(null, MAP {'z': 0}) from r

select MAP {'a': 1} union all select MAP {'a': 2.5} union all select null

select max(m), min(m), count(distinct m) from (select MAP {'a': s.a} m from r)

select unnest(map_entries(MAP {'a': k, 'b': 2})) from r

-- cpu
select k % 2, histogram(s.a), histogram(s.b), histogram(k) filter (where k > 2), histogram(distinct s.b), approx_top_k(s.a, 1) from r group by 1

select histogram(k, [2, 4]), histogram(k, [1, 6, 3]), histogram(t.x, [0, 1]), histogram(s.b, ['x', 'y']), histogram_exact(k, [2, 3]), histogram_exact(s.b, ['q']) from r

select histogram(k), histogram(k, [1]), approx_top_k(k, 3) from r where k > 100

select histogram(k % 2) over (order by k), histogram(s.b) over (partition by k % 2) from r

select histogram(s), approx_top_k(k % 4, 2), list_histogram([1, 1, 2, null]) from r where k < 6

select case when k > 2 then MAP {'a': k} end, case when k > 2 then map([k, 7], [1, s.a]) end, case when k > 4 then map([nullif(k, 2), 3], [1, k]) end, coalesce(MAP {s.a: k}, MAP {}) from r where s.a is not null

select k from r where s.a is not null and cardinality(MAP {s.a: 1, 99: k}) = 2

select k from r where s.a is null or MAP {s.a: 1}[1] = 1
