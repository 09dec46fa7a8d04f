-- tables: all_types

-- ordered
-- cpu
select id, i64 from t order by i64, id

-- ordered
-- cpu
select id, i64 from t order by i64 desc, id desc

-- ordered
select id, i64 from t order by i64 nulls first, id

-- ordered
select id, i64 from t order by i64 desc nulls last, id

-- ordered
select id, i64 from t order by i64 desc nulls first, id

-- ordered
-- cpu
select id, s, w from t order by s, w desc nulls last, id

-- ordered
select id, w from t order by w desc, id

-- ordered
-- cpu
select id, d38, d9 from t order by d38 desc, id

-- ordered
select id, f64 from t order by f64, id

-- ordered
select id, f32, flag from t order by flag, f32 desc, id

-- ordered
select id, day, moment from t order by day desc, moment, id

-- ordered
select id, u64 from t order by u64 desc nulls first, id limit 10

-- ordered
-- cpu
select id, i64 from t order by i64, id limit 7

-- ordered
select id, i64 from t order by i64 desc nulls last, id limit 7 offset 5

-- ordered
select id from t order by id limit 0

-- ordered
select id from t order by id offset 115

-- ordered
select id from t order by id limit 10 offset 500

-- ordered
select id, i64 + i32 as total from t order by total, 1

-- ordered
select id from t order by i64 * -1, id

-- ordered
select id from t order by abs(i64) desc nulls last, id limit 20

-- ordered
select s, count(*) as c from t group by s order by c desc, s

-- ordered
-- cpu
select w, sum(d9) as total from t group by w order by total desc nulls last, w limit 5

-- ordered
select s, count(*) from t group by s order by count(*) desc, s nulls first

-- ordered
select distinct s from t order by s nulls first

-- ordered
select distinct i64 from t order by i64 desc nulls last limit 5

-- ordered
select id from t limit 10

-- ordered
-- cpu
select id from t where i64 > 0 limit 5

-- ordered
select id from t where i64 > 0 offset 3

-- ordered
select id from t limit 5 offset 30

-- ordered
select id, i64 from (select * from t order by i64, id limit 20) as q order by id

-- ordered
select q.id from (select id from dense order by f64 desc limit 9) as q where q.id > 10 order by q.id

select sum(i64) from (select i64 from t order by id limit 11) as q

-- ordered
select * from empty order by i64, s limit 3

-- ordered
select id from nulls order by i64, id

-- ordered
select id from one order by w desc

-- ordered
select i64 as a, id from t order by a, id limit 3

-- ordered
select id from t order by 1 desc limit 3

-- ordered
select i32, i8 from t order by i8 nulls last, i32 nulls first, id limit 9

-- ordered
select t.id from t order by t.s || t.w nulls last, t.id

-- ordered
select id from t order by case when flag then 0 when flag is null then 1 else 2 end, id

select id from t where flag union all select id from dense where i64 > 0

-- cpu
select i8, s from t union all select i64, w from dense

select d9 from t union all select d18 from t union all select i32 from dense

select s, sum(v) from (select s, i64 as v from t union all select w, i32 from t) as q group by s

select null as x union all select 1 union all select 2.5

-- ordered
select id from t where i64 > 50 union all select id from t where i64 < -50 order by id limit 12

select 1 as a, 'x' as b union all select 2, 'y' union all select null, null

-- ordered
select * from range(10) order by 1 desc

-- cpu
select count(*), sum(range), min(range), max(range) from range(1000)

select sum(range * 2) from range(5, 50, 3)

select r.range, t.i64 from range(4) as r join t on t.id = r.range

select count(*) from empty limit 1

select count(*) from t limit 0

-- ordered
select i64 // 20 as bucket, count(*) as c, sum(d9) from t where i64 is not null group by bucket having count(*) > 1 order by bucket
