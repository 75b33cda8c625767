"""The llama.cpp adapter: edgespec's sessions over llama-cpp-python's low-level API."""

from edgespec_llamacpp.backend import LlamaCppBackend

__all__ = ["LlamaCppBackend"]
