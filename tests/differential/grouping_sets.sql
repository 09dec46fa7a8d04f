-- tables: shared

-- cpu
select x, w, sum(y), count(*), grouping(x, w), grouping_id(w) from t group by rollup(x, w)

-- cpu
select x, w, min(y), max(w), avg(y), avg(x * 0.5), avg(y / 2), count(y) from t group by cube(x, w)

select x, w, sum(y), count(*), grouping(x) from t where false group by rollup(x, w)

select sum(y), count(*), grouping_id(x) from t where false group by grouping sets ((), (x), ())

select sum(y) from t where false group by cube(x, w)

select x, count(*) from t where false group by grouping sets ((x))

select x + 1, w, count(*) from t group by rollup(1, 2)

select x as k, y % 2 as p, count(*), grouping(k, p) from t group by cube(k, p)

select x, w, y % 20 as p, count(*) from t group by x, rollup(w), cube(p)

select x, w, y, count(*) from t group by rollup((x, w), y)

-- cpu
select x, w, count(*) from t group by grouping sets (x, (w), rollup(x, w), cube(x), grouping sets ((x, w), ()))

select x, x, count(*) from t group by grouping sets ((x, x), (x))

select x, w, count(*), grouping(x, w) from t group by grouping sets ((x, w), (w, x), w, w, (), ())

select x, count(*) from t group by rollup(x, x)

select x, w from t group by rollup(x), rollup(w)

select x, count(*) from t group by x, grouping sets (w, ())

select x, count(*) from t group by rollup(x) having grouping(x) = 1 or count(*) > 1

-- ordered
select x, w, sum(y) from t group by rollup(x, w) order by grouping(x, w), x desc nulls last, w nulls first limit 9

-- cpu
select x, w, count(distinct y), sum(y), sum(distinct y) from t group by cube(x, w)

select x, count(*) filter (where w = 'a') as n, sum(y) filter (where w = 'a') from t group by rollup(x)

select x, w, any_value(y) is null, bool_and(y > 10), bool_or(y > 30) from t group by rollup(x, w)

select x, w, stddev_pop(y), count(*) from t group by rollup(x, w)

select distinct grouping(x) from t group by cube(x, w)

select x, case when x is null then 1 else 2 end as c, sum(x) from t group by rollup(x)

select x, (select count(*) from s where s.x = t.x) as n from t group by rollup(x)

select s.x, (select sum(n) from (select t.x, count(*) as n from t where t.y > s.x group by rollup(t.x)) u) as m from s

select s.x, (select sum(n) from (select count(distinct w) as n from t where t.y > s.x group by cube(t.x, w)) u) as m from s

with u as (select x, w, count(*) n from t group by rollup(x, w)) select * from u a join u b on a.x = b.x and a.n < b.n

select * from (select x, w, count(*) n, grouping(w) g from t group by rollup(x, w)) where x = 3 and g = 1

select x from t group by rollup(x) union all select x from s group by cube(x, z)

-- cpu
select x, w, y % 2 as p, y % 3 as q, y // 10 as r, count(*), avg(y), grouping(x, w, p, q, r) from t group by cube(x, w, p, q, r)

select x, w, y % 2 as p, y % 3 as q, count(distinct y), grouping(x, w, p, q) from t group by cube(x, w, p, q)

-- cpu
select x, w, y % 2 as p, count(*), min(w), grouping(x, w, p) from t group by rollup(x, w), cube(p), grouping sets (x, x, w, ())

select count(*) from t group by ()

select count(*), sum(y) from t where false group by ()

select x, w, count(*), grouping(x, w) from t group by x, w

-- cpu
select a.x, b.z, count(*), sum(y) from t a left join s b using (x) group by rollup(a.x, b.z)

select case when x > 2 then w end as k, count(*) from t group by k

-- cpu
select x, w, median(y) m, quantile_cont(y, 0.3) q, first(w) f, last(y) l, string_agg(w, '-') s from t group by rollup(x, w)

select x, w, string_agg(w, ',' order by y desc) s, arg_max(w, y) a, mode(w) m, stddev_samp(y) d from t group by cube(x, w)

select x, w, y % 2 p, y // 10 r, string_agg(w, '+') s, median(y) m, count(distinct w) c from t group by cube(x, w, p, r)

select x, sum(count(*)) over (partition by grouping(x)) n, rank() over (partition by grouping(x) order by sum(y)) r from t group by
rollup(x)

select coalesce(i, -1), ifnull(i + 1, 7), sign(i), (i, 1) < (2, 0), (2, 0) < (i, 1), count(*) from range(5) r(i) group by rollup(i)

select 5 c, max(y) m from t where y > 1000 group by all

select 5 c, 'a' d from t group by all

select 5 c, row_number() over () n from t group by all

select 5 c, c + 1 d, (select max(y) from t) e, count(*) n from t where y > 1000 group by all

select w c, c || 'a' d, count(*) n from t where y > 1000 group by all

select (select max(u.y) from t u where u.w = t.w) m, count(*) n from t group by all

select 5 c from t group by all having count(*) > 1

select x c0, x c1, count(*) n, grouping(x) g from t group by cube(1, 2)

select x c0, x c1, count(*) n from t group by c0, rollup(c0, c1)

select x c0, x c1, count(*) n from t group by grouping sets((1), (2), (x))

select try_cast(x as integer) c0, x c1, count(*) n, grouping(try_cast(x as integer)) g, grouping(x) h from t group by rollup(1, 2)

select x + 1 c0, x + 1 c1, count(*) n, grouping(x + 1) g from t group by rollup(1, 2) having count(*) > 1 order by c0, c1, n

select x c0, x c1, sum(count(*)) over (partition by c1) n from t group by cube(1, 2)

select x c0, cast(x as bigint) c1, grouping_id(x) g, grouping(cast(x as bigint)) h, count(*) n from t group by cube(1, 2)

select try_cast(false as bigint) as z, grouping(x), grouping_id(x, w), count(*) from t group by grouping sets ((z, x), (x, w), ())

select 4294967296 as big, 1::bigint as one, grouping(x, w, one, big) from t group by cube(x, w, big, one)
