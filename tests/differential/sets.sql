-- tables: shared

-- cpu
select x from t intersect select x from s

-- cpu
select x from t except select x from s

select x, w from t intersect select x, w from t where y > 10

select x, w from t except select x, w from t where y > 10

-- cpu
select w from t intersect select w from t where x = 3

select x from t union select x from s intersect select z from s

select x from t intersect select x from s union all select z from s

select x from t except select z from s union all select x from s

select x from t except (select z from s union all select x from s)

select x from t intersect select x from s intersect select z from s

select x from t except select z from s except select 3

-- ordered
(select x from t except select z from s) intersect select x from t order by 1 desc nulls first limit 2

-- ordered
select x as a, y from t except select x, z from s order by y desc nulls first, a

select x from t where false except select x from s

select x from t except select x from s where false

select x from t intersect select x from s where false

select x from t intersect select null

select null except select 1

select x::smallint as x, y * 0.5 as y from t intersect select x, y / 2e0 from t

select '3' intersect select x from t

with c as (select x, y from t) select * from c except select * from c where x = 3

select count(*) from (select x from t except select x from s) a join t using (x)

-- cpu
select * from t where x in (select x from t intersect select x from s)

select * from t where exists (select x from s where s.x = t.x intersect select z from s)

select x, (select max(z) as m from (select z from s where s.x = t.x except select 4) u) as m from t

-- cpu
select x, y from t union by name select x, z from s

select x, y from t union all by name select z, x from s union all by name select w, 1.5 as y from t

select x from t union by name select x as "X" from s union by name select null as w

values (1, 'a'), (2, 'b'), (2, 'b') except values (1, 'a')

select x from t union all by name select x from s except select 3

-- cpu
select x, w from t intersect all select x, w from t where y > 10

-- cpu
select x from t except all select x from s

select x from s intersect all select x from t

select x from t union all select x from t except all select 2 except all select x from s intersect all select x from t

select w from t where false except all select w from t

select w from t intersect all select w from t where false

select * from t where x in (select x from s where s.z < t.y except all select 3)

-- cpu
select * from (values (1), (2) except values (2)) t(a)

select * from ((values (1) intersect values (1)) union all values (5)) t

-- ordered
select * from (values (1), (2) order by col0 desc limit 1) t(a)

select 1 in (values (1) except values (2)), exists (values (1) intersect values (2))

with t(a) as (values (1), (2) limit 1) select a from t

select * from ((values (1) union all values (2)) t(a) join (values (1)) u(a) using (a))

select * from (values ((values (1) union all values (1) limit 1)), (2) union all values (3)) t(a)

-- cpu
select x, x as again, y, x as more from t union all select z, x, z, z from s

-- cpu
select a, b, sum(c) from (select x as a, x as b, x + 1 as c from t union all select null, z, 1.5 from s union all select y, y, y from t where false) group by a, b

select w, w as again, 'a' as k, x from t union all select null, null, w, 2 from t union all select 'b', w, w, null from t
