"""The MLX adapter."""
