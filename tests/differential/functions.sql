-- tables: all_types

-- cpu
select id, abs(i32), abs(d18), abs(d38), abs(f64), abs(f32), sign(i64), sign(d9), sign(f64), floor(d9), floor(d18) from t

select id, floor(d38), ceil(d9), ceil(d38), trunc(d18), trunc(d38, 2), round(d18), round(d18, 1), round(d38, 2), round(d9, -1), floor(f64) from t

-- cpu
select id, ceil(f32), round(f64), round(f64, 2), trunc(f64), round(i32, -2), round(i16, -1), sqrt(abs(f64)), cbrt(f64), ln(abs(f64) + 1), log10(abs(f64) + 1) from t

select id, log2(abs(f64) + 1), exp(f64 / 100000), pow(f64, 2), sin(f64), atan2(f64, f32), isnan(f64), isinf(f32), isfinite(f64), i32 % 7, i32 % i16 from t

-- cpu
select id, i64 // 3, i32 // i8, d18 % 7, d9 % d18, i8 & 7, i16 | i8, xor(i32, i16), greatest(i8, i16, i32), least(d9, d18), greatest(f64, i32) from t

select id, greatest(day, DATE '1990-01-01'), least(s, w), year(day), month(day), day(day), quarter(day), week(day), dayofweek(day), isodow(day), dayofyear(day) from t

-- cpu
select id, decade(day), century(day), year(moment), hour(moment), minute(moment), second(moment), millisecond(moment), microsecond(moment), epoch(moment), epoch_ms(moment) from t

select id, date_trunc('year', day), date_trunc('quarter', day), date_trunc('month', moment), date_trunc('week', day), date_trunc('day', moment), date_trunc('hour', moment), date_trunc('minute', moment), last_day(day), last_day(moment), date_diff('day', day, DATE '2000-01-01') from t

-- cpu
select id, date_diff('month', day, DATE '2000-01-01'), date_diff('year', day, moment::DATE), date_diff('quarter', day, DATE '2000-02-01'), date_diff('week', day, DATE '2000-01-01'), date_diff('hour', moment, TIMESTAMP '2000-01-01 10:30:00'), day + 5, day - 3, day - DATE '1995-01-01', day + i8, day + INTERVAL 1 MONTH from t

select id, moment - INTERVAL '1 year 1 day 1 hour', length(s), strlen(s), ascii(s), substring(s, 2, 3), substring(s, 2), substring(s, -3, 2), substring(s, n, 2), left(s, 2), right(s, 2) from t

-- cpu
select id, left(s, -1), right(s, -2), left(s, n), trim(s), ltrim(s), rtrim(s), starts_with(s, 'a'), ends_with(s, 'n'), contains(s, 'ee'), contains(s, w) from t

select id, starts_with(s, w), strpos(s, 'e'), strpos(s, w), s LIKE '%e%', s LIKE 'a_', s NOT LIKE '%re%st%', s ILIKE 'A%', s LIKE 'b!%' ESCAPE '!', i64::DOUBLE, d38::DOUBLE from t

-- cpu
select id, d18::REAL, f32::DOUBLE, i8::DECIMAL(10,3), d18::DECIMAL(30,2), d18::DECIMAL(18,1), flag::INTEGER, i32::BOOLEAN, f64::BOOLEAN, moment::DATE, day::TIMESTAMP from t

select id, TRY_CAST(i32 AS TINYINT), TRY_CAST(d38 AS BIGINT), TRY_CAST(f64 AS INTEGER), coalesce(i8, i16, 3), coalesce(s, w, 'z'), nullif(i8, 1), nullif(s, 'a'), if(flag, s, w), if(i8 > 0, i8, d18), CASE n WHEN 0 THEN 'zero' WHEN 1 THEN 'one' ELSE s END from t

-- cpu
select id, s IN ('a', 'abc', NULL), i8 IN (1, 2, 300), i8 NOT IN (1, n), s IS DISTINCT FROM w, i8 IS NOT DISTINCT FROM i16, flag IS TRUE, flag IS NOT FALSE, f64 > f32, d9 = d18, day = moment from t

select id, i64 < d18, i64 < f64, u64 > i64, -d38, -i32::BIGINT, d9 * d18, d9 + d38, d38 / 3, i32 / i16, f32 * 2 from t

-- cpu
select id, i64 * 0.5, f64 % 3, s < w, s BETWEEN 'a' AND 'c', length(s) * i8::INTEGER, s[1:2], s[1] from t

select id, make_date(year(day), month(day), 1), dayname(day), monthname(day), strftime(day, '%d.%m.%Y'), trim(s, 'a'), upper(s), lower(s), reverse(s) from t

select id, repeat(s, 2), replace(s, 'e', 'XY'), lpad(s, 5, '*'), rpad(s, 3, 'xy'), s || w, s || '!', concat(s, w, i8), concat_ws('-', s, i8, w) from t

select id, md5(s), regexp_matches(s, 'e+'), regexp_replace(s, 'e', 'x', 'g'), regexp_extract(s, '(.)e', 1), s ~ 'a.*', chr(ascii(s) + 1), i32::VARCHAR, d18::VARCHAR from t

select id, d38::VARCHAR, day::VARCHAR, moment::VARCHAR, flag::VARCHAR, f64::VARCHAR, f32::VARCHAR, TRY_CAST(s AS INTEGER), strlen(s || w) + length(upper(w)) from t

select id, upper(substring(s, 1, 2)) = 'AB' from t

select id, s like w || '%', s ilike w, s not like coalesce(w, 'x'), s like '%' || i8::varchar || '%' from t

select bool_and(flag), bool_or(flag), count_if(i8 > 3), bool_and(n >= 0) from t

select n, count_if(i8 > 3), bool_or(flag) from t group by n

select any_value(n) from t where n = 3

select count(*) from t where i64::varchar >= coalesce(regexp_replace(s, '^.', 'z'), concat(w, i64)) and i64::varchar <= '12'

select upper(i64::varchar), i64::varchar, upper(i64::varchar) || i64::varchar, length(i64::varchar || 'x'), (i64::varchar || '0')::decimal(38, 0), i64::varchar from t
