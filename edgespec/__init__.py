"""A runtime that makes a local language model answer faster without changing what it says."""
