-- tables: structs

-- cpu
select * from r

-- cpu
select k, s.a, s.b, s.c[1], t.x, s['a'], struct_extract(s, 'b'), r.s.c, (s).a from r

select s.*, t.* from r

select unnest(s), unnest(t) from r

-- cpu
select {'a': k, 'b': s.b}, struct_pack(x := k, "y z" := [k]), row(k, s.a), (k, s), {a: {'b': {c: k}}}.a.b.c from r

-- cpu
select s, count(*), sum(k) from r group by s

select distinct t, s.a from r

-- cpu
select x.k, y.k from r x left join r y on x.s = y.s and x.k <> y.k

select x.k, y.k from r x join r y using (t)

select s from r union select {'a': 5, 'b': 'x', 'c': [1]} union all (select s from r intersect select s from r where k > 1)

-- ordered
select s, k from r order by s, k

-- ordered
select t, k from r order by t desc nulls last, k

select k, rank() over (order by s), count(*) over (partition by t), lag(s) over (order by k), first_value(t) over (order by s, k) from r

select min(s), max(s), max(t), count(distinct s), mode(s order by s), arg_max(k, s), arg_min(s, k), first(s order by k), max(s).a from r

select list(s order by k), list({'k': k, 'd': t.x} order by k) from r

select s is null, s = {'a': 1, 'b': 'x', 'c': [1, null]}, s < {'a': 2, 'b': '', 'c': []}, s is distinct from s, {'a': k} = {'a': s.a} from r

select {'a': 1, 'b': 2} = {'b': 2, 'a': 1}, row(1, 2) = {'a': 1, 'b': 2}, {'a': 1} = {'b': 1}, {'a': null} is null, row(1, null) < row(1, 2)

select s::varchar, t::varchar, row(k, s.b)::varchar, [s]::varchar, {'a b': null, 'c': 'x, y', 'd''e': ''}::varchar from r

select s::struct(a bigint, b varchar, c double[]), s::struct(c varchar, d int), row(k, 2)::struct(p int, q varchar), try_cast({'a': s.b} as struct(a int)) from r

select coalesce(s, {'a': 0, 'b': 'none', 'c': []}), case when k < 3 then s end, nullif(s, s), greatest(t, {'x': 2.5, 'y': null}) from r

select {'a': 1} union all select {'b': 2.5} union all select null

select [{'a': 1}, {'b': 2}], list_sort([s, {'a': 0, 'b': 'q', 'c': null}]), list_contains([t], t), list_transform([s], lambda e: e.a + k) from r

select struct_insert(s, d := k), struct_concat(s, {'z': 1}), struct_keys(s), struct_values(t), struct_update(t, x := 1.5, w := 2) from r

select k from r where s in ({'a': 1, 'b': 'x', 'c': [1, null]}, {'a': null, 'b': null, 'c': null}) or (k, s.a) in ((2, 3), (4, 5)) or s in (select s from r where k = 2)

select s.a, count(*), max(t.x) from r where s.b <> 'q' or s.b is null group by s.a having count(*) > 0 order by s.a

select (select max(s) from r y where y.s.a = x.s.a), exists (select 1 from r y where y.t = x.t and y.k > x.k) from r x

select x.a, x from (select unnest([s, {'a': 7, 'b': 'n', 'c': []}]) x from r)

select typeof({'key': 1, 'b c': 'x', 'D': null}), typeof(row(1, [2])), hash(s) = hash(s) from r
