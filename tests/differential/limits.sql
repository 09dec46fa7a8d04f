-- tables: shared

-- ordered
select distinct on (x) x, w, y from t order by x, y desc nulls last

-- cpu
select distinct on (x) w, y from t order by x, y desc nulls last

select distinct on (x) x from t

-- ordered
select distinct on (1) x, y from t order by y desc nulls last limit 3

select distinct on (k) x % 2 as k, y from t order by y nulls first

select distinct on (x + 1, w) x, y from t order by y nulls last

select distinct on (w) w, count(*) from t group by x, w order by w, count(*) desc, x

select distinct on (count(*)) w from t group by w order by count(*), w

select distinct on (x) x, row_number() over (order by y, w) from t order by x, y

select distinct on (x) * from t where false

select distinct on ((select max(s.x) from s where s.x <= t.x)) x from t order by x

select x, (select distinct on (t.w) y from t where t.x = s.x order by t.w, y limit 1) as v from s

-- ordered
select x, y from t order by all desc nulls last

-- ordered
select w, x from t union select w, x + 1 from t order by all nulls first

-- ordered
select y from t order by y limit 1 + 1

-- ordered
-- cpu
select y from t order by y limit (select count(*) from s) - 2 offset (select min(x) from s)

-- ordered
select y from t order by y limit (select null) offset length('abc')

select y from t order by y limit (select z from s where false)

-- ordered
select y from t order by y limit 1.5

-- ordered
select y from t order by y limit '2' offset 1

-- ordered
select y from t order by y limit 50%

-- ordered
-- cpu
select y from t order by y limit 30.5 percent offset 1

select y from t limit 0%

-- ordered
select y from t order by y limit 100%

-- ordered
select * from (select y from t order by y limit (select 3)) u order by y desc limit 2

select count(*), count(distinct r) from range(1000) u(r) using sample 7 rows

select count(*) from t u tablesample 3 rows join t v tablesample reservoir(2 rows) repeatable (4) on true

select count(*), count(distinct r) from range(10000) u(r) using sample reservoir(10%)

select count(*) from range(1000) tablesample 100 percent

select count(*) from range(1000) using sample 0% (bernoulli, 7)

select count(*) from (select * from t) u tablesample 2

-- cpu
select t.x, u.z from t, lateral (select z from s where s.x <= t.x order by z desc limit 2) u

select t.x, u.z from t, lateral (select z, s.x from s where s.x <= t.x order by s.x * t.x, z limit 2 offset 1) u

select t.x, u.z from t left join lateral (select z from s where s.x <= t.x order by z nulls first offset 1) u on true

select x, (select sum(z) from (select z from s where s.z is distinct from t.x order by z limit 2) u) as n from t

select x, (select z from s where s.x <= t.x order by x, z limit 1 offset 1) as v from t

select x, x in (select z from s where s.x <= t.x or s.z = t.x order by z limit 2) as v from t
