"""Names that DuckDB 1.5.5 has, whether gquery has them or not (a test compares): an error tells what is missing from what was
misspelt."""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# functions that stand before OVER alone
WINDOWS = _words(
    """
    cume_dist dense_rank fill first_value lag last_value lead nth_value ntile percent_rank rank rank_dense row_number
    """
)
AGGREGATES = _words(
    """
    any_value approx_count_distinct approx_quantile approx_top_k arbitrary arg_max arg_max_null arg_max_nulls_last arg_min
    arg_min_null arg_min_nulls_last argmax argmin array_agg avg bit_and bit_or bit_xor bitstring_agg bool_and bool_or corr
    count count_if count_star countif covar_pop covar_samp entropy favg first fsum group_concat histogram histogram_exact
    kahan_sum kurtosis kurtosis_pop last list listagg mad max max_by mean median min min_by mode product quantile
    quantile_cont quantile_disc regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy
    regr_syy reservoir_quantile sem skewness stddev stddev_pop stddev_samp string_agg sum sum_no_overflow sumkahan var_pop
    var_samp variance
    """
)
