-- tables: joins

-- cpu
with recursive t(n) as (select 1 union all select n + 1 from t where n < 40) select n, n * n from t

with recursive t(n) as (select 1 union all select n + 1.5 from t where n < 5) select n from t

with recursive t as (select 1 as n, 'a' as s union all select n + 1, s || 'b' from t where n < 5) select * from t

with recursive t(n) as (select n from (select 1 as n) union all select n + 1 from t) select * from t limit 7

-- cpu
with recursive t(n) as (select 3 union select r.v from t join r on t.n = r.k) select n from t

with recursive t(n, d) as (select k, 0 from l union select r.v, t.d + 1 from t join r on t.n = r.k where t.d < 4) select n, min(d), count(*) from t group by n

with recursive t(n) as (select v from l union select n // 2 from t) select n from t

with recursive t(n) as (select 1 union all select 1 union all select n + 1 from t where n < 3) select n from t

with recursive t(n) as (select 1 union all (select n + 1 from t where n < 4 union all select n + 2 from t where n < 3)) select n from t

with recursive t(n) as (select 1 union all select a.n + b.n from t a, t b where a.n < 50) select n from t

with recursive t(n) as (select 1 union all select n + 1 from t where n < (select max(v) from l) and n < (select max(n) + 2 from t) and n < 30) select count(*) from t

with recursive t(n) as (select null union all select 1 from t where n is null) select n from t

with recursive t(n) as (select 1 union all select n + 1 from t where n < 3), u(m) as (select 10 union all select m + n from u, t where m < 13) select m from u

with recursive t(n) as (with x as (select 5 as k) select k from x union all select n + 1 from t, x where n < k + 3) select n from t

with recursive t(n) as (select 1 union all (with y as (select n + 1 as m from t) select a.m from y a join y b on a.m = b.m where a.m < 6)) select n from t

with recursive t(n) as (select 1 union all select n + 1 from t where n < 4) select a.n, b.n from t a, t b where a.n < b.n

with recursive t(n) as (select 1 union all select sum(n) + 1 from t where n < 9 having count(*) > 0) select n from t

with recursive t(n, k, s, d, day) as (select 0, k, s, d, day from l where id < 9 union all select n + 1, r.k, r.s, r.d, r.day from t join r on t.k = r.k and t.d <= r.d where n < 2) select * from t

with recursive t(n) as (select k from e union all select n + 1 from t) select n from t

with recursive t(n, r) as (select v, 1.5 from u union all select n + 1, r + 0.1 from t where n < 3) select n, r from t where n > 0

select k from l where k in (with recursive t(n) as (select 1 union all select n * 2 from t where n < 20) select n from t)

with recursive t(n) as (select 1 union all select n + 1 from t where n < 5), w as (select n from t where n > 2) select l.id from l left join w on l.k = w.n where w.n is null

with recursive t(id, parent) as (select id, k from l where id = 7 union select l.id, l.k from t join l on l.id = t.parent) select * from t

with recursive t(n) as (select 1 union all select n + 1 from t anti join u on t.n = u.id where n < 50) select n from t

with recursive t(a, b) as (select k, v from l union select t.b, t.a from t) select a, b from t

with recursive t(n) as (select null::integer union select r.k from t join r on t.n is not distinct from r.v) select n from t

with recursive t(n) as (select k from e union select r.v from t join r on t.n = r.k) select n from t

with recursive t(n) as (select 1 from l union select 1 from t) select n from t

with recursive t(s, n) as (select s, 0 from l union select t.s || r.s, t.n + 1 from t join r on t.n = r.k where t.n < 3) select s, n from t

with recursive t(d) as (select d::double from l union select case when d > 0 then -d else 'nan'::double end from t) select d from t

with recursive t(n) as (select 0 union select (n * 7 + 3) % 50 from t) select count(*), min(n), max(n), sum(n) from t

-- cpu
with recursive t(n, m) as (select 0, 1 union select (n + m) % 20, (n * m + 1) % 20 from t join range(3) g(m2) on m2 <= n + 5) select n, m from t

with recursive t(id, path, n) as (select id, s, 0 from l where id < 4 union all select l.id, t.path || '/' || l.s, n + 1 from l join t on l.k = t.id where n < 3) select id, path from t

-- cpu
with recursive t(id, path, n) as (select id, s, 0 from l where id < 4 union all select l.id, t.path || l.s, n + 1 from t join l on t.id = l.k where n < 3) select id, n, count(*), max(path) from t group by all

with recursive w(a, b, n) as (select x.c1, x.c0, 0 from (select id c0, id c1 from l) x union all select l.k, w.a, n + 1 from w join l on w.b = l.id where n < 2) select b, n from w

-- cpu
with recursive w(n, b) as (select id, encode(s) from l where id < 4 union all select n + 2, b || encode('x') from w where n < 8) select n, b, hex(b) from w

with recursive w(k, b) as (select k, encode(s) from l union select l.v, coalesce(w.b, encode('-')) from w join l on w.k = l.id) select k, b, count(*) over (partition by b) from w

with recursive w(b) as (select null::blob union all select encode('x') from w where b is null) select b from w

-- cpu
with recursive t(n) as (select 1::bigint union all select list_sum(coalesce(case when n % 2 = 1 then [n, 1] end, [n, 2]))::bigint from t where n < 20) select n from t

with recursive t(n, s) as (select id, 'a' from l where id < 4 union all select n + 1, coalesce(case when n % 3 = 0 then [s, 'c'] end, case when n % 3 = 1 then [s, 'd', s] end, ['e', s]).array_to_string('') from t where n < 6) select n, s from t

with recursive t(n) as (select 1 union all select t.n + 1 from t left join l on [t.n, l.k] = [1, l.id] where t.n < 5) select n, count(*) from t group by n
