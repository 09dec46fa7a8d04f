-- tables: all_types

-- cpu
select count(*), count(i64), sum(i64), min(i64), max(i64), avg(i64) from t

-- cpu
select sum(i8), sum(i16), sum(i32), sum(u8), sum(u16), sum(u32), min(i8), max(u32), avg(i8), avg(u16) from t

-- cpu
select sum(d9), sum(d18), sum(d38), min(d9), max(d18), min(d38), max(d38), avg(d9), avg(d18), avg(d38) from t

-- cpu
select sum(f64), sum(f32), min(f64), max(f32), avg(f64), avg(f32) from t

-- cpu
select min(day), max(day), min(moment), max(moment), min(s), max(s), min(w), max(w), min(flag), max(flag) from t

select count(distinct i64), count(distinct s), count(distinct w), count(distinct d9), count(distinct flag) from t

-- cpu
select sum(i64 * 2 + 1), sum(d9 * (1 - d18)), sum(case when flag then 1 else 0 end), avg(i64 + i32) from t where i64 > 0

select sum(distinct i64), avg(distinct i32), count(distinct i64), sum(i64) from t

-- cpu
select count(*), count(i64), sum(i64), min(s), max(d38), avg(f64), min(flag), sum(d9) from empty

-- cpu
select count(*), count(i64), sum(i64), min(s), max(d38), avg(f64), min(flag), sum(d9) from nulls

select count(*), sum(i64), min(s), max(d38), avg(d9) from one

select count(*) from t where i64 > 1000

select sum(i64) + 1, count(*) * 2, max(i64) - min(i64), sum(i64) / count(*), sum(d9) * 2 from t

select 1, count(*), 'x' from t having count(*) > 5

select 1 from t having count(*) > 5000

-- cpu
select n, count(*), sum(i64), avg(d9), min(s), max(day) from dense group by n

-- cpu
select s, count(*), sum(i64), avg(d18), min(f64), max(i8), count(i32) from t group by s

-- cpu
select w, count(*), sum(d9), sum(d38) from t group by w

-- cpu
select i64, i32, count(*) from t group by i64, i32

-- cpu
select s, flag, n, count(*), sum(d18), min(w) from t group by s, flag, n

select d9, count(*) from t group by d9

-- cpu
select d38, sum(i64) from t group by d38

select f64, count(*) from t group by f64

select f32, day, count(*) from t group by f32, day

select moment, count(*), max(id) from t group by moment

select flag, count(*), min(i64), max(w) from t group by flag

-- cpu
select extract(year from day) as y, count(*), sum(d9) from t group by y

select i64 % 5, sum(i64) from t group by i64 % 5

select i64 % 3 as a, s, count(*) from t group by 1, 2

select substring(w from 1 for 1) as c, count(*), max(i64) from t group by substring(w from 1 for 1)

select case when i64 > 0 then 'pos' else 'neg' end as sign, count(*) from t group by sign

-- cpu
select s, sum(i64) from t where flag group by s having sum(i64) > 0

select s, sum(i64) as total from t group by s having total > 0 and count(*) > 3

select s, count(distinct n), count(distinct i64), sum(i64) from t group by s

-- cpu
select n, count(distinct s) from t group by n

select n, count(distinct w), sum(distinct i8), min(i64) from t group by n having count(distinct s) > 2

select i64, count(*) from empty group by i64

-- cpu
select i64, s, count(*), sum(d9) from nulls group by i64, s

select s, count(*) from one group by s

select 5 as k, count(*) from t group by k

-- cpu
select distinct s from t

select distinct s, flag from t

-- cpu
select distinct i64 // 10, n from t

select distinct d38 from t

select distinct i64 from empty

select distinct * from (select i8 // 40 as a, flag as b from t) as q

select s, sum(total) from (select s, n, sum(i64) as total from t group by s, n) as q group by s

select count(*) from (select s from t group by s) as q

select max(c), min(c), sum(c) from (select w, count(*) as c from t group by w) as q

-- cpu
select sum(i64), count(*) from dense where i32 > 0 and d9 > 0 and s <> 'red'

select any_value(7), count(*) from t

select sum(i64) filter (where flag), count(*) filter (where i64 > 0) from t

select s, n from t group by s, n order by s, n limit 5

select sum(1), count(1), count(null), sum(null::integer), min(5), max('x') from t

select i64 + 1, count(*) from t group by i64 + 1 having max(i64 + 1) > 10

select s, sum(i64) * 2 + count(*) as score from t group by s having score is not null

select upper(s), count(*) from t group by upper(s)

select id, count(*) from dense group by id

select case when n is null then w end as c, f64, count(*) from t group by 1, 2

-- cpu
select case when n > 100 then w end as c, min(f64), n from t group by 1, 3

select b.f64, min(a.n), count(*) from t a join t b on a.id = b.id and a.n = b.n group by 1

-- cpu
select n, stddev(i32), var_pop(i16), sem(d9), stddev_pop(d18), variance(i64) from t group by n

select stddev(i32), stddev_samp(i32), var_samp(d9), var_pop(u8), stddev_pop(u32), sem(d38 / 1000) from t

select s, covar_pop(i32, i16), covar_samp(d9, i8), corr(i32, i16 + 0.5), count(*), sum(i64) from t group by s

-- cpu
select n, regr_count(i16, i32), regr_avgx(i16, i32), regr_avgy(i16, i32), regr_sxx(i16, i32), regr_syy(i16, i32), regr_sxy(i16, i32),
regr_slope(i16, i32), regr_intercept(i16, i32), regr_r2(i16, i32) from t group by n

select n, skewness(i16), kurtosis(i16), kurtosis_pop(i8) from t group by n

select geomean(abs(i16) + 1), fsum(i32), favg(d9), kahan_sum(i8) from t

select n, stddev(distinct i8), stddev(i8), count(distinct i8), var_pop(i16) filter (where i8 > 0) from t group by n

select stddev(i32), corr(i32, i16), skewness(i16), regr_count(i32, i16), sem(i8), geomean(i8), favg(i8), count_if(flag) from empty

select n, stddev(i32), corr(i32, i16), kurtosis_pop(i16), regr_count(i32, i16), regr_r2(i8, i16) from nulls group by n

select stddev(i32), stddev_pop(i32), corr(i32, i16), regr_slope(i32, i16), regr_count(i32, i16), skewness(i16), sem(i8) from one

select count_if(flag), bool_and(flag), bool_or(flag), bool_and(distinct flag) from t

select a.n, (select stddev(b.i16) from t b where b.n = a.n and b.i8 > a.i8) from t a

-- cpu
select n, median(i32), quantile_cont(f64, 0.25), quantile_disc(i16, 0.3), count(*), sum(i64), median(d9), median(s) from t group by n

select median(f32), quantile_cont(i8, 0.1), quantile_disc(w, 0.6), mad(i16), mad(d9), median(day), quantile_cont(moment, 0.7), median(flag) from t

select n, quantile_cont(i32, -0.25), quantile_disc(i32, 1), quantile_disc(i32, 0), quantile_disc(d38, 0.07), median(d38) from t group by n

select median(distinct i8), quantile_disc(i8, 0.5) filter (where flag), mode(i8) filter (where flag) from t

-- cpu
select n, first(i32), last(i32), any_value(i32), first(s), last(w), count(*) from t group by n

select first(i32), last(d38), first(f64) filter (where flag), last(s) filter (where i8 > 0), any_value(w) from t

-- cpu
select n, arg_min(s, i32), arg_max(i64, f64), arg_min_null(i32, d9), arg_max_null(w, i16), min(i8) from t group by n

select arg_min(i32, s), max_by(s, d38), min_by(id, day) filter (where flag), argmax(id, moment) from t

select i32, entropy(i32), entropy(n), count(*) from t group by i32

select n, mode(s), mode(i8), entropy(i8), entropy(s) filter (where flag) from t group by n

select mode(f64), mode(d9), entropy(w), mode(w) from t

select n, string_agg(s, '-'), string_agg(i8, ''), listagg(w, ', ') filter (where flag), group_concat(d9, '+') from t group by n

select string_agg(s), string_agg(null, ','), string_agg(s, null) from t

select median(i32), mode(i8), first(i8), last(s), string_agg(s), arg_min(i8, i8), entropy(i8), quantile_disc(s, 0.5), mad(i8) from empty

select n, median(i32), mode(i8), first(i8), string_agg(s), arg_min(i8, i8), entropy(i8), mad(i8) from empty group by n

select n, median(i32), mode(i8), first(i8), string_agg(s), arg_min(i8, i8), entropy(i8), mad(i8) from nulls group by n

select median(i32), mode(s), first(i8), last(s), string_agg(s), arg_min(i8, i8), quantile_cont(i8, 0.3), mad(i8) from one

select n, stddev(i32), median(i32), first(i32), mode(i32), string_agg(s, '-'), count(distinct i8) from dense group by n

select corr(distinct i8, i16), regr_count(distinct i8, i16) filter (where flag), sum(distinct i8), string_agg(distinct flag, '') from t where flag

select n, approx_count_distinct(n), approx_count_distinct(flag), approx_quantile(7, 0.5) from t group by n

select n, first(s order by id), last(s order by id desc), any_value(i32 order by id), string_agg(s, '-' order by s desc) from t group by n

select percentile_cont(0.25) within group (order by f64 desc), percentile_disc(0.3) within group (order by i8) filter (where flag),
mode() within group (order by i8 desc) from t

select s, percentile_cont(0.25) within group (order by i32) as p, mode() within group (order by i8) as m, count(*) from t group by s

select n, count(distinct (s, flag)), count(distinct s), count(distinct (n, s)) filter (where flag) from t group by n

select arg_min(s, n order by id desc), arg_max(s, n order by id), sum(i32 order by id), stddev(i8 order by id) from t

select string_agg(distinct s, ',' order by s), first(distinct i8 order by i8 desc), quantile_cont(i32, 0.25 order by i32 desc) from t

select n, sum(i8 order by id) from t group by n having first(i8 order by id) > 0 order by first(i8 order by id), n

-- cpu
select n, bit_and(i8), bit_or(i32), bit_xor(i64), product(i8), bit_xor(distinct i8), count(*) from t group by n

select bit_and(u8), bit_or(u32), bit_xor(i64) filter (where flag), product(d9), product(f32) filter (where i8 = 1), bit_and(i16) from t

select n, bit_and(i8), bit_or(u16), bit_xor(i64), product(d9) from nulls group by n

select bit_and(i8), bit_or(u16), product(i8) from empty

select f64, s, min(n), median(i8), quantile_disc(i32, 0) from t group by f64, s, 1.5

select n, s, median(i32), stddev(i32), mode(i8 order by i8), string_agg(s, ',' order by s), count(*), grouping(n) from t group by rollup(n, s)

select n, var_pop(i16), bit_xor(i8), entropy(s), arg_min(s, id), count(distinct i8) from t group by cube(n)

select s, first(i32 order by id), quantile_disc(i8, 0.3), count(distinct (n, i8)) from t group by grouping sets ((s), (), (flag)), ()

select (select median(b.i16) from t b where b.n = a.n), (select string_agg(s, ',' order by s) from t b where b.n = a.n and b.i8 > a.i8) from t a

-- cpu
select n, arg_max_nulls_last(i8, i32), arg_min_nulls_last(s, i16), wavg(i8, i16), weighted_avg(f64, u8), reservoir_quantile(i8, 0.5) from nulls group by n

select id, arg_max_nulls_last(i8, i16) over (partition by n order by id rows 2 preceding) from nulls

select count(distinct (0, 0)), count(distinct (n, 1)), string_agg(distinct 'x', ',') from t where id < 0

select n, count(distinct (0, 0)), string_agg(distinct 'x', ','), count(distinct 'x') filter (where id > 90) from t group by n

select min(n) from t where id < 0 having count(distinct (0, 0)) <> 0

select s, quantile_cont(i16, [0.25, 0.5, 1]), quantile_disc(i8, [0.1, 0.9]) from t group by s

select quantile_cont(i16, [0.25, 0.5]), percentile_disc([0, 1]) within group (order by id desc) from t where id < 0

select id, quantile_cont(i8, [0.5, 0.75]) over (partition by n) from t

select quantile_cont(x, 0.53), quantile_cont(x, 0.47), median(x) from (values (977332988::float), (998819563::float), (-280511195::float), (620815599::float)) v(x)

select quantile_cont(x, 0.3), quantile_cont(x, [0.1, 0.7]), median(x) from (values (-9.25::decimal(30,6)), (-2.25::decimal(30,6)), (-8.5::decimal(30,6)), (10.01::decimal(30,6))) v(x)

select median(x), quantile_cont(x, [0.25, 0.75, 1]) from (values (-0.25::decimal(38,2)), (0.01), (-36893488147419103.04), (999999999999999999999999999999999999.99)) v(x)

select list(id), string_agg(id::varchar, ','), first(id), last(id) from (select id from t order by id % 7 desc, id)

select id % 3 as k, list(id), last(id) from (select id from t order by id % 5, id desc) group by 1

-- cpu
select n, min(i8, 3), max(s, 2), arg_min(s, id, 3), arg_max(i32, id, 2), max_by(id, (f64, id), 4), min_by(w, id, 40) from t group by n

select min(day, 2), max(f64, 3), min(flag, 2), arg_max(id, (d38, id), n) filter (where flag), min(distinct i8, 2), max(distinct s, 3) from t

select min(i8, 3), arg_min(i8, id, 0), max(s, null) from empty

select n, min(i8, 3), arg_max_nulls_last(i8, (i32, id), 2), arg_min_nulls_last(i8, id, 40) from nulls group by n

select n, min(i8, 1), max(i8, 2) from empty group by n

select id, min(i8, 2) over (partition by n order by id rows 2 preceding), arg_max(id, id, 2) over (order by id), max(i8, 2) over (partition by n) from t

select n, s, max(i8, 2), arg_min(s, (i8, id), 2) from t group by rollup(n, s)

select (select max(b.i16, 2) from t b where b.n = a.n and b.i8 > a.i8), min([a.i8, a.id], 2), max({'x': a.i8}, 1) from t a group by a.n, a.i8

-- cpu
select s, n, sum(i16 + v), avg(i8 * 2.5), min(i32 - 1), max(f64 / 2), count(i8 + v), any_value(s), sum(v) filter (where i8 > 0) from (select s, n, i8, i16, i32, f64, 1 as v from t union all select s, n, i8, i16, i32, f64, null from nulls) group by s, n

-- cpu
select s, min(upper(s)), any_value(lower(s)), sum(i8 + 1), sum(i8 - i16) filter (where i8 > 0), first(i8 order by i16, id) from (select s, i8, i16, id from t union all select s, i8, i16, id from nulls union all select s, i8, i16, id from empty) group by s

-- cpu
with g as (select s, f64, sum(i8) as a, count(*) as c from t group by s, f64) select x.s, x.f64, sum(x.a * 1.5), avg(x.a / x.c), count(distinct x.c + 1) from (select * from g union all select s, null, a + 1, c from g) x group by x.s, x.f64

with g as (select s, sum(i8) as a from empty group by s) select s, sum(a + 1), count(a + 1) from (select * from g union all select * from g) group by s
