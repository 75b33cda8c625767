"""The MLX adapter: edgespec's sessions over mlx-lm's models."""

from edgespec_mlx.backend import MlxBackend

__all__ = ["MlxBackend"]
