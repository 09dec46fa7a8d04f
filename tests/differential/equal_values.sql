-- tables: edges

select f::varchar a, count(*) n from zeros group by f, f::varchar

select f, 1 / f x, count(*) n from zeros where f is not null group by f, 1 / f

select a.k, a.f::varchar, b.f::varchar, b.k from zeros a join zeros b on a.f = b.f

select a.k, a.f::varchar, b.f::varchar from zeros a, zeros b where a.f = b.f and b.f::varchar = '0.0'

select a.k, a.r::varchar, b.f::varchar from zeros a, zeros b where a.r = b.f and b.f::varchar in ('0.0', 'nan') and a.r::double > -1

select k, f::varchar from zeros where f = 0.0

select count(*) n from zeros where f = 0.0 and f::varchar = '-0.0'

-- cpu
select k, sum(k) over (partition by f, f::varchar) s, count(*) over (partition by r, 1 / r) c from zeros

select k, row_number() over (partition by f, f::varchar order by k) n, rank() over (order by r, r::varchar) m from zeros

select count(distinct (f, f::varchar)) n, count(distinct f) m, count(distinct r::varchar) o from zeros

select a.k, b.k from zeros a join (select f, f::varchar v, min(k) k from zeros group by f, f::varchar) b on a.f = b.f and a.f::varchar = b.v

select f::varchar x, count(*) n from zeros group by rollup(f, f::varchar)

select max(k) m, f::varchar v from zeros group by f::varchar, f having f = 0.0

select x::varchar v, count(*) n from (select case when f = 0.0 then f end x from zeros) group by x, x::varchar

select atan2(f, -1.0) a, count(*) n from zeros where not isnan(f) group by f, atan2(f, -1.0)

pivot (select f g, f p, k from zeros where not isnan(f)) on p using sum(k) a, count(distinct k) b group by g

select interval (k) month i, count(*) n from zeros group by interval (k) month, (interval (k) month)::varchar

select i, extract(month from i) m, count(*) n from (select case when k < 3 then interval '1 month' else interval '30 days' end i from zeros)
group by i, extract(month from i)
