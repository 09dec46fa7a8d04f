-- tables: joins

-- cpu
select id from l where exists (select * from r where r.k = l.k)

-- cpu
select id from l where not exists (select * from r where r.k = l.k)

-- cpu
select id from l where exists (select 1 from r where r.k = l.k and r.v > l.v)

select id from l where not exists (select 1 from r where r.k = l.k and r.v <> l.v)

select id from l where exists (select 1 from r where r.v > l.v + 60)

select id from l where exists (select 1 from r where r.v > 40)

select id from l where not exists (select 1 from e)

select id from l where exists (select 1 from r where l.v > 0)

-- cpu
select id from l where k in (select k from r)

select id from l where k in (select k from u)

-- cpu
select id from l where k not in (select k from u)

-- cpu
select id from l where k not in (select k from r)

select id from l where k not in (select k from r where k is not null)

select id from l where k not in (select k from e)

select id from l where k in (select k from e)

select id from l where k not in (select k from nokey)

select id from l where k in (select k from nokey) or v > 30

select id from l where s in (select s from r where v > 0)

select id from l where s not in (select s from u)

select id from l where (k, k2) in (select k, k2 from r)

select id from l where k in (select k from r where r.s = l.s)

-- cpu
select id from l where k not in (select k from r where r.s = l.s)

select id from l where k not in (select k from u where u.v > l.v)

select id from l where v > (select avg(v) from l)

-- cpu
select id from l where v > (select avg(v) from r where r.k = l.k)

-- cpu
select id, (select max(v) from r where r.k = l.k) from l

select id, (select count(*) from r where r.k = l.k) from l

select id, (select count(*) + 1 from r where r.k = l.k and r.v > 0) from l

select id, (select sum(v) from e where e.k = l.k), (select count(v) from e where e.k = l.k) from l

select id, (select v from u where u.k = l.k) from l

select id, (select v from e) from l

select id, (select max(v) from r) - v from l

select id, coalesce((select sum(v) from r where r.k = l.k), 0) + v from l

select id, (select s from u where u.k = l.k) || '!' from l

-- cpu
select id, k in (select k from r) from l

select id, k not in (select k from r where k is not null) from l

select id, exists (select 1 from r where r.k = l.k), not exists (select 1 from r where r.k = l.k and r.v > 20) from l

select id, case when k in (select k from u) then 'in' when k is null then 'null' else 'out' end from l

select id from l where k in (select k from r) or s in (select s from u)

select id from l where exists (select 1 from r where r.k = l.k) or v > 30

select id from l where not (k in (select k from r where v > 0) and v > 0)

select id from l where (k in (select k from r)) is null

select id from l where v = (select min(v) from r where r.k = l.k and r.s = l.s)

select id from l where v < (select 0.5 * sum(v) from r where r.k = l.k)

select id from l where v > (select min(v) from r where r.k >= l.k)

select id from l where exists (select 1 from r where r.k = l.k and exists (select 1 from u where u.k = r.k))

-- cpu
select id from l where k in (select k from r where v > (select avg(v) from u where u.k = r.k))

select id from l where exists (select 1 from r where r.k = l.k and r.v > (select min(v) from u where u.id < l.id))

select id from l where (select count(*) from r where r.k = l.k) = 2

select id from l where (select count(*) from r where r.k = l.k) = 0

select k, sum(v) from l group by k having sum(v) > (select avg(v) from r)

select k, sum(v) from l group by k having k in (select k from u)

select k, (select max(v) from r where r.k = q.k) from (select k, count(*) as c from l group by k) as q

with a as (select k, sum(v) as total from l group by k) select * from a where total = (select max(total) from a)

with a as (select k from l where v > 0), b as (select k from a where k > 5) select a.k, count(*) from a, b where a.k = b.k group by a.k

with a as (select 1 as x), b as (select x + 1 as y from a) select * from a, b

with a (p, q) as (select id, k from l) select p, q from a where q > 10

select * from (select id, k from l where k > 3) as q (a, b) where b < 8

select id from l where id in (select max(id) from r group by k)

select id from l where k in (select distinct k from r where v > 0)

select id from l where k = any (select k from u where v > 0)

select id, (select count(distinct r.s) from r where r.k = l.k) from l

select id from l where v > all (select v from r where r.k = l.k)

select l.id, r.id from l join r on l.k = r.k and r.v = (select max(v) from r as x where x.k = l.k)

select l.id, r.id from l left join r on l.k = r.k where exists (select 1 from u where u.k = r.k)

select id, (select r.v from r where r.k = l.k order by r.v limit 1) from l

select q.id, q.n from (select id, (select count(*) from u where u.v > l.v) as n from l) as q where q.n > 5

-- ordered
select o.s, (select count(*) from r where r.s = o.s and r.v > o.v) from l o order by o.id

-- ordered
select o.s, (select count(*) from r where r.s = o.s and r.v > o.v), o.k in (select k from u) from l o order by o.id desc limit 7 offset 2

-- cpu
select l.id from l where exists (select 1 from r where r.k = l.k and r.v <> l.v) and not exists (select 1 from r where r.k = l.k and r.v <> l.v and r.d > 0.05)

select l.id from l where not exists (select 1 from r where r.k = l.k and r.day <> l.day)

select l.id from l where exists (select 1 from r where r.k = l.k and r.d < l.d + 1)

select l.id from l where not exists (select 1 from r where r.k = l.k and l.day <= r.day)

select l.id from l where exists (select 1 from nokey x where x.k = l.k and x.v <> l.v) or l.v > 40

select l.id from l where not exists (select 1 from e where e.k = l.k and e.v <> l.v)

-- cpu
select x.id from same x where exists (select 1 from same y where y.k = x.k and y.v >= x.v) and not exists (select 1 from l where l.k = x.k and l.k2 = x.k2 and l.v <> x.v)

-- cpu
select l.id from l where exists (select 1 from r where r.k = l.k and r.v <> l.v) and not exists (select 1 from r where r.k = l.k and r.v <> l.v and r.s > 'b')

select l.id from l where not exists (select 1 from r where r.k = l.k and r.d < l.d and r.v > 0) and not exists (select 1 from r where r.k = l.k and r.day > l.day and r.s <= 'c')

select l.id, (select x.id from l x full join r y on (x.k = y.k or y.v > 3) where l.v <= y.v and x.v < l.v order by x.id desc nulls last limit 1) m from l
