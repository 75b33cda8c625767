"""What a file that is not GGUF seems to be, and what to do about it."""

from __future__ import annotations

HEAD_BYTES = 512

_GET_GGUF = "edgespec runs GGUF files, so look for a GGUF version of this model"
_MAGICS: tuple[tuple[bytes, str, str], ...] = (
    (
        b"version https://git-lfs",
        "a Git LFS pointer, not the model itself",
        "run 'git lfs pull' in its folder or download it again",
    ),
    (
        b"PK\x03\x04",
        "a PyTorch checkpoint or another zip archive",
        f"such files can run code and are never opened; {_GET_GGUF}",
    ),
    (
        b"\x80",
        "a Python pickle, as older PyTorch checkpoints are",
        f"such files can run code and are never opened; {_GET_GGUF}",
    ),
    (b"\x1f\x8b", "a gzip archive", "unpack it first"),
    (b"\x28\xb5\x2f\xfd", "a zstd archive", "unpack it first"),
    (b"lmgg", "a model in the GGML format that came before GGUF", _GET_GGUF),
    (b"tjgg", "a model in the GGJT format that came before GGUF", _GET_GGUF),
    (b"fmgg", "a model in the GGMF format that came before GGUF", _GET_GGUF),
)


def describe(head: bytes) -> tuple[str, str]:
    """What a file with this beginning looks like, and the next step, both in words."""
    for magic, what, next_step in _MAGICS:
        if head.startswith(magic):
            return what, next_step
    if _is_safetensors(head):
        return "a safetensors file", "to run it with MLX, name the folder that it lies in"
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if text.startswith((b"<!doctype", b"<html", b"<head", b"<?xml")):
        return (
            "a web page",
            "the link led to a page instead of the file (a login, perhaps); download it again",
        )
    if text.startswith((b"{", b"[")):
        return "JSON text", "it may be an error message of the download; download it again"
    if not head.strip(b"\0"):
        return "only zeros, as an unfinished download leaves them", "download it again"
    return "something else", "check the path, or download it again"


def _is_safetensors(head: bytes) -> bool:
    """Eight bytes of length, then a JSON object."""
    return head[8:9] == b"{" and 2 <= int.from_bytes(head[:8], "little") <= 100_000_000
