"""Statements that change a table: CREATE TABLE with columns, INSERT, UPDATE, DELETE and TRUNCATE.

sqlglot is given the query in them: the rows of INSERT, those that DELETE takes away, and the new values of UPDATE over the
rows that it changes. What else there is stands in a `Form` (`gquery.sql.binding.changes`).
"""

from __future__ import annotations

from gquery.errors import ParseError
from gquery.runtime.records import replace
from gquery.sql.grammar.constraints import OF_TABLE, Said
from gquery.sql.grammar.merge import MergeReader
from gquery.sql.grammar.tokens import AS_NAME, Form, marked
from gquery.sql.lexer import QUOTED, SYMBOL, WORD
from gquery.sql.schemas import joined, last, split

DEFAULT = "default"  # marks the word where it is a value
CHANGES = frozenset(("insert", "update", "delete", "truncate", "merge"))


def said(name: str) -> list[str]:
    """A table's name as sqlglot reads it."""
    return [word for part in split(name) for word in (".", AS_NAME + part)][1:]


class ChangeReader(MergeReader):
    """Reads such statements; `query` is for who reads queries."""

    def change(self, start: int | None = None) -> None:
        """One of `CHANGES`; ``start`` is that of CTEs before it."""
        match self.word:
            case "insert":
                self._insert(start)
            case "update":
                self._update()
            case "delete":
                self._delete()
            case "merge":
                self._merge()
            case _:
                self._truncate()
                return
        if self.peek(0) == "returning":
            self._returning()

    def has_change(self) -> bool:
        """Whether a change of a table begins here, behind WITH or not."""
        if self.word != "with":
            return self.word in CHANGES
        depth = 0
        for n in range(self.at, self.behind):
            word = self.words[n] if self.kinds[n] in (WORD, SYMBOL) else ""
            depth += (word == "(") - (word == ")")
            if depth == 0 and word in ("select", "from", "values", "insert", "update", "delete"):
                return word in CHANGES
        return False

    def columns_follow(self) -> bool:
        """Whether names and types of columns stand in the parentheses that begin here, and not names alone."""
        return self.peek(2) not in (",", ")")

    def define(self, first: int, name: str, options: tuple[str, ...]) -> None:
        """``(name type constraints, ...)`` of a CREATE TABLE that begins at ``first``: a query of NULLs of these types."""
        here = self.at
        self.go(first)
        while self.at < here:
            self.blank()
        names: list[str] = []
        said: list[Said] = []
        closed: list[int] = []
        while True:
            if self.word in OF_TABLE:
                said.append(self.table_constraint())
            else:
                names.append(self._column_name())
                self.edit(self.at - 1, ("," if len(names) > 1 else "select", "cast", "(", "null", "as"))
                self._type()
                closed.append(self.at)  # what stands there is hidden else
                said += self.column_constraints(names[-1])
            if self.word not in (",", ")"):
                raise self.unexpected(", or )")
            if self.word == ")":
                break
            self.blank()
            if self.word == ")":
                raise self.unexpected("a column")
        self.blank()
        if not names:
            raise ParseError("CREATE TABLE needs a column at least")
        starts = {self.starts[n] for n in closed}
        self.reading.blanks[:] = [b for b in self.reading.blanks if b[0] not in starts]
        for n in closed:
            self.edit(n, (")",))
        given = (*((o, True) for o in options), ("constraints", tuple(said)))
        self.reading.form = Form("define", name, names=tuple(names), options=given)

    # ---- the statements ------------------------------------------------------------------------------------------------

    def _insert(self, start: int | None) -> None:
        self.blank()
        conflict = self.insert_or()
        self._blank("into")
        name, names, by_name = self._blank_table(), [], False
        if self.word == "(" and not self.starts_query():
            self.blank()
            while True:
                names.append(self._column_name(is_read=False))
                if self.word != ",":
                    break
                self.blank()
            self._blank(")")
        if self.word == "by":
            self.blank()
            by_name = self.word == "name"
            self._blank("name" if by_name else "position")
        is_default = self.word == "default" and not names and not by_name
        if is_default:
            self.say("select", "null")
            self._blank("values")
            is_marked = False
        else:
            is_marked = self._say_defaults()
            self._rows_of_insert(start)
        if by_name and names:
            raise ParseError("INSERT BY NAME takes the names of its query, and no list of columns")
        if self.peek(0) == "on":
            if conflict is not None:
                raise ParseError("INSERT OR has no ON CONFLICT besides")
            conflict = self.on_conflict()
        options = (("by_name", by_name), ("default", is_default), ("marked", is_marked), ("conflict", conflict))
        self.reading.form = Form("insert", name, names=tuple(names), options=options)

    def _rows_of_insert(self, start: int | None) -> None:
        """The query; sqlglot takes no VALUES behind CTEs but in FROM."""
        is_in_from = start is not None and self.word == "values"
        if is_in_from:
            self.say_before("select", "*", "from", "(")
        self.query(start)
        if is_in_from:
            self.say_before(")")

    def _say_defaults(self) -> bool:
        """A mark for each DEFAULT that is a value of VALUES; whether there is one."""
        if self.word != "values":
            return False
        self.words, self.shown, depth, is_marked = [*self.words], [*self.shown], 0, False
        for n in range(self.at, self.behind):
            word = self.words[n] if self.kinds[n] in (WORD, SYMBOL) else ""
            depth += (word in ("(", "[", "{")) - (word in (")", "]", "}"))
            if word == "default" and depth == 1 and self.words[n - 1] in ("(", ",") and self.words[n + 1] in (")", ","):
                self.words[n] = self.shown[n] = "null"
                self.edit(n, (marked(DEFAULT),))
                is_marked = True
        return is_marked

    def _delete(self) -> None:
        self.say("select", "*")
        self.expect("from")
        name = self._name_of_table()
        self._table_name()
        self._alias()
        others = self.word == "using"
        if others:
            self._others()
        if self.take("where"):
            self.expression()
        self.reading.form = Form("delete", name, options=(("others", others),))

    def _truncate(self) -> None:
        self.blank()
        if self.word == "table":
            self.blank()
        name = self._name_of_table()
        self.say_before("from")
        self._table_name()
        self.say_before("select", "*")
        self.reading.form = Form("delete", name, options=(("others", False),))

    def _update(self) -> None:
        self.say("select")
        name = self._blank_table()
        alias = last(name)
        if self.word == "as":
            self.blank()
            alias = self._column_name(is_read=False)
        elif self.is_column_name() and self.word != "set":
            alias = self._column_name(is_read=False)
        self._blank("set")
        names: list[str] = []
        is_marked = False
        while True:
            is_marked |= self._assigned_row(names) if self.word == "(" else self._assigned(names)
            if not self.take(","):
                break
        self.say_before("from", *said(name), *(("as", AS_NAME + alias) if alias != last(name) else ()))
        others = self.word == "from"
        if others:
            self._others()
        if self.take("where"):
            self.expression()
        self.reading.form = Form("update", name, alias, tuple(names), (("others", others), ("marked", is_marked)))

    def _assigned(self, names: list[str]) -> bool:
        """``a = value``, whose name is added. Whether the value is DEFAULT."""
        names.append(self._column_name(is_read=False))
        self._blank("=")
        return self._new_value()

    def _assigned_row(self, names: list[str]) -> bool:
        """``(a, b) = (value, value)``, the same for several columns."""
        self.blank()
        many = [self._column_name(is_read=False)]
        while self.word == ",":
            self.blank()
            many.append(self._column_name(is_read=False))
        names += many
        self._blank(")")
        self._blank("=")
        if self.word == "row":
            self.blank()
        self._blank("(")
        is_marked = self._new_value()
        for _ in many[1:]:
            self.expect(",", "a value for each column")
            is_marked |= self._new_value()
        self._blank(")")
        return is_marked

    def _new_value(self) -> bool:
        """What UPDATE sets a column to. Whether that is DEFAULT."""
        if self.word == "default":
            self.say(marked(DEFAULT))
            return True
        self.expression()
        return False

    def _merge(self) -> None:
        self.say("select", marked("merge"))
        self._blank("into")
        name = self._blank_table()
        alias = last(name)
        if self.word == "as" or (self.is_column_name() and self.word != "using"):
            if self.word == "as":
                self.blank()
            alias = self._column_name(is_read=False)
        self.merged(name, alias)

    def _others(self) -> None:
        """The tables that a table is changed by, behind it and a comma."""
        self.say(",")
        self._from(is_first=True)

    def _returning(self) -> None:
        """``RETURNING list``, which is a query of its own: sqlglot does not see it here."""
        first, leaves, spans, edits, made = self.mark()
        self.next()
        self._targets()
        behind, r = self.at, self.reading
        del r.leaves[leaves:], r.spans[spans:], r.edits[edits:], r.made[made:]
        self.go(first)
        while self.at < behind:
            self.blank()
        form = self.reading.form
        assert form is not None
        place = self.starts[first], self.ends[behind - 1] + 1
        self.reading.form = replace(form, options=(*form.options, ("returning", place)))

    # ---- words -----------------------------------------------------------------------------------------------------------

    def _blank(self, word: str) -> None:
        """Hides a word that has to be here."""
        if self.word != word:
            raise self.unexpected(word.upper())
        self.blank()

    def _text_of_name(self) -> str:
        """The name that begins here: its last part."""
        at = self.at
        while at + 2 < self.behind and self.words[at + 1] == ".":
            at += 2
        return self._text_at(at)

    def _text_at(self, at: int) -> str:
        """The name that a token is."""
        text = self.words[at]
        is_quoted = self.kinds[at] == QUOTED
        return text[1:-1].replace('""', '"') if is_quoted else self.sql[self.starts[at] :][: len(text)]

    def _name_of_table(self) -> str:
        """The name of a table to make or to change, with its schema where that is written (`sql.schemas`)."""
        parts, at = [self._text_at(self.at)], self.at
        while at + 2 < self.behind and self.words[at + 1] == ".":
            at += 2
            parts.append(self._text_at(at))
        return joined(parts)

    def _blank_table(self) -> str:
        """Hides a table's name."""
        name, leaves = self._name_of_table(), self.begin()
        first = self.at
        self._table_name()
        del self.reading.leaves[leaves:]
        behind = self.at
        self.go(first)
        while self.at < behind:
            self.blank()
        return name

    def _column_name(self, is_read: bool = True) -> str:
        """The name of a column, for us and not for sqlglot; ``is_read``: words stand for it."""
        if not self.is_column_name():
            raise self.unexpected("the name of a column")
        name = self._text_of_name()
        if is_read:
            self.next()
        else:
            self.blank()
        return name
