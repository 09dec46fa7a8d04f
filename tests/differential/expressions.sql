-- tables: all_types

select id, i8 + i16, i16 - i32, i32 * 2, i64 + 1, -i64, u8 + u16, u16 * 2, u32 + 1 from t

-- cpu
select id, i32 + i64 * 2 - i8, i64 // 7, i64 % 7, i32 // i8, i32 % i8, i64 / 3, abs(i64) from t

select id, i8 // 0, i64 % 0, i32 / 2, u8 % 3, u32 // 4 from t

-- cpu
select id, d9 + 1, d9 - d18, d9 * d9, d18 * 2, d18 + d38, -d38, d9 * 0.05, d9 * (1 - d18), d9 / 3, d18 % 7 from t

select id, d9 + d9, d18 - 0.5, i32 + 1.5, i64 * 0.01, d9 / d9, d38 + 1, abs(d9), abs(d38) from t

-- cpu
select id, f64 + 1, f64 * f32, f32 + f32, f32 * 2, f64 / 3, f64 / 0, -f64, f64 + i32, f64 + d9, abs(f64), f32 / 2 from t

select id, i64 = 3, i64 <> i32, i64 < i8, i8 <= 50, i16 > i64, u8 >= i8, u64 > 10, u32 = i64 from t

-- cpu
select id, d9 = d18, d9 < 1.5, d18 >= 10, d38 > d9, d9 between -100 and 100.5, d18 not between -1.25 and 20000 from t

select id, f64 = f32, f64 < 0, f32 >= i8, f64 > d9, f64 between -1 and 1, f32 <> 0.5 from t

-- cpu
select id, s = 'red', s < 'green', s >= w, w <> 'abc', w > s, s between 'b' and 'h', w = '' from t

select id, day = date '1970-01-01', day < date '1969-12-31', day between date '1950-06-01' and date '1999-12-31' from t

select id, moment < timestamp '1970-01-01 00:00:00', moment >= timestamp '1980-05-05 12:30:00', day < moment, moment = day from t

-- cpu
select id, flag and i64 > 0, flag or i64 > 0, not flag, flag and null, flag or null, flag = (i8 > 0) from t

select id, (i8 > 0) is true, flag is not true, flag is false, flag is null, (flag is null) = (i8 is null) from t

-- cpu
select id, i64 is null, s is not null, d38 is null, f64 is not null, day is null, (i64 + d9) is null from t

select id, i64 is distinct from i32, s is not distinct from w, d9 is distinct from null, f64 is not distinct from f32 from t

-- cpu
select id, i64 in (1, 2, 3, 50), i32 not in (1, 2, null), s in ('red', 'blue'), w not in ('a', ''), d9 in (1, 2.5) from t

select id, i64 in (i32, i16, 5), day in (date '1970-01-01', date '1980-01-01'), null in (1), i8 in (null) from t

-- cpu
select id, case when i64 > 50 then 'high' when i64 > 0 then 'mid' when i64 is null then null else 'low' end from t

select id, case i8 when 1 then 10 when 2 then 20 else i8 end, case when flag then d9 else d18 end from t

-- cpu
select id, case when flag then i64 else 1.5 end, case when flag then f64 end, case s when 'red' then w else s end from t

select id, case when i64 <> 0 then 100 // i64 else 0 end, case when i32 > 0 then case when flag then 1 else 2 end end from t

-- cpu
select id, coalesce(i64, i32, 0), coalesce(d9, d18), coalesce(s, w, 'none'), coalesce(f64, 0), coalesce(day, moment) from t

select id, nullif(i64, 0), nullif(s, 'red'), nullif(d9, d9), nullif(f64, 0.0), nullif(1, null) from t

-- cpu
select id, w like 'a%', w like '%e%', w like '_', w like '%green%', w like '%r%st%', w not like '%a%', s like 'r_d' from t

select id, w like 'b!%%' escape '!', w like '%\_%' escape '\', w like '', w like '%', w like 'ab' from t

select id, w ilike 'A%', s ilike '%EE%', w not ilike '%B%' from t

-- cpu
select id, extract(year from day), extract(month from day), extract(day from day), year(moment), month(moment), day(moment) from t

select id, extract(hour from moment), extract(minute from moment), extract(second from moment) from t

-- cpu
select id, day + 1, day - 30, day - date '2000-01-01', day + interval '1' month, day - interval '1' year from t

select id, moment + interval '3' day, moment - interval '2' hour, day + interval '13' month, moment + interval '90' minute from t

select id, date '1998-12-01' - interval '90' day, date '2000-01-31' + interval '1' month, date '2024-02-29' - interval '1' year from one

-- cpu
select id, substring(w from 1 for 2), substring(w from 2), substring(s, 2, 2), substring(w, -2), substring(w, 0, 2) from t

select id, s || '-' || w, 'x' || s, concat(s, w, null) from t

select id, length(w), upper(s), lower(w), trim('  ' || s || ' ') from t

select id, starts_with(w, 'a'), w || s = 'abcred', substring(s from 1 for 1) = 'r' from t

-- cpu
select id, cast(i64 as double), cast(i64 as smallint), cast(d9 as integer), cast(d18 as double), cast(i32 as decimal(10, 2)) from t

select id, cast(f64 as bigint), cast(f64 as decimal(12, 3)), cast(f32 as double), cast(f64 as float), cast(i8 as boolean) from t

select id, cast(d18 as decimal(10, 2)), cast(d9 as decimal(38, 10)), cast(d38 as bigint), cast(flag as integer), cast(u8 as tinyint) from t

select id, cast(day as timestamp), cast(moment as date), cast('1995-03-15' as date), cast(null as integer) from t

select id, cast(i64 as varchar), cast(d9 as varchar), cast(day as varchar), cast(flag as varchar) from t

select cast('12' as integer), cast('-1.25' as decimal(5, 2)), cast('1e3' as double), cast('true' as boolean) from one

-- cpu
select id from t where i64 > 0 and s = 'red' or d9 < 0 and not flag

select id from t where not (i64 > 0 and flag) and not (s = 'red' or s is null)

select id from t where null

select id from t where flag

-- cpu
select id from t where i64 > 1000

select * from t where id < 3

select t.*, i64 + 1 as more from t where id = 5

select * from empty

select i64 + 1, s || 'x', case when flag then 1 end, d9 * d18 from empty where i64 > 0

select * from one

-- cpu
select i64 + 1, d9 * 2, s = 'a', coalesce(i32, 7), f64 + 1, day + 1, case when flag then 1 else 2 end from nulls

-- cpu
select id, i64 * 2 + i32 as x, x_ + 1 from (select id, i64, i32, i64 - 1 as x_ from dense) as q where x_ > -50

select 1, 'a', 1.5, null, true, date '1970-01-02', 1e3, -5, 3000000000

select 1 + 1, 7 // 2, -7 // 2, -7 % 3, 7 / 2, 1.5 * 2, 'a' || 'b', 10 - 2.25, 2 > 1, 1 = 1.0

select 1 as a, a + 1 as b from one

select u8 + i32, u8 * i16, u16 - i32, i8 + u8, u16 + i16, u32 + i32, u8 // i32, u8 % i32 from t where i32 <> 0 and i8 > 0

select id, cast(d9 as decimal(12,2)) = cast(i32 as decimal(38,0)), cast(-0.5 as decimal(12,2)) = cast(i32 as decimal(38,0)) from t

-- cpu
select id, i8 // null, null // u64, i16 & null, null | u64 from t

-- cpu
select id, u64 & 3, 5 | u64, xor(u64, u8), u64 & u32, u64 | u64, (u64 // 3) & 7 from t

-- cpu
select id, +u64, -+i32, +d9 * +f64, i8 + +1, u8 - - +1 from t where +i64 > +1 or +flag::int = +1

-- cpu
select +i8, count(*), sum(+n) from t group by +i8 order by +i8, +1

-- cpu
select id, (u64 // i64 // i8)::varchar, (-(u64 // i64) // 2)::varchar, (18446744073709551616 // i32)::varchar from t where i64 <> 0 and i8 <> 0 and i32 <> 0

-- cpu
select id, @i64, @ -i8, @i8 - 3, 2 * @f64, @(i32 + 1) % 5 = 2, - @i16 from t where i64 > -9223372036854775808 and i8 > -128

-- cpu
select @(i8 % 3) as k, count(*), sum(@ -i16) from t where i8 > -128 group by @(i8 % 3) having @(k) >= 0 order by k

-- cpu
select id, @null, @ null + 1, @case when i8 > 0 then -i8 end from t
