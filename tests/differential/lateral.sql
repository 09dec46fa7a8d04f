-- tables: joins

-- cpu
select l.id, t.v from l, lateral (select r.v from r where r.k = l.k) t

select l.id, t.v from l, (select r.v from r where r.k = l.k) t

select l.id, t.v from l left join lateral (select r.v from r where r.k = l.k) t on true

select l.id, t.v from l left join lateral (select r.v from r where r.k = l.k) t on t.v > l.v

select l.id, t.z from l join (select l.v + 1 as z) t on t.z > 3

select l.id, t.z from l cross join lateral (select l.v + u.v as z from u) t

-- cpu
select l.id, t.n, t.s from l, lateral (select count(*), sum(r.v) from r where r.k = l.k) t(n, s)

select l.id, t.s, t.n from l, lateral (select s, count(*) n from r where r.k = l.k group by s) t

select l.id, t.m from l join lateral (select max(r.v) as m from r where r.v < l.v) t on t.m is not null

select l.id, t.v from l left join lateral (select v from r where r.v < l.v order by v limit 1) t on true

select l.id, t.a, w.b from l, lateral (select l.v + 1 as a) t, lateral (select t.a * 2 as b) w

select l.id, t.x from l, lateral (select 1 as x union all select l.v) t

select l.id, t.x from l, lateral (values (l.v), (l.k)) t(x)

select u.id, l.id, t.z from u, l left join lateral (select u.v + l.v as z) t on true

select u.id, l.id, t.z from u, l, lateral (select u.v + l.v as z) t where t.z > 0

select l.id, i from l, lateral range(3) t(i)

select l.id, t.v from e l, lateral (select v from r where r.k = l.k) t

select l.id, t.v from l left join lateral (select v from e where e.k = l.k) t on true

select l.id, t.id from l join lateral (select r.id from r left join u on r.k = u.k where u.id is null and r.v > l.v) t on true

select l.id, t.v, o.n from l, lateral (select v from r where r.k = l.k) t, lateral (select count(*) n from u where u.v = t.v) o

select l.id, (select sum(t.z) from (select l.v as x) a, lateral (select a.x + u.v as z from u) t) from l

with w as (select k, v from r where v > 0) select l.id, t.v from l, lateral (select w.v from w where w.k = l.k) t, w where w.v = t.v

select count(*) from l natural join (select id, k from r) x

select * from (select id, k, v from l) a natural full join (select k, v, s from r) b

select * from (select id, k, v from l) a natural semi join (select k, v, s from r) b

select * from (select id, k, v from l) a natural anti join (select k, v, s from r) b
