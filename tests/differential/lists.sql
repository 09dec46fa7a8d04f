-- tables: lists

-- cpu
select * from l

-- cpu
select k, len(xs), xs[1], xs[-1], xs[k], ss[2] from l

select xs[2:], xs[:2], xs[-2:], xs[1:3:2], ss[1:1], xs[k:], xs[2:1] from l

-- cpu
select [1, 2, 3], [k, x], [null, k], ['a', s], [[k], []] from l

select k from l where list_contains(xs, 4) or xs[1] = 1

select k, list_contains(xs, x), list_position(xs, 2), list_position(xs, null) from l

-- cpu
select string_split(s, ','), string_split(s, ',')[1], len(string_split(s, ',')) from l

select list_sort(xs), list_sort(ss, 'desc', 'nulls first'), list_reverse(xs), list_sort(ds), list_reverse_sort(ds) from l

select list_sum(xs), list_avg(xs), list_min(ss), list_max(ds), list_min(ds), list_count(xs), list_median(xs), list_product(xs) from l

-- cpu
select list_concat(xs, [k]), list_append(xs, 7), list_prepend(7.5, xs), xs || xs, list_concat(xs, null) from l

select xs = [1, 2, 3], xs <> [5], xs is not distinct from null, xs < [4, null], ds = [2.5, 0.0], xs = ds, xs >= [4] from l

select array_to_string(xs, '-'), array_to_string(ss, '|'), xs::varchar, ss::varchar, ds::varchar, days::varchar from l

select xs::double[], ds::decimal(5, 1)[], ['1', '2']::int[], xs::varchar[], days::timestamp[] from l where k < 5

-- cpu
select coalesce(xs, [0]), case when k < 3 then xs else [k, k] end, case when k > 2 then xs end, coalesce(null, [k]) from l

select range(k), range(1, k), generate_series(k, 1, -1), range(3), range(null) from l

select list_has_any(xs, [1, 5]), list_has_all(xs, [1]), list_unique(xs), list_intersect(xs, [4, 4]) from l

-- cpu
-- ordered
select k, ys, len(ys) from (select k, list_append(xs, k) as ys from l) where k > 1 order by k desc limit 2

-- cpu
select a.k, b.ys, len(b.ys) from l a left join (select k, list_append(xs, k) as ys from l where k > 2) b on a.k = b.k + 1

-- cpu
select xs from l union all select [k] from l union all select [1.5]

select ys, count(*) over () from (select xs as ys from l union all select list_append(xs, 1) from l) where len(ys) > 1

select g, first(ys order by k), count(ys), any_value(ys order by k desc)
from (select k, k % 2 as g, list_append(xs, k) as ys from l) group by g

select typeof(xs), typeof([k]), typeof([[1]]), typeof(['a']) from l

select xs[1:2], [xs, [k]], flatten([xs, [k]]), [[1, 2], [3]][1][2], [[1, null], null] from l

select list_aggregate(xs, 'sum'), list_stddev_samp(xs), list_var_pop(xs), list_mode(xs), list_string_agg(xs), list_any_value(xs),
list_first(xs), list_last(xs), list_bool_and([k > 1, k > 2]) from l

select lag(xs) over (order by k), first_value([k]) over (order by k), last_value(xs) over (order by k) from l

-- cpu
select len(case when k < 3 then xs else [k, k] end), (case when k < 3 then xs else [k, k] end)[1] from l

select distinct len(xs), xs[1] from l

select a.k, b.k from l a join l b on a.xs = b.xs

select a.k, b.k from l a join l b on list_contains(a.xs, b.k)


-- cpu
-- ordered
select list(k), list(xs), array_agg(s), list(k order by k desc), list(s order by s nulls first, k) from l

-- cpu
select k % 2, list(x order by k desc), list(s order by k) filter (where k > 2), count(*), sum(k) from l group by 1

select list(distinct x % 2 order by x % 2), list(distinct s order by s) from l

select list(k), list(xs) from l where k > 99

select k, list(s) from l where k > 99 group by k

-- cpu
select g, len(l), l[1], list_sum(l) from (select k % 2 as g, list(x order by k) as l from l group by 1)

select g, list(l order by g) from (select k % 2 as g, list(x order by k) as l from l group by 1) group by g

-- cpu
select a.k, b.l from l a join (select k % 2 as g, list(x order by k) as l from l group by 1) b on a.k % 2 = b.g

select list(ds[1] order by k), list(days[1] order by k), list(k::decimal(5, 2) order by k), list(k > 2 order by k) from l

select coalesce(list(k) filter (where k > 9), []) from l

select k, list(x) over (partition by k % 2) from l

with w as (select k % 2 as g, list(k order by k) as l from l group by 1) select a.l, b.l from w a, w b where a.g < b.g

select 'abc'[2], 'abcd'[2:3], list_value(), list_value(1, 2), [null], [1]::bigint[], len('ab')

select [], [[]], [null] union all select [1], [['a']], [2.5]

select (select list(k order by k) from l b where b.x = a.x) from l a

select xs is null, count(xs), count(*) from l group by 1

select k from l where (select list(k order by k) from l) = [1, 2, 3, 4, 5, 6]

-- cpu
-- ordered
select * from unnest([1, 2, null])

select u.unnest from unnest([[1], []]) u

select k, y, i from l, unnest(l.xs) with ordinality as u(y, i)

-- cpu
-- ordered
select k, y, i from l left join lateral unnest(xs) with ordinality u(y, i) on true order by k, i

-- cpu
select k, unnest(xs), unnest(ss), unnest(days) from l

-- ordered
select k, unnest(xs) + 1 as y from l order by y, k

select generate_subscripts(xs, 1), k from l

select k % 2, unnest(list(k order by k)) from l group by 1

select distinct unnest(xs) from l

select unnest(null), unnest([])

select k, unnest(xs) from l qualify row_number() over (order by k) > 3

select case when k = 1 then unnest(xs) end, unnest(ds), s from l where k <> 2

-- cpu
select y, count(*), sum(k), list(k order by k) from l, unnest(xs) u(y) group by y having count(*) > 0

select a.y, b.k from (select unnest(xs) as y from l) a join l b on a.y = b.k

select * from range(3) r(i), unnest([i, i + 1]) u(x)

select k, y, z from l, unnest([xs, [k]]) u(y), unnest(y) v(z)

select unnest([xs, null]), k from l

select t.k, u.y from l t cross join unnest(t.xs) as u(y) where u.y > 1 and t.k < 6

select k, d from l, unnest([date '2020-01-01' + k, null]) u(d)

select unnest([k * 1.5, null]), unnest([k > 2]), unnest([s]) from l

select unnest(xs) from l where k > 99

select k from l where k in (select unnest([1, 4]))

select part, count(*) from (select unnest(string_split(s, ',')) as part from l) group by all

with w as (select unnest(xs) as y, k from l) select a.y, b.k from w a left join w b on a.y = b.k

select row_number() over (order by y desc nulls last, k) as r, y from l, unnest(xs) as u(y)

-- cpu
select k, (select sum(y) from unnest(xs) u(y)), exists (select 1 from unnest(xs) u(y) where y > 2) from l

select k, 4 in (select unnest(xs)), (select list(y + k order by y) from unnest(xs) u(y)) from l

select k, (select y from unnest(xs) u(y) order by y desc nulls last limit 1) from l where exists (select 1 from unnest(ss) u(s))

-- cpu
select list_transform(xs, lambda y: y + k), list_filter(xs, lambda y: y > 1), list_transform(ss, lambda w: upper(w)) from l

select list_transform(xs, lambda y, i: y * i), list_filter(xs, lambda y, i: i > 1) from l

select k from l where len(list_filter(xs, lambda y: y > 1)) = 2

select k % 2, list_transform(list(k order by k), lambda y: y + 1) from l group by 1

select xs, list_transform(xs, lambda y: y + 1), list_filter(xs, lambda y: y > 1), [y * 2 for y in xs if y > 0], count(*) from l group by xs

select list_transform(string_split(coalesce(ss[1], 'a-b'), '-'), lambda w: w || 'x'), k from l group by ss, k

select k + 1, list_transform(list(k order by k), lambda y: y + (k + 1)), list_transform([k + 1, 2], lambda y: y * (k + 1)) from l group by k + 1

select xs, list_transform(xs, lambda y: list_transform(xs, lambda z: y + z)), k from l group by k, xs having len(list_filter(xs, lambda y: y > k)) < 9

select list_transform(list_filter(xs, lambda y: y is not null), lambda z: [z, k]) from l

select list_transform([[1, 2], [3], []], lambda a: list_transform(a, lambda b: b + 1)), list_filter([], lambda a: true)

-- cpu
select xs, count(*), sum(k), list(k order by k) from l group by xs

select distinct ds, ss from l

select xs, ss, grouping(xs), count(*) from l group by rollup(xs, ss)

-- cpu
select a.k, b.k from l a left join l b on a.xs = b.xs and a.k <> b.k

select a.k, b.k, xs from l a join l b using (xs)

select a.k from l a where exists (select 1 from l b where b.xs = a.xs and b.k > a.k) or a.xs in (select [5])

select k, (select count(*) from l b where b.xs = a.xs) from l a where xs not in (select xs from l where k < 2)

select xs from l union select [5] union all (select xs from l intersect select [4, null]) union all (select xs from l except all select [1, 2, 3])

-- ordered
select ss, xs from l order by ss desc, xs nulls first

-- ordered
select k from l order by ds nulls first, k limit 4

-- cpu
select k, rank() over (order by xs), count(*) over (partition by ss), min(xs) over (order by k rows 1 preceding), lag(xs) over (order by ds desc) from l

select count(distinct xs), min(xs), max(ds), max(ss), mode(xs order by xs), entropy(xs), quantile_disc(ss, 0.5), arg_min(k, xs), arg_max(ss, ds), arg_min(xs, xs) from l

select k % 2, min(xs), max(distinct ss), count(distinct ds) filter (where k > 2), first(k order by xs), string_agg(s, ';' order by xs desc, k) from l group by 1

select distinct on (ss) k, ss from l order by ss, k

select k from l where xs in ([1, 2, 3], [5]) or xs = any([[4, null]]) or (xs, k) in (([], 2)) or xs between [6] and [7]

select greatest(xs, [4]), least(xs, [4], null), nullif(xs, [5]), hash(xs) = hash([1, 2, 3]), case xs when [5] then 1 else 2 end, xs = ds, xs < ds from l

pivot l on s using count(*) group by xs

select k, [k * x for x in [1, null, 3] if x > 1 or x is null] from l

select [[x + y for y in [10, 20]] for x in [1, 2]], [x for x in range(10) if x % 3 = 0]

select s, [upper(w) for w in string_split(s, 'a')] from l

select k, list_transform(list_transform([1, 2, k], lambda x: x + 1), lambda x: x + k), list_filter(list_filter([1, k], lambda x: x > 0), lambda x: x > k) from l

select k, (select distinct y.xs from l y order by y.xs limit 1), xs in (select xs from l group by xs) from l

select list_concat(list_transform(x.ys, lambda e: e % 3), list_sort(x.ys)) from (select k, cast([k, x] as bigint[]) as ys from l) x

select list_sort(list_distinct(list_transform(y.ts, lambda e: upper(e)))) from (select k from l where k > 1) x
right join (select k % 5 as k, list(s order by s) as ts from l group by 1) y on x.k = y.k

select k, k in xs, k not in xs, 2 in [k, null, 2], xs in [xs], k in map {k: 1}, s in s from (select k, s, [k, null, 2] as xs from l)

-- cpu
select k, x = any(xs), x <> all(xs), x < any(xs), x >= all(xs), x = all(xs), x <> any(xs), x in xs
from (values (1, 1, [1, null]), (2, 2, [1, null]), (3, null, [1]), (4, null, []), (5, 3, null), (6, 4, [3, 5])) v(k, x, xs)

select k from l where k = any([k, 1]::bigint[]) and not (k = any(string_split('1,2', ',')::bigint[])) or k <> all([1, 2, 3])

select s.upper(), s.lower().replace('a', 'b').length() + 1, l.s.left(1), (k + 1).abs(), [3, k].list_sort().list_reverse()[1], concat(s, 'x').upper(),
list_transform([s], lambda x: x.upper()), -k.abs(), s.substring(1, 1) || 'z', main.upper(s) from l

select s.lower() as t, count(*), k.max() from l where s.contains('a') or s.upper() in ['B', 'C'] group by s.lower() having count(*).abs() > 0 order by t.reverse(), 2

select upper((select max(x.s) from l x where x.k <= l.k)).lower(), cast(k as varchar).lpad(3, '0'), case when k > 1 then s end.upper() from l

select k, list_resize(xs, k, k), list_resize([s], 2), list_resize(xs, 1), list_select(xs, [1, k]), list_where(xs, [k > 1, true]), array_push_back(xs, k), xs.array_pop_back(), array_pop_front(xs) from l where k >= 0

select k, unnest(generate_series(date '2024-01-30', date '2024-01-30' + to_days(k % 3), interval 1 day)),
len(range(date '2024-01-31', date '2024-01-31' + to_days(k * 30), interval '1 month')), range(timestamp '2024-01-02 10:00:00', timestamp '2024-01-02', interval '-3 hours 30 minutes')[k] from l where k >= 0

select array(select x from (values (3), (1), (null)) t(x) order by x desc nulls first limit 2), array(select 1 where false), array[1, 2][1], array(from range(3)), array(values (2), (1)), array[]

select k, array(select y.s from l y where y.k <= x.k order by y.s desc, y.k), array(select y.k from l y where y.k = x.k order by y.k limit 1), k = any(array(select y.k from l y)) from l x

-- cpu
select x.k, y.k from l x left join l y on [x.k, y.k] = [1, 2] or list_concat(x.xs, y.xs) = y.xs

-- cpu
select x.k, y.k, y.xs from l x full join l y on x.k = y.k and list_concat([x.k], y.xs) < [3, x.k] and x.k > 1

-- cpu
select x.s, y.k from l x right join l y on {'a': x.k, 'b': y.s} = {'a': y.k, 'b': x.s} and y.k <> 2

select k from l x semi join l y on coalesce(x.xs, y.xs) = y.xs and x.s <> y.s

select k, s from l x anti join l y on encode(concat(x.s, y.s)) = encode(concat(y.s, x.s)) and x.k <> y.k

select k, xs in (select y.xs from l y where list_concat(x.xs, y.xs) > [y.k]), k not in (select y.k from l y where map {y.k: x.k} = map {x.k: y.k}) from l x

select k, (select max(y.k) from l y where [x.s, y.s] < ['b', y.s]), exists (select 1 from l y where len(list_concat(x.xs, y.xs)) = x.k) from l x

select x.k, y.k, z.k from l x left join l y on [x.k, y.k] = [y.k, x.k] left join l z on [y.k, z.k] = [x.k, 1] and decode(encode(z.s)) <> x.s where y.k > 0

SELECT x, x = ANY([e FOR e IN xs]), x > ALL([e FOR e IN xs IF e < x]), x < SOME([e * x FOR e IN xs]), x <> ALL([[e] FOR e IN xs][1]) FROM (VALUES (1, [1, 2]), (5, []), (2, NULL), (NULL, [1]), (3, [NULL])) v(x, xs)

-- cpu
select k, list_transform([k, x, null], (e, i) -> e + i), list_filter([1, 2, k], (e) -> e > 1) from l
