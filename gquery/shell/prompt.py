"""The editor: many lines, history, colours, completion. Only a shell at a terminal imports it.

Enter runs a statement that a semicolon ends and opens a new line in one that does not; Alt-Enter runs it as it stands.
The engine is imported behind the prompt, while the user types.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs
from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import completion_is_selected
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer
from prompt_toolkit.output import ColorDepth, create_output
from prompt_toolkit.patch_stdout import patch_stdout
from prompt_toolkit.styles import Style

from gquery.errors import Error
from gquery.shell.script import is_complete

if TYPE_CHECKING:
    from gquery.shell.shell import Shell

PROMPT, MORE = "gquery> ", "   ...> "
_STYLE = Style.from_dict(
    {
        "prompt": "bold",
        "pygments.keyword": "bold ansicyan",
        "pygments.name.builtin": "ansicyan",
        "pygments.literal.string": "ansigreen",
        "pygments.literal.number": "ansimagenta",
        "pygments.comment": "ansibrightblack",
        "auto-suggestion": "ansibrightblack",
    }
)


def run_prompt(shell: Shell) -> bool:
    """Read and run until the user leaves; False where the shell could not start."""
    from gquery import __version__

    shell.options.bail = False
    shell.note(f"gquery {__version__}. Statements end with ; and .help lists commands.")
    session = make_session(shell)
    warm = threading.Thread(target=_warm_up, args=(shell, session), name="gquery-warm-up", daemon=True)

    def begin() -> None:  # the prompt is drawn first
        loop = get_app().loop
        if warm.ident is None and loop is not None:
            loop.call_later(0.05, warm.start)

    while not (shell.leaving or shell.broken):
        try:
            with patch_stdout(raw=True):
                text = session.prompt(pre_run=begin)
        except KeyboardInterrupt:  # Ctrl-C clears the line
            continue
        except EOFError:
            break
        if text.strip() and not shell.broken:
            shell.interrupted = False
            shell.run_text(text)
    return not shell.broken


def make_session(shell: Shell) -> PromptSession[str]:
    """The editor of a shell."""
    from pygments.lexers.sql import SqlLexer

    output = create_output(always_prefer_tty=True)
    return PromptSession(
        [("class:prompt", PROMPT)],
        prompt_continuation=lambda width, line, wrapped: MORE,
        multiline=True,
        key_bindings=_bindings(),
        lexer=PygmentsLexer(SqlLexer),
        style=_STYLE,
        completer=_Completer(shell),
        complete_while_typing=False,
        auto_suggest=AutoSuggestFromHistory(),
        history=_history(),
        color_depth=ColorDepth.DEPTH_1_BIT if os.environ.get("NO_COLOR") else None,
        output=output,
        enable_open_in_editor=True,
    )


def _history() -> History:
    """The history file; in memory alone where it cannot be written. It may hold secrets, so it is the user's alone."""
    path = Path(os.environ.get("GQUERY_HISTORY") or Path(platformdirs.user_state_dir("gquery")) / "history")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600))
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(path))


def _bindings() -> KeyBindings:
    bindings = KeyBindings()

    @bindings.add("enter", filter=~completion_is_selected)
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if is_complete(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.newline(copy_margin=False)

    @bindings.add("enter", filter=completion_is_selected)
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.complete_state = None  # what was chosen stays

    @bindings.add("escape", "enter")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    return bindings


class _Completer(Completer):
    def __init__(self, shell: Shell) -> None:
        self._shell = shell

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        from gquery.shell.completion import complete

        for found in complete(document.text, document.cursor_position, self._shell.ready):
            yield Completion(found.text, start_position=-found.replaces, display_meta=found.kind)


def _warm_up(shell: Shell, session: PromptSession[str]) -> None:
    """Make the connection; where that fails, say why and end the prompt."""
    try:
        _ = shell.connection
    except Error as error:
        print(f"Error: {error}", file=sys.stderr)  # through patch_stdout, above the prompt
        app = session.app
        if app.is_running and app.loop is not None:
            app.loop.call_soon_threadsafe(lambda: app.exit(exception=EOFError) if app.is_running else None)
