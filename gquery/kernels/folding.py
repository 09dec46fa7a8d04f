"""Records of statements that may be kept as bytes: a kernel that is compiled is launched without its statements.

A kernel's statements are some hundreds of objects, which Python's collector would go through again and again while a process
lives: half of what the plans of a hundred queries keep. The bytes are what another process is sent to compile it, too.
"""

from __future__ import annotations

import pickle
from dataclasses import fields
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar


class Folding:
    """A record of which the fields ``FOLDED``, which have no defaults, may be folded. ``KEPT`` is what was found out of it and
    goes with it to another process; ``DERIVED`` what is found out anew."""

    FOLDED: ClassVar[tuple[str, ...]] = ()
    KEPT: ClassVar[tuple[str, ...]] = ()
    DERIVED: ClassVar[tuple[str, ...]] = ()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """What is folded, or is to be read, when somebody first looks at it."""
            read = vars(self).get("read") if name in self.FOLDED else None
            if read is None:
                raise AttributeError(name)
            found = dict(zip(self.FOLDED, read(), strict=True))
            vars(self).update(found)  # another thread may fold it again
            return found[name]

    def fold(self) -> None:
        """Keep the fields as bytes, until somebody looks at them. An error of `pickle` where one cannot be."""
        own = vars(self)
        if "content" not in own:
            own["content"] = content = pickle.dumps([getattr(self, name) for name in self.FOLDED], pickle.HIGHEST_PROTOCOL)
            own["read"] = partial(pickle.loads, content)
        for name in (*self.FOLDED, *self.DERIVED):
            own.pop(name, None)

    def __getstate__(self) -> dict[str, Any]:
        self.fold()
        names = (*[f.name for f in fields(self)], *self.KEPT, "content")  # type: ignore[arg-type]
        own = vars(self)
        return {name: own[name] for name in names if name in own and name not in self.FOLDED}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, read=partial(pickle.loads, state["content"]))
