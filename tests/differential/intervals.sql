-- tables: intervals

-- cpu
select id, x, d, x::varchar, d::varchar from t

-- cpu
select x::varchar, count(*), sum(id) from t group by x

select d::varchar, count(*) from t group by d

-- ordered
select x::varchar, id from t order by x, id

-- ordered
select id, x from t order by x desc nulls first, id limit 7

-- ordered
select id, d from t order by d nulls first, id desc

select x::varchar from (select distinct x from t)

-- ordered
select distinct on (x) x::varchar, id from t order by x, id

-- cpu
select g, min(x)::varchar, max(x)::varchar, count(x), count(distinct x), first(x)::varchar, last(x)::varchar, any_value(x)::varchar from t group by g

select min(d), max(d), count(distinct d), min(x)::varchar, max(x)::varchar, median(d), mode(d) from t

select g, mode(x)::varchar, quantile_disc(x, 0.3) = interval 0 day from t group by g

select g, arg_min(id, x), arg_max(id, x), arg_min(x, id)::varchar, max_by(x, id)::varchar, arg_max_null(x, id)::varchar from t group by g

select g, entropy(x), max(x) filter (where id > 20)::varchar, string_agg(x, '|' order by x desc, id) from t group by g

select min(x), max(x), any_value(x), median(x), mode(x), count(x) from empty

-- cpu
select t.id, u.n, x::varchar, y::varchar from t join u on x = y

select t.id, u.n from t left join u on x = y and u.n > 3

select t.id, u.n, x::varchar, y::varchar from t full join u on x = y

select id, x::varchar from t join (select y x, n from u) using (x)

select t.id, u.n from t join u on x < y and t.id > u.n * 3

select id from t where x in (select y from u)

select id from t where x not in (select y from u where y is not null)

select id from t where not exists (select 1 from u where y = x)

select id, (select sum(n) from u where y <= x), (select max(y)::varchar from u where y <= x) from t

select id from t where x > (select min(y) from u)

-- cpu
select id from t where x in (interval '1 month', interval '1 day') or d = interval 1 hour

select id from t where x in (interval '1 month', interval '1 day', null)

select id from t where x between '1 day' and interval 40 days

select id, x is distinct from interval 1 day, x = d, x < d, (x, id) < (d, 5) from t

select normalized_interval(y)::varchar from (select x y from t union select y from u)

select x::varchar from (select x from t intersect select y from u)

select x::varchar from (select x from t except select y from u)

select count(*) from (select x from t intersect all select y from u)

select count(*), count(y) from (select x y from t union all select y from u)

-- cpu
select id, least(x, d)::varchar, greatest(x, d, interval '30 days')::varchar, nullif(x, interval '30 days')::varchar, coalesce(x, d, interval 5 day)::varchar from t

select id, case when id % 3 = 0 then x when id % 3 = 1 then d end::varchar, if(id > 10, x, '2 days')::varchar from t

select g, x::varchar, count(*) from t group by rollup (g, x)

select g, count(*), max(x)::varchar from t group by cube (g, d)

-- cpu
select id, (x * 2)::varchar, (x * 1.37)::varchar, (x / 7)::varchar, (x / 0)::varchar, (-x)::varchar, (0.5 * d)::varchar, (x + d)::varchar, (x - d)::varchar from t

-- cpu
select id, ts + x, ts - x, day + d, day - x, ts - day::timestamp, (ts - day)::varchar from t

-- cpu
select id, age(ts, day)::varchar, age(day, ts)::varchar, age(day, day + interval 1 month)::varchar from t

select id, year(x), month(x), day(x), hour(x), minute(x), second(x), millisecond(x), microsecond(x), quarter(x), decade(x), century(x), millennium(x) from t

select id, epoch(x), epoch_ms(x), epoch_us(x), date_part('day', d), extract(hour from d), normalized_interval(x)::varchar from t

select id, date_trunc('month', x)::varchar, date_trunc('week', x)::varchar, date_trunc('day', x)::varchar, date_trunc('hour', x)::varchar, date_trunc('year', x)::varchar, date_trunc('quarter', x)::varchar, date_trunc('millisecond', x)::varchar from t

select id, time_bucket(interval '1 month', ts), time_bucket(interval '2 weeks', day), time_bucket(interval '5 months', day), time_bucket(interval '1 year', ts), time_bucket(d, ts) from t where d > interval 0 day

select id, lag(x) over (order by id)::varchar, lead(x, 2, interval 9 days) over (order by id)::varchar, first_value(x) over (partition by g order by id)::varchar, nth_value(x, 2) over (order by id)::varchar from t

select id, row_number() over (partition by x order by id), rank() over (order by x), dense_rank() over (order by x desc, d), count(*) over (partition by d) from t

-- cpu
select id, min(x) over (order by id rows between 2 preceding and 1 following) = max(x) over (order by id rows between 2 preceding and 1 following), count(distinct x) over (partition by g order by id) from t

select id, max(x) over (order by id)::varchar, min(x) over (partition by g)::varchar, arg_max(id, d) over (partition by g order by id) from t where x is not null and d is not null

-- ordered
select id, x::varchar from t qualify row_number() over (partition by g order by x desc nulls last, id) = 1 order by id

-- ordered
with recursive r(x, n) as (select interval 1 day, 1 union select x + interval 1 day, n + 1 from r where n < 5) select x, n from r order by x

with recursive r(x) as (select interval 30 days union select case when x = interval 30 days then interval 1 month else x end from r) select x::varchar from r

select sum(epoch(x)), avg(epoch(d)) from t

select typeof(x), typeof(d), typeof(x * 2), typeof(x / 2), typeof(ts - ts), typeof(age(day, day)) from t where id = 0

select try_cast(g as interval), (id || ' days')::interval, ('-' || id || ' hours')::interval::varchar from t

select id, median(d) over (order by id rows 3 preceding), hash(x) = hash(x + interval 0 day) from t

-- cpu
select id, count(*) over (order by x range between interval 1 day preceding and interval 30 day following), sum(id) over (partition by g order by x desc nulls first range between current row and interval 1 month following) from t

select id, count(*) over (order by d range between unbounded preceding and interval 1 hour following), count(*) over (order by day range between to_days(id * 20) preceding and interval 400 day following), count(*) over (partition by g order by ts desc range between to_months(id) preceding and d following) from t where d is not null and d >= interval 0 day

select g, median(distinct x) = interval 0 day, quantile_disc(distinct x, 0.9)::varchar from t where id < 9 group by g

select id, case when id < 3 then x else (select distinct z.x from t z order by z.x limit 1) end from t

select id from t where x in (select distinct x from t group by x, id having id < 4) or x > (select x from t group by x order by x nulls first offset 1 limit 1)

select (select x from t group by rollup (x) order by x desc nulls last limit 1), exists (select x from t group by cube (x, d)), x = any (select x from t group by grouping sets ((x), ())) from t

select id, interval 0 day * id, interval '0 day' * n, n * to_days(0), interval 0 month / n, to_days(n) * 0, interval 0 day * (n / 2) from (select id, try_cast(id * 60 as tinyint) as n from t)

select w, d, y, id from (select x::interval w, cast(x as interval) d, null::interval y, id from t)

select try_cast('x' as interval) s, x::varchar::interval h, interval '3' m, interval '1 day' "w", x::"interval" ms, id from t order by h, id
