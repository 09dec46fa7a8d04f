-- tables: all_types

-- cpu
select id, row_number() over (order by id desc) from t

-- cpu
select id, row_number() over (partition by s order by i32, id), rank() over (partition by s order by n), dense_rank() over (partition by s order by n) from t

select id, percent_rank() over (partition by n order by i8), cume_dist() over (partition by n order by i8) from t

select id, ntile(4) over (order by id), ntile(200) over (partition by n order by id), ntile(n + 1) over (order by id) from t

select id, rank() over (order by s nulls first, n desc), rank() over (order by s desc nulls last, n) from t

select id, rank() over (order by f64), rank() over (order by f32 desc nulls first), rank() over (order by d38), rank() over (order by day), rank() over (order by moment), rank() over (order by flag) from t

select count(*) over (), row_number() over () > 0 from t

select id, rank() over (), dense_rank() over (partition by n), percent_rank() over (), cume_dist() over () from t

-- cpu
select id, lag(i32) over (order by id), lead(i32) over (order by id), lag(s, 2) over (partition by n order by id), lead(w, 3) over (partition by n order by id) from t

select id, lag(i32, 1, -7) over (partition by n order by id), lead(s, 1, 'none') over (partition by n order by id), lag(n, 2, i32) over (order by id), lead(n, 1, 99) over (order by id) from t

select id, lag(i32, n) over (order by id), lead(i32, n - 3) over (order by id), lag(i32, 0) over (order by id), lag(i32, -1) over (order by id), lag(i32, null) over (order by id), lag(i32, 1000) over (order by id) from t

select id, lag(i32 ignore nulls) over (order by id), lead(s, 2 ignore nulls) over (partition by n order by id), lag(f64, 1, 0.5 ignore nulls) over (order by id), lag(i32 respect nulls) over (order by id) from t

select id, lag(d38) over (order by id), lag(day) over (order by id), lag(moment) over (order by id), lag(flag) over (order by id), lag(u64) over (order by id), lag(f32) over (order by id), lag('x') over (order by id), lag(null) over (order by id) from t

-- cpu
select id, first_value(w) over (partition by s order by id), last_value(w) over (partition by s order by id), nth_value(i32, 2) over (partition by s order by id), first(n) over (order by id), last(n) over (order by n) from t

select id, first_value(i32 ignore nulls) over (partition by n order by id), last_value(s ignore nulls) over (partition by n order by id), nth_value(i32, 3 ignore nulls) over (partition by n order by id), any_value(i32) over (partition by n order by id) from t

select id, first_value(i32) over (order by id rows between 3 preceding and 1 preceding), last_value(i32) over (order by id rows between 1 following and 2 following), nth_value(i32, n) over (order by id rows between unbounded preceding and unbounded following) from t

-- cpu
select id, sum(i32) over (partition by s order by id), count(i32) over (partition by s order by id), avg(i32) over (partition by s order by id), min(i32) over (partition by s order by id), max(i32) over (partition by s order by id) from t

select id, sum(i32) over (order by n), count(*) over (order by n), avg(f64) over (order by n), min(w) over (order by n), max(w) over (order by n) from t

select id, sum(n) over (partition by s), count(s) over (partition by s), min(day) over (partition by s), max(moment) over (partition by s), avg(d9) over (partition by s), sum(d18) over (partition by s), sum(d38) over (partition by s) from t

select id, sum(flag) over (order by id), count_if(flag) over (order by id), bool_and(flag) over (order by id), bool_or(flag) over (partition by n order by id) from t

select id, sum(u64) over (order by id), sum(i8) over (order by id), min(u8) over (order by id desc), max(d38) over (order by id), min(d38) over (partition by n order by id), min(f64) over (order by id), max(f32) over (order by id) from t

select id, sum(i32) filter (where flag) over (order by id), count(*) filter (where n > 3) over (partition by s), avg(f64) filter (where i32 > 0) over (order by n), min(w) filter (where flag) over (order by id) from t

-- cpu
select id, sum(i32) over (order by id rows between 2 preceding and current row), sum(i32) over (order by id rows between 2 preceding and 1 following), sum(i32) over (order by id rows between current row and unbounded following), sum(i32) over (order by id rows 3 preceding) from t

select id, avg(f64) over (order by id rows between 5 preceding and 2 preceding), count(f64) over (order by id rows between 2 following and 5 following), min(f64) over (order by id rows between 4 preceding and 4 following), max(w) over (order by id rows between 1 preceding and 1 following) from t

select id, sum(i32) over (order by id rows between n preceding and n following), max(i32) over (partition by s order by id rows between n + 1 preceding and n preceding) from t

select id, sum(i32) over (order by n groups between 1 preceding and current row), count(*) over (order by n groups between 1 following and 2 following), min(i32) over (order by n desc groups between unbounded preceding and 1 preceding), count(*) over (groups 1 preceding) from t

-- cpu
select id, sum(i32) over (order by n range between 1 preceding and 1 following), count(*) over (order by i32 range between 10 preceding and 5 preceding), count(*) over (order by i32 desc range between 10 preceding and 10 following), count(*) over (order by i32 nulls first range between unbounded preceding and 3 following) from t

select id, count(*) over (order by f64 range between 1.5 preceding and 0.5 following), count(*) over (order by d9 range between 100 preceding and current row), count(*) over (order by n range between 1.5 preceding and 0.5 following) from t

select id, count(*) over (order by day range between interval 1 year preceding and interval 6 months following), count(*) over (order by moment range between interval 400 days preceding and current row), count(*) over (order by day desc range between 1000 preceding and 10 following) from t

select id, count(*) over (order by n range between n preceding and current row), sum(i32) over (partition by s order by day range between interval 3 years preceding and interval 1 day following) from t

select id, sum(i32) over (order by n, id rows between 2 preceding and 2 following exclude current row), count(*) over (order by n rows between unbounded preceding and unbounded following exclude group), count(*) over (order by n rows between unbounded preceding and unbounded following exclude ties), count(*) over (order by n range between 1 preceding and 1 following exclude group), sum(n) over (order by n groups between 1 preceding and 1 following exclude ties) from (select id, n, i32 from t) as t(id, n, i32)

select id, sum(i32) over (order by id rows between unbounded preceding and current row exclude current row), min(i32) over (order by id rows between 3 preceding and 3 following exclude current row), first_value(i32) over (order by id rows between 1 preceding and 1 following exclude current row), last_value(i32) over (order by n, id groups between 1 preceding and 1 following exclude group) from t

select id, sum(i32) over w, rank() over w, max(n) over (w rows 1 preceding), count(*) over v from t window w as (partition by s order by id), v as (x order by n), x as (partition by flag)

select id, row_number() over (partition by n order by id) r from t qualify r <= 2

-- cpu
select id, n, s from t qualify row_number() over (partition by n, s order by id desc) = 1

select n, sum(i32) from t group by n having count(*) > 3 qualify rank() over (order by sum(i32) desc) < 4

-- cpu
select s, n, sum(i32), rank() over (partition by s order by sum(i32) desc, n), sum(sum(i32)) over (partition by s), sum(i32) * 100.0 / nullif(sum(sum(i32)) over (), 0), count(*) over () from t group by s, n

select s, max(n) - lag(max(n)) over (order by s), avg(count(*)) over (order by s rows between unbounded preceding and current row) from t group by s

select count(*) over (), sum(i32) from t

select distinct s, count(*) over (partition by s), first_value(n) over (partition by s order by id) from t

-- ordered
select id, i32 from t order by rank() over (order by i32 desc nulls last), id limit 20

-- ordered
select id, row_number() over (order by w, id) as r from t order by r desc limit 7

select r, count(*) from (select rank() over (partition by s order by n) as r from t) group by r

select a.id, a.r, b.r from (select id, row_number() over (order by w, id) r from t) a join (select id, row_number() over (order by id desc) r from t) b on a.r = b.r

select id from t where i32 > (select avg(x) from (select lag(i32) over (order by id) x from t))

select id, (select max(r) from (select row_number() over (order by u.id) r, u.n from t u where u.n = t.n)) from t

select id, (select sum(x) from (select sum(u.i32) over (order by u.id rows 2 preceding) x from dense u where u.n < t.n)) from t

select id, (select r from (select u.id, rank() over (order by u.i32, u.id) r from t u where u.n = t.n) q where q.id = t.id) from t

select id from t where exists (select 1 from (select rank() over (order by u.w, u.id) r, u.id from t u where u.s = t.s) q where q.r = 2 and q.id = t.id)

with w as (select id, n, row_number() over (partition by n order by id) r from t) select a.id, b.id from w a join w b on a.n = b.n and a.r = b.r + 1

select * exclude (i8) from (select *, row_number() over (order by id) as r from t) where r between 5 and 8

select id, sum(sum) over (order by id) from (select id, sum(i32) over (order by id rows 1 preceding) as sum from t)

select id, case when rank() over (order by n) > 50 then lag(w) over (order by id) else upper(w) end from t

select id, sum(case when flag then i32 end) over (partition by n % 2 order by id), max(upper(w)) over (partition by lower(s) order by id), lag(w || 'x') over (order by id) from t

select id, count(*) over (partition by s, n, flag), count(*) over (partition by f64), count(*) over (partition by w order by d38), count(*) over (partition by day, moment) from t

select row_number() over (order by id), sum(i32) over (partition by s), lag(w) over (order by id), first_value(n) over () from empty

select row_number() over (order by id), sum(i32) over (partition by s), lag(w) over (order by id), ntile(3) over (), percent_rank() over (order by s), cume_dist() over () from one

select sum(i32) over (), min(s) over (), count(w) over (partition by day), lag(f64, 1, 2.5) over (), rank() over (order by d38), bool_and(flag) over (), avg(u8) over (order by id rows 1 preceding) from nulls

select s, row_number() over (order by s) from (values ('b'), ('a'), (null)) v(s)

select x, sum(x) over (order by x) from range(10) v(x)

select x, y, sum(x) over (partition by y order by x desc) from (select x, x % 3 as y from range(50) v(x) union all select 1, 7)

select id, row_number() over (order by n, id) + sum(n) over (order by n, id), row_number() over (order by n, id) from t where n > 2

select n, rank() over (order by count(distinct s)), sum(count(*)) over (order by n) from t group by n

select id from t where n in (select rank() over (order by id) from t)

(select id, rank() over (order by n) from t) union all (select id, row_number() over (order by id) from dense)

select id, sum(n) over (partition by 1 order by 2, id), sum(n) over (order by 'x'), rank() over (partition by n order by n) from t

select id, sum(distinct n) over (order by id), count(distinct s) over (partition by n), avg(distinct n) over (order by id), count(distinct n) over (order by id rows between 3 preceding and current row) from t

-- cpu
select id, sum(i32) over (partition by s), avg(f64) over (partition by n, flag), count(*) over () from t where i32 > -50

select id, stddev(n) over (partition by s), var_pop(i32) over (), corr(n, i32) over (partition by flag), count(distinct w) over (partition by s), sum(distinct n) filter (where flag) over (partition by n % 3) from t

select id, row_number() over (partition by s order by id), max(n) over (partition by s order by id rows between unbounded preceding and unbounded following), stddev(n) over (partition by s), sum(i32) over (partition by s, n) from t

select s, sum(n), sum(sum(n)) over (), sum(n) * 100.0 / sum(sum(n)) over (partition by s is null), avg(sum(n)) over (partition by length(s)) from t group by s

select id, c, m from (select id, n, i32, count(*) over (partition by n) c, max(i32) over (partition by n) m from t) where n = 2 and i32 > 0

select a.id, sum(b.i32) over (partition by a.s), count(b.id) over (partition by b.n) from t a left join dense b on a.i32 = b.i32 and b.flag

select id, x, sum(x) over (partition by n), min(x) over () from (select id, n, rank() over (partition by s order by id) x from t) where n > 1

select count(*) over (partition by n), sum(n) over () from (select * from t order by id limit 13)

select sum(i32) over (partition by f64), max(w) over (partition by d38), min(s) over () from empty

-- cpu
select id, median(i32) over (partition by s), string_agg(w, ',' order by id) over (partition by n), arg_max(s, id) over (partition by flag), any_value(i32 order by id desc) over (partition by s) from t

select id, string_agg(w, '-') over (partition by n order by id desc rows between unbounded preceding and unbounded following), first_value(i32 order by id desc) over (partition by s), row_number(order by w, id) over (partition by n), lag(s order by id desc) over (), nth_value(i32, 2 order by id) over (partition by flag) from t

select s, n, sum(i32), rank() over (partition by grouping(s), grouping(n) order by sum(i32) desc nulls last, s, n) from t group by rollup (s, n)

select s, count(*), sum(count(*)) over (), row_number() over (order by s nulls first) from t group by cube (s) qualify row_number() over (order by s nulls first) > 1

select id, first_value(i32 order by w, id) over (partition by s order by id), last_value(w order by i32 desc nulls last, id) over (order by id rows between 3 preceding and 2 following), first_value(i32 order by id desc ignore nulls) over (partition by n order by id), any_value(n order by w, id) over (order by id rows 4 preceding) from t

select id, last_value(i32 order by w, id) over (order by n range between 1 preceding and 1 following exclude ties), first(s order by i32 nulls first, id) over (partition by flag order by id groups between 1 preceding and current row) from t

-- cpu
select id, median(i32) over (order by id rows 5 preceding), quantile_disc(s, 0.25) over (partition by n order by id rows between 3 preceding and 2 following), median(f64) filter (where flag) over (order by n range between 1 preceding and current row), quantile_cont(i32, 0.9) over (order by id rows between 4 preceding and 4 following exclude group) from t

select id, nth_value(i32, 2 order by w, id) over (partition by s order by id), nth_value(w, n order by i32 desc, id) over (order by id rows between 3 preceding and 2 following), count(distinct n) over (order by id rows between 6 preceding and 1 preceding), sum(distinct i32) over (partition by flag order by id rows 3 preceding exclude current row), max(7) over (order by id), count('a') over (order by id rows 2 preceding) from t

select id, lag(s, 0, w ignore nulls) over (order by id), lead(i32, n % 2, 7 ignore nulls) over (partition by s order by id), lag(i32, 1, 7 ignore nulls) over (order by id) from t

select id, quantile_disc(w, 0.25) over (partition by n order by id rows between unbounded preceding and unbounded following), quantile_cont(f64, 1.0) over (order by id range between unbounded preceding and unbounded following), median(i32) over (partition by s order by id desc rows between unbounded preceding and unbounded following) from t

select id, median(distinct i8) over (partition by n order by id), median(distinct s) over (order by id rows between unbounded preceding and 1 following) from t

select id, rank() over (partition by n order by i8), sum(i32) over (partition by n order by i8, s, id), row_number() over (partition by i8, n order by s, id), min(s) over (partition by n order by i8 desc nulls last), count(*) over (partition by n), lag(id) over (partition by n order by i8, s, id) from t

-- cpu
select id, dense_rank() over (partition by flag order by n), sum(f64) over (partition by flag order by n, id rows 3 preceding), avg(i32) over (partition by n, flag order by id) from t

select id, sum(n) over (partition by flag order by id) from (select * from t order by flag, id)

-- cpu
select id, sum(id) over w, min(id) over w, max(w) over w, count(id) over w, avg(id) over w, first_value(id) over w from t window w as (order by id rows between coalesce(n, 1) - 2 preceding and current row)

select id, sum(id) over (order by id rows between -1 preceding and 2 following), sum(id) over (order by id rows -1 preceding), max(id) over (partition by s order by id rows between current row and (-2)::bigint following), count(id) over (order by id rows between 3 preceding and -1 following), sum(id) over (order by id rows between -2 preceding and -1 following exclude current row) from t
