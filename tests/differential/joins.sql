-- tables: joins

-- cpu
select l.id, r.id, l.v + r.v from l join r on l.k = r.k

-- cpu
select l.id, r.id from l left join r on l.k = r.k

-- cpu
select l.id, r.id, r.s from l right join r on l.k = r.k

-- cpu
select l.id, r.id, l.s, r.v from l full join r on l.k = r.k

select l.id, r.id from l cross join same as r

select l.id, r.id from l, r where l.k = r.k and l.v > r.v

-- cpu
select l.id, u.id, u.v from l join u on l.k = u.k

-- cpu
select l.id, u.id, u.s from l left join u on l.k = u.k

select u.id, l.id from u join l on l.k = u.k

select u.id, l.id from u left join l on l.k = u.k

-- cpu
select l.id, r.id from l join r on l.k = r.k and l.k2 = r.k2

select l.id, r.id from l left join r on l.k = r.k and l.k2 = r.k2 and l.s = r.s

-- cpu
select l.id, r.id from l join r on l.s = r.s

select l.id, r.id from l full join r on l.s = r.s and l.d = r.d

select l.id, r.id from l join r on l.d = r.d

-- cpu
select l.id, r.id from l join r on l.day = r.day

select l.id, r.id from l join r on l.k = r.v

select l.id, r.id from l join r on l.k = r.k2

select l.id, r.id from l join r on l.k + 1 = r.k * 2

-- cpu
select l.id, r.id from l left join r on l.k = r.k and l.v < r.v

select l.id, r.id from l right join r on l.k = r.k and l.v < r.v

select l.id, r.id from l full join r on l.k = r.k and l.v < r.v

select l.id, r.id from l full join r on l.k = r.k and l.v > 0 and r.v > 0

select l.id, r.id from l left join r on l.k = r.k and l.v > 0

select l.id, r.id from l left join r on l.k = r.k where r.id is null

select l.id, r.id from l left join r on l.k = r.k where r.v > 0

select l.id, r.id from l left join r on l.v < r.v and l.s = 'aa'

select l.id, u.id from l join u on l.v < u.v

select l.id, u.id from l left join u on l.v < u.v and u.id < 3

select l.id, u.id from l full join u on l.v + u.v = 3

-- cpu
select l.id, e.id from l join e on l.k = e.k

select l.id, e.id from l left join e on l.k = e.k

select l.id, e.id from e left join l on l.k = e.k

select l.id, e.id from l full join e on l.k = e.k

select l.id, e.id from l right join e on l.k = e.k

select l.id, e.id from l cross join e

select e.id, e2.id from e full join e as e2 on e.k = e2.k

-- cpu
select a.id, b.id from same as a join same as b on a.k = b.k

select a.id, b.id from same as a full join same as b on a.k = b.k and a.id < b.id

select l.id, n.id from l join nokey as n on l.k = n.k

select l.id, n.id from l full join nokey as n on l.k = n.k

select a.id, b.id from nokey as a left join nokey as b on a.k = b.k

select l.id, r.id from l join r using (k)

select * from l join u using (k, s)

select k, count(*) from l full join r using (k) group by k

select k, l.v, r.v from l right join r using (k)

-- cpu
select l.id, r.id, u.id from l join r on l.k = r.k join u on r.v = u.v

select l.id, r.id, u.id from l join r on l.k = r.k left join u on u.k = r.k and u.k = l.k

select l.id, r.id, u.id, same.id from l, r, u, same where l.k = r.k and r.k = u.k and same.v = u.v

-- cpu
select u.s, count(*), sum(l.v), sum(l.d * r.d) from l join r on l.k = r.k join u on u.k = l.k group by u.s

select count(*), sum(l.v * r.v) from l join r on l.k = r.k

select count(*), sum(r.v), count(r.id) from l left join r on l.k = r.k

select l.k, count(r.id) from l left join r on l.k = r.k and r.s like '%a%' group by l.k

select a.k, count(*) from l as a, l as b where a.k = b.k and a.id <> b.id group by a.k

select x.k, y.c from (select distinct k from l) as x join (select k, count(*) as c from r group by k) as y on x.k = y.k

select l.id, r.id from l join r on l.k = r.k or l.v = r.v

select l.id, r.id from l join r on l.k is not distinct from r.k

select l.id, u.id from l join u on l.k = u.k and u.v in (select v from r)

select l.id, l.k, r.k from l join r on l.k = r.k where l.k = 5

select l.id from l join (select 5 as k) as c on l.k = c.k

select l.id, r.id from l join r on true where l.id < 3 and r.id < 3

select l.id, r.id from l left join r on false

select l.id, r.id from l full join r on 1 = 0

select a.id, b.id, c.id from l as a left join r as b on a.k = b.k left join u as c on b.v = c.v

select a.id, b.id, c.id from l as a full join r as b on a.k = b.k full join u as c on c.k = b.k

select l.id, q.m from l left join (select k, max(v) as m, 1 as one from r group by k) as q on l.k = q.k where q.one is null

select q.id, q.x from (select l.id, coalesce(r.v, -1) as x from l left join r on l.k = r.k) as q where q.x = -1

select a.id, b.id from l as a full join (select * from r where v > 0) as b on a.k = b.k

select a.id, b.id from l as a right join (select * from r where v > 0) as b on a.k = b.k

select a.k, b.k, b.m from (select k, min(v) as m from l group by k) as a full join (select k, max(v) as m from r where v > 0 group by k having max(v) < 45) as b on a.k = b.k

select a.id, b.id from (select * from l where v < 0) as a full join (select * from u where v > 0) as b on a.k = b.k and a.v < b.v

-- ordered
select distinct k, min(v) as m from l group by k order by 1, 2

-- ordered
select distinct s, sum(v) as m from l where v > 0 group by s order by 1, 2 limit 3

select id from l where s not in (select 'aa' from r)

select id from l where s not in (select s || 'a' from r where s is not null)

select min(l.s || r.s) from l join r on l.k = r.k

select l.s || r.s, count(*) from l left join r on l.k = r.k group by 1

-- ordered
select distinct l.k, sum(r.d) as m from l full join r on l.k = r.k where l.v > 0 group by l.k order by 1, 2

-- cpu
select l.id, r.id from l join r on l.k2 = cast(r.k2 as decimal(38,0)) + cast(0 as decimal(38,0)) where l.v > 0 and r.v > 0

select l.id, r.id, x.m from l join r on l.s = upper(r.s), (select max(v) m from u) x where l.s || r.s <> 'z' and l.v < x.m

select l.s || u.s from l join u on l.s = u.s join (select distinct s from r) d on l.s = d.s

-- cpu
select l.id, r.id from l left join r on l.k = r.k where coalesce(l.s, r.s) in ('a', 'b', 'cc', 'd', 'e', 'ff', 'aa')

select count(*) from (select v from l order by v) a full join r on true

-- cpu
select count(*), max(1) from (select l.v, l.s from l order by l.s, l.v limit 11) a full join r on a.v = r.v

-- cpu
select l.id, r.id from l left join r on l.k = r.k and l.s || r.s like 'a%'

-- cpu
select l.id, r.id, l.s from l join r on l.k = r.k and l.s || r.s > 'c'

-- cpu
select l.id, r.id from l full join r on l.k = r.k and l.s || r.s > 'c'

-- cpu
select count(*) from l where not exists (select 1 from r where l.k = r.k and l.s || r.s > 'c')

-- cpu
select id, exists (select 1 from r where l.k = r.k and l.s || r.s > 'c') from l

-- cpu
select u.k, count(*), count(r.v), sum(r.v), min(r.s), max(r.day), avg(r.d) from u left join r on u.k = r.k group by u.k

-- cpu
select c, count(*) from (select u.k, count(r.id) filter (where r.v > 0) c from u left join r on u.k = r.k and r.s <> 'a' group by u.k) group by c

select u.k, u.s, count(*), count(e.v), sum(e.v) from u left join e on u.k = e.k group by u.k, u.s

select u.k, count(*), count(x.v), min(x.v) from u left join nokey x on u.k = x.k group by u.k

select u.k, count(*), count(x.s), max(x.d) from u left join same x on u.k = x.k group by u.k

select l.k, l.v, count(*), count(r.s), min(r.d) from (select distinct k, v from l) l left join r on l.k = r.k group by l.k, l.v

select e.k, count(r.v) from (select distinct k from e) e left join r on e.k = r.k group by e.k

select l.id, substring(u.s from 1 for 1) || l.s from l left join u on l.k = u.k

select l.id, upper(u.s) || l.s, r.id from l left join u on l.k = u.k left join r on u.v = r.v and r.d > l.d

select l.id, r.id from l full join r on l.k = r.k and reverse(r.s) <> 'ba'

-- cpu
select l.id from l semi join r on l.k = r.k and concat(l.s, r.id) not like 'a%'

select l.id from l anti join r on l.k = r.k and concat(l.s, r.id) not like 'a%'

select l.id, r.id from l full join r on l.k = r.k and concat(l.s, r.id) not like 'a%'

select id from l where k not in (select k from r where concat(l.s, r.id) not like 'a%' and r.k is not null)

-- compiled
select count(*) from l a join l b on a.k = b.k or a.v >= 0 join l c on c.v = a.v or b.v >= -5 where not (b.v >= any (select v from r where r.k = a.k and r.v < c.v or r.s > b.s))

-- cpu
select l.id, r.id, r.s from l positional join r

select u.id, l.id, n from u positional join (select * from l limit 7) l positional join range(20) x(n)

select l.id, r.v from (select * from l order by v desc, id) l positional join (select * from r order by id desc) r where l.v > 0 or r.v is null

select count(*), count(e.id), count(l.id) from e positional join l

select sum(r.v) from l positional join r where l.id % 3 = 0

-- cpu
select * from ((select id, k from l) x join (select id as n, k from r) y using (k))

select * from ((select id, k from l) x cross join (select max(id) as n from r) y)

select * from ((select id, k from l union all select id, k from r) x left join (select id as n from r) y on x.id = y.n)

select * from (((select id from l) x join (select id as n from r) y on n < x.id) join (select 5 as c) z on true)

select * from ((values (1), (2)) x(a) join (values (2)) y(a) using (a))

select l.id, y.n from l join ((select id from l) x join (select id as n from r) y on n > x.id) on l.id = x.id

select (select count(*) from ((select 2 as a) t join (select 1 as b) u on a = b))
