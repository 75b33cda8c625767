"""How questions begin: a few words behind which a model itself writes the rest of the question.

A model that is shown its own user header and nothing else writes what people asked it when it was
trained; a beginning steers that towards the kinds of text that answers are made of.
Source of the method: Magpie, arXiv:2406.08464.
"""

from __future__ import annotations

from collections.abc import Mapping

FREE = "chat"  # no beginning at all
SHARES: Mapping[str, int] = {FREE: 26, "code": 30, "prose": 22, "list": 14, "edit": 8}
OPENINGS: Mapping[str, tuple[str, ...]] = {
    FREE: ("",),
    "code": (
        "Write a Python function",
        "Write a Python script that",
        "Write a Python class",
        "Write a JavaScript function",
        "Write a TypeScript",
        "Write a C program",
        "Write a C++ function",
        "Write a Java method",
        "Write a Go function",
        "Write a Rust function",
        "Write a SQL query",
        "Write a shell script",
        "Write an HTML page",
        "Write a unit test for",
        "Write a recursive function",
        "Implement a",
        "Create a program that",
        "How can I use pandas to",
        "How do I read a",
        "What does this code do?\n```python\n",
        "Here is a function:\n```python\ndef",
        "There is a mistake in this code:\n```",
        "Make this faster:\n```python\ndef",
        "Show me an example of",
        "Convert this code to",
    ),
    "prose": (
        "Explain",
        "Why do",
        "Why is",
        "How does",
        "How can I",
        "What is the difference between",
        "What are",
        "What happens when",
        "Tell me a story about",
        "Write a short story",
        "Write a poem",
        "Write a letter",
        "Write an email to",
        "Write an essay about",
        "Write a speech",
        "Write an article",
        "Describe",
        "Compare",
        "Who was",
        "When did",
        "Should I",
        "Imagine that",
        "Discuss",
        "In a few sentences,",
    ),
    "list": (
        "List",
        "Give me five",
        "Give me ten",
        "Name three",
        "What steps",
        "Make a plan for",
        "Make a table of",
        "Create a JSON object",
        "Return JSON with",
        "Write a recipe for",
        "Write a checklist",
        "Suggest",
        "Outline",
        "Rank the",
    ),
    "edit": (
        "Summarize this text:",
        "Rewrite the following",
        "Correct the mistakes in this sentence:",
        "Translate",
        "Make this paragraph shorter:",
        "Turn these notes into",
        "Rename the variable",
        "Add comments to this code:\n```python\n",
        "Extract the names from",
        "Put this into a table:",
    ),
}
