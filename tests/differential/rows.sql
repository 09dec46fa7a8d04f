-- tables: shared

-- cpu
select (x, y) < (3, 31) a, (x, y) <= (3, 31) b, (x, y) > (3, 31) c, (x, y) >= (3, 31) d, (x, y) = (3, 31) e, (x, y) <> (3, 31) f from t

select (x, y) < (2, null) a, (x, y) >= (2, null) b, (x, y) = (2, null) c, (null, y) > (x, 1) d from t

select (1, null) = (1, null) a, (null, 1) < (1, 1) b, (1, 1) < (1, null) c, (1, 2) is distinct from (1, null) d, (1, null) is not distinct
from (1, null) e

select (x, y) in ((1, 10), (2, null), (null, 40)) a, (x, w) not in ((1, 'a'), (3, null)) b from t

select (x, y % 10) in (select x, z from s where x + z > 0) a from t where x + y > 0

select (x, w) between (1, 'b') and (3, 'a') a, (x, w) not between (1, 'b') and (3, 'a') b from t

-- cpu
select * from t where (x, w, y) > (2, 'a', 20)

select * from t join s on (t.x, t.y % 10) = (s.x, s.z)

select x = any([1, 2]) a, x > all([0, null]) b, x <> all([]) c, x = any([]) d, x < some([2, y]) e, w = any(['a', 'z']) f from t

select x = any(values (1), (2)) a, (x, y) = any(select x, y from t) b from t

select sum((select max(s.z) from s where s.x <= t.x)) n from t

select (select max(s.z) from s where s.x <= t.x) g, count(*) from t group by (select max(s.z) from s where s.x <= t.x)

select x from t group by x having (select count(*) from s where s.x = t.x) > 1

select * from t join s on t.x = (select max(x) from s) - 2

values ((select 1)), ((select max(x) from t))

-- cpu
select columns(*) from t

select min(columns(*)), max(columns(* exclude (w))) from t

select columns('x|w') from t

select columns('^(.).*$') as 'c_\1' from t

select columns(t.*) from t join s using (x)

select x, (select max(columns('^z$')) from s) m from t

select columns('^x$') + (select count(columns('^z$')) from s) from t

select columns(*), s.x from t left join s using (x)

select columns(* exclude (w)) + columns(* exclude (w)) from t

select sum(columns(* exclude w)) from t group by w order by w

select x from t where columns(* exclude (w)) > 2

select * like 'x%' from t

select * not like 'x%', x + 1 as z from t

select * similar to '[xw]' from t

from t select x where y > 10

from (values (1, 'x'), (2, 'y')) v(p, q) select q, p

select (x, a) = (1, b) c, (x, a) < (1, b) d, (x, b) <= (x, a) e, (x, a) in ((1, b), (2, a)) f, (x, a) between (x, b) and (x, b) g, row(x, a) is distinct from row(x, b) h from t, (values (1.5599::decimal(18, 4), 1.56::decimal(38, 2)), (1.5449, 1.54), (-3, 999999999999999999999999999999999999.99), (null, 0)) v(a, b)

select x, a in (select b from (values (1.5599::decimal(18, 4), 1.56::decimal(38, 2)), (1.5449, 1.54), (-3, 999999999999999999999999999999999999.99), (null, 0)) v(a, b)) c, (1, a) not in (select 1, b from (values (1.5599::decimal(18, 4), 1.56::decimal(38, 2)), (1.5449, 1.54), (-3, 999999999999999999999999999999999999.99), (null, 0)) v(a, b)) d, a >= all(select b from (values (1.5599::decimal(18, 4), 1.56::decimal(38, 2)), (1.5449, 1.54), (-3, 999999999999999999999999999999999999.99), (null, 0)) v(a, b)) e, a = any([b, 1]) f, a < all([b, b]) g from t, (values (1.5599::decimal(18, 4), 1.56::decimal(38, 2)), (1.5449, 1.54), (-3, 999999999999999999999999999999999999.99), (null, 0)) v(a, b)
