"""``col("xs").list``: Polars' methods of lists, written with SQL's functions. Places count from 0."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gquery.api.dataframe.namespaces import _Of
from gquery.runtime.arguments import checked

if TYPE_CHECKING:
    from gquery.api.dataframe.expression import Expression


@checked
class ListMethods(_Of):
    """Methods of lists. A NULL list gives NULL."""

    def len(self) -> Expression:
        """How many elements there are."""
        return self._call("len")

    def get(self, index: int) -> Expression:
        """The element at a place, from the end where it is negative; NULL where there is none."""
        return self._call("list_extract", index + 1 if index >= 0 else index)

    def first(self) -> Expression:
        """The first element."""
        return self.get(0)

    def last(self) -> Expression:
        """The last element."""
        return self.get(-1)

    def contains(self, item: Any) -> Expression:
        """Whether an element is the item."""
        return self._call("list_contains", item)

    def sum(self) -> Expression:
        """The sum of the elements; 0 of none."""
        from gquery.api.dataframe.expression import call, when

        return when(self._of.is_not_null()).then(call("coalesce", self._call("list_sum"), 0))

    def mean(self) -> Expression:
        """The mean of the elements."""
        return self._call("list_avg")

    def min(self) -> Expression:
        """The least element."""
        return self._call("list_min")

    def max(self) -> Expression:
        """The greatest element."""
        return self._call("list_max")

    def sort(self, descending: bool = False, nulls_last: bool = False) -> Expression:
        """The elements in order, NULLs first unless it is said otherwise."""
        return self._call("list_sort", "DESC" if descending else "ASC", "NULLS LAST" if nulls_last else "NULLS FIRST")

    def reverse(self) -> Expression:
        """The elements from last to first."""
        return self._call("list_reverse")

    def join(self, separator: str) -> Expression:
        """The texts of the elements that are no NULL, with a separator between them."""
        return self._call("array_to_string", separator)

    def head(self, n: int = 5) -> Expression:
        """The first elements."""
        return self._call("list_slice", 1, n)

    def slice(self, offset: int, length: int) -> Expression:
        """So many elements from a place on."""
        return self._call("list_slice", offset + 1, offset + length)
