-- tables: edges

-- cpu
select i8, i16, i32, i64, u8, u16, u32, u64 from ints

-- cpu
select min(i8), max(i16), min(i32), max(i64), min(i64), max(u8), max(u16), max(u32), max(u64), count(u64) from ints

select i64 // 2, i64 % 10, i64 / 2, u64 // 2, u64 % 10, i32 // -1 from ints where i32 is null or i32 > -2147483648

select i64 > u64, i64 < u32, u64 > 9223372036854775807, i8 = u8 from ints

-- cpu
select i64, count(*) from ints group by i64

select u64, count(*), min(i8) from ints group by u64

-- ordered
select u64, i64 from ints order by u64 desc nulls last, i64

-- ordered
select i64 from ints order by i64 desc nulls first

select a.i64, b.u64 from ints as a join ints as b on a.i64 = b.u64

select a.u64 from ints as a join ints as b on a.u64 = b.u64

select sum(i32), sum(u32), avg(i64), avg(i32), avg(u64) from ints

select sum(i8), sum(i16), sum(u8), sum(u16), avg(i8) from ints

select i16 + i32, i32 + 0, i16 * 2::integer from ints where i32 = 0 or i32 is null

select i64::double, i64::decimal(19, 0), u64::decimal(20, 0), u64::double from ints

-- cpu
select d18, d19, d38, s38 from decs

select d19 + d19, d19 + 1, d18 - d19, -d38, -d19, d19 * 2 from decs

-- cpu
select k, sum(d18), sum(d19), min(d38), max(d38), count(d38), min(s38), max(d19) from decs group by k

select sum(d18), sum(d19), avg(d18), avg(d19), min(d19), max(d38), min(s38), sum(s38) from decs

select d38 > d19, d38 = d38, d19 < d18, d19 between -5 and 9223372036854775807 from decs

-- cpu
select d38, count(*) from decs group by d38

select a.k, b.k from decs as a join decs as b on a.d38 = b.d38

select a.k, b.k from decs as a join decs as b on a.d19 = b.d18

-- ordered
select d38, d19 from decs order by d38 desc nulls last

-- ordered
select d19, s38 from decs order by d19, s38

select distinct d38 from decs where d38 > 0

select count(distinct d38), count(distinct s38) from decs

select d19 * d19, d18 * d19, d18 * 0.001, d38 / 10, d18 % 7 from decs

select d18::double, d19::double, d18::bigint, s38::double, d18::decimal(38, 10) from decs

select k, d38 from decs where d38 in (18446744073709551616, -18446744073709551616)

-- cpu
select day, extract(year from day), extract(month from day), extract(day from day), day < date '1970-01-01' from dates

-- cpu
select moment, extract(year from moment), extract(month from moment), extract(day from moment), extract(hour from moment), extract(second from moment) from dates

select day - date '1970-01-01', day - 1 from dates where day > date '0001-01-01'

select day + 1, day + interval '1' month, day + interval '1' year from dates where day < date '9999-01-01'

select moment + interval '1' second, moment - interval '1' microsecond, moment::date from dates where year(moment) between 2 and 9998

select day::timestamp, moment::date, day = moment from dates

select min(day), max(day), min(moment), max(moment), count(day) from dates

select extract(quarter from day), extract(dow from day), extract(doy from day) from dates

-- cpu
select x, y, z, x + y, x * y, x / y, -x, abs(x), z + z from floats

-- cpu
select x = y, x < y, x >= y, x <> x, x = x, z > 1, x is null, x between 0 and 2 from floats

-- ordered
select x from floats order by x desc nulls last

-- ordered
select x, y from floats order by x, y

-- cpu
select x, count(*) from floats group by x

select y, count(*), min(z), max(z) from floats group by y

select min(x), max(x), min(z), max(z), count(x) from floats

select a.x, b.y from floats as a join floats as b on a.x = b.y

select distinct x from floats

select count(distinct x), count(distinct z) from floats

select x::float, z::double from floats where x < 1e30 or x is null

select sum(y), avg(y) from floats where y < 100

select case when x > y then x else y end, coalesce(x, y), nullif(x, y) from floats

select x in (0, 1.5), x in ('nan'::double) from floats

-- cpu
select a.d19, b.i64 from decs a join ints b on a.d19 = b.i64

select a.d19, b.i64 from decs a full join ints b on a.d19 = b.i64

-- cpu
select b.u64, a.d38 from decs a join ints b on a.d38 = b.u64 + cast(1 as decimal(38,0))

-- cpu
select x, try_cast(x as ubigint), try_cast(x - 0.5 as utinyint), try_cast(x as decimal(38,0)), try_cast(x - 2 as decimal(18,0)), try_cast(z as decimal(38,10)), try_cast(z as tinyint) from floats

select cast(v.x as utinyint), cast(v.x as ubigint), cast(v.x as decimal(38,0)) from (values (0.5e0), (1.5e0), (2.5e0)) v(x)

select a.s38, b.d19, a.s38 = b.d19, a.s38 < b.d19 from decs a, decs b where b.d19 = 0

select cast(i8 as decimal(12,2)) / 2 from ints

select y, try_cast(x as real), try_cast(x * 10 as real), cast(y * 1e30 as real) from floats

select try_cast(v.x as real) from (values (1e300), (-1e300), (3.4028235e38), (3.4028236e38), (1e-300), (0e0)) v(x)

-- one rank
select avg(d38), avg(d38 / 1), sum(s38), avg(s38) from decs

select x from (values (0.01), (999999999999999999999999999999999999.99), (-1234567890123456789012345678901234.56)) v(x)

-- cpu
select i8, i8 in (18446744073709551615, 1), i64 not in (99999999999999999999, -99999999999999999999), i64 in (12345678901234567890.12345, 1) from ints
