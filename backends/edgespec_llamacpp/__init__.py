"""The llama.cpp adapter."""
