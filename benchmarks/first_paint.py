"""How long `edgespec chat` takes until there is something to write into, the model not yet loaded.

    python benchmarks/first_paint.py [PAIR]

Starts the command five times in a terminal of its own, with a history of its own, and prints one
line of JSON: seconds from the start of the process until the prompt is painted.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import pexpect

TIMES = 5
COMMAND = Path(sys.executable).with_name("edgespec")


def first_paint_s(pair: str, data: str) -> float:
    environment = {**os.environ, "TERM": "xterm-256color", "EDGESPEC_DATA_DIR": data}
    began = time.perf_counter()
    chat = pexpect.spawn(
        str(COMMAND), ["chat", pair], env=environment, dimensions=(40, 120), timeout=60
    )
    chat.expect_exact("sk something")  # the cursor stands on the first letter
    seconds = time.perf_counter() - began
    chat.close(force=True)
    return seconds


def main() -> None:
    pair = sys.argv[1] if len(sys.argv) > 1 else "demo"
    with tempfile.TemporaryDirectory() as data:
        times = [first_paint_s(pair, data) for _ in range(TIMES)]
    print(
        json.dumps(
            {
                "first_paint_s": [round(one, 2) for one in times],
                "median_s": round(statistics.median(times), 2),
                "cpus": os.cpu_count(),
                "load": round(os.getloadavg()[0], 1),
            }
        )
    )


if __name__ == "__main__":
    main()
