"""Words that mean more to sqlglot than a name.

They are those of its tokenizer and of `gquery.sql.vocabulary`, written down so that plain statements need neither, which takes
2 ms. A test compares them (`tests/sql/test_dialect.py`). A word that a later sqlglot has beside them is a name here, as it is by
DuckDB's grammar, which has read it.
"""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


TAKEN = _words(
    """
    all alter analyze and anti any apply array as asc asof attach auto_increment autoincrement begin between bigdecimal
    bigint bignum bignumeric binary bit bitstring blob bool boolean bpchar byte bytea cache call case char character clob
    cluster collate column comment commit connect constraint copy create cross cube current_catalog current_date
    current_schema current_time current_timestamp current_user database date datemultirange daterange datetime dec
    decfloat decimal decimal128 decimal256 decimal32 decimal64 default delete desc describe detach disconnect distinct
    distribute div double drop else end enum escape except execute exists explain false fetch file filter first fixed
    float float4 float8 for force foreign format from full function geography geometry glob grant group grouping having
    hugeint ilike in index inet inner insert install int int1 int128 int16 int2 int256 int32 int4 int4multirange int4range
    int64 int8 int8multirange int8range integer intersect interval into is isnull join json jsonb keep kill lateral left
    like limit list load localtime localtimestamp lock logical long longblob longtext longvarchar macro map mediumblob
    mediumint mediumtext merge namespace natural nchar next not notnull null nullable number numeric nummultirange
    numrange nvarchar nvarchar2 object offset on only operator optimize or order ordinality out outer over overlaps
    overwrite partition partitioned partitioned_by percent pivot pivot_wider positional pragma prepare primary procedure
    qualify range real recursive ref references regexp rename replace reset returning revoke right rlike rollback rollup
    row rows schema select semi sequence session session_user set settings short show signed similar smallint some sql str
    straight_join string struct summarize table tablesample temp temporary text then time time_ns timestamp timestamp_ltz
    timestamp_ms timestamp_ns timestamp_ntz timestamp_s timestamp_us timestampltz timestampntz timestamptz timetz tinyblob
    tinyint tinytext trigger true truncate tsmultirange tsrange tstzmultirange tstzrange ubigint uhugeint uint uint128
    uint256 uinteger uncache union unique unknown unnest unpivot update use user using usmallint utinyint uuid vacuum
    values varbinary varchar varchar2 variant vector view volatile when where window with xor
    """
)
