"""What is selected, in a line, in the prompt or in the conversation."""

from __future__ import annotations

from textual.screen import Screen
from textual.widgets import Input
from textual.widgets.input import Selection

from edgespec.tui.prompt_box import PromptBox


def take_selected(screen: Screen[object], prompt: PromptBox) -> str:
    """The selected text, which is selected no more: that of the line with the focus before any
    other; "" where there is none."""
    line = screen.focused
    if isinstance(line, Input) and (selected := line.selected_text):
        line.selection = Selection.cursor(line.cursor_position)
        return selected
    selected = prompt.selected_text or screen.get_selected_text() or ""
    if selected:
        screen.clear_selection()
        prompt.move_cursor(prompt.cursor_location)
    return selected
