-- tables: shared

with v1 as (select * from t) select a.x, b.x from v1 a, v1 b where a.y < b.y

with t as (select x, max(y) y from t group by x) select a.x, b.y from t a join t b on a.y > b.y

-- cpu
with u(a, b) as (select x, sum(y)::bigint from t group by x) select u1.a, u2.b from u u1 left join u u2 on u1.a = u2.b - 40
or u1.a = u2.a

with u as (select x, y from t order by y desc nulls last limit 3) select * from u a left join u b on a.x < b.x

-- cpu
with u as (select x, y from t order by y) select * from u union all select * from u

with u as (select x, y from t order by y limit 4) select * from u union all select * from u

-- cpu
with u as (select x from t), v as (select distinct x from u), w as (select a.x, b.x y from v a, v b) select * from w w1, w
w2 where w1.x = w2.y

with u as (select x from t) select (with u as (select distinct z from s) select count(*) from u a, u b where a.z < b.z),
(select count(*) from u)

select x, (with c as (select z from s where s.x = t.x) select count(*) from c a, c b) from t

select x, (with c as (select z, t.y as o from s where s.x = t.x) select sum(a.z + b.o) from c a left join c b on a.z > b.z) from t

-- cpu
with u as (select distinct x from t) select * from t where exists (select 1 from u a join u b on a.x < b.x where a.x = t.x)

with u as (select distinct x from t) select * from t where x in (select a.x from u a, u b where a.x = b.x + 1)

with u as (select distinct x from t) select * from t where x not in (select a.x from u a, u b where a.x = b.x + 1)

with u as (select distinct x from t) select x, x in (select x from u), x in (select x + 1 from u) from u

-- cpu
with u as (select x, count(*) n from t group by x) select * from u where n = (select max(n) from u) 

with u as (select x, count(*) n from t group by x) select * from u where n > (select avg(n) from u u2 where u2.x <> u.x)

-- cpu
with u as (select x, count(*) n from t group by x) select a.x from u a where a.x = 3 union all select b.x from u b where b.x = 2

with u as (select x, y, w from t where y > 10 union all select x, z, 'k' from s) select a.w, b.w, count(*) from u a join u b
on a.x = b.x group by 1, 2

with u as materialized (select x from t) select count(*) from u

with u as not materialized (select distinct x from t) select a.x, b.x from u a, u b

with u as (select x from t limit 0) select * from u a full join u b on a.x = b.x

-- cpu
with u as (select count(*) n from t) select a.n, b.n from u a, u b

with u as (select count(*) n, x from t group by x) select count(*) from u a, u b

with u as (select 1 as one) select a.one + b.one from u a, u b

with u as (values (1, 'a'), (2, 'b')) select * from u a join u b on a.col0 < b.col0

with u as (select range x from range(5)) select a.x, b.x from u a join u b on a.x = b.x * 2

with u as (select x, y from t), v as (select u.x, s.z from u left join s on u.x = s.x) select a.x, b.z from v a right join v
b on a.x = b.z

with u as (select distinct x, w from t) select distinct a.w from u a semi join u b on a.x = b.x + 1

with u as (select distinct x, w from t) select a.w from u a anti join u b on a.x = b.x + 1

with u as (select x, sum(y)::bigint y from t group by x), v as (select * from u where y > 20) select v.x, u.x, v2.x from v,
u, v v2 where v.y < u.y and v2.x <> v.x

with a as (select distinct x from t), b as (select distinct x from t) select a.x, b.x from a, b

select p.x, q.x from (select distinct x from t) p, (select distinct x from t) q

select p.x, q.x from (select x, max(y) m from t group by x) p join (select x, max(y) m from t group by x) q on p.m > q.m

with u as (select x, row from (select x, y as row from t)) select count(*) from u a, u b, u c where a.x = b.x and b.x = c.x

-- cpu
with u as (select t.x, s.z from t join s on t.x = s.x) select a.x, a.z, b.z from u a, u b where a.z is distinct from b.z

with u as (select t.x, s.z from t full join s on t.x = s.x) select count(*), sum(a.x), sum(b.z) from u a full join u b on
a.x = b.z

with u as (select distinct x from t) select a.x, (select count(*) from u b where b.x > a.x), (select min(x) from u c where
c.x > a.x) from u a

with u as (select distinct x from t) select * from u a where x = any (select x from u) and x > all (select x - 10 from u
where x is not null)

-- cpu
with u as (select distinct x from t) select case when exists (select 1 from u where x = 3) then (select max(x) from u) else
(select min(x) from u) end from s

with u as (select distinct x from t order by x limit 2) select a.x from u a join u b using (x)

with u as (select distinct x from t), v as (select x from u where x in (select x from u where x > 1)) select a.x, b.x from v
a, v b

with u as (select w, count(distinct x) c from t group by w) select * from u a, u b where a.c = b.c and a.w is distinct from b.w

with u as (select upper(w) w, count(*) c from t group by 1) select a.w, b.c from u a join u b on a.w = b.w

with u as (select distinct w from t where w like 'a%' or w like 'b%') select a.w || b.w from u a, u b

with u as (select * from t) select * from u a, u b, u c where a.x = 1 and b.x = 2 and c.x = 3

with u as (select x from t) select * from u where x > 2 union select * from u where x < 2 union all select * from u where x = 2

select * from t a left join (select x, w from t) b on a.x = b.x and upper(b.w) <> a.w

select (select sum(s) from (select y s, r from (select sum(x) over (partition by w order by x, y) y, rank() over (partition by y order by
x) r from t) where y + r > 0)), (select sum(r) from (select y s, r from (select sum(x) over (partition by w order by x, y) y, rank()
over (partition by y order by x) r from t) where y + r > 0))

select (select sum(e) from (select x, unnest([x, x + 10]) e, [y, y * 3] m from t) v, unnest(m) u(f)), (select sum(f) from (select x,
unnest([x, x + 10]) e, [y, y * 3] m from t) v, unnest(m) u(f))

select min(c), max(d), min(d) from (select x a, first(w order by w) over (partition by x) c, max(y) over (partition by w order by x)
d from t where x < null order by 1, 2, 3 limit 2) v join t on v.a = t.x
