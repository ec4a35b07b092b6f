"""The other end of `race`: a process that loads its data and then runs once for every line it is sent."""

import json
import resource
import sys
import time
from collections.abc import Callable
from typing import Any

from race import RSS_UNIT, RUN


def wait_and_run(call: Callable[[], Any], facts: Callable[[Any], dict[str, Any]]) -> None:
    """Time `call` as often as asked, then tell the peak of memory and what `facts` finds in the last result."""
    print("{}", flush=True)
    result = None
    for line in sys.stdin:
        if line.strip() != RUN:
            break
        result = None  # the memory of the run before belongs to none
        begun, cpu = time.perf_counter(), time.process_time()
        result = call()
        seconds, cpu = time.perf_counter() - begun, time.process_time() - cpu
        print(json.dumps({"seconds": seconds, "cpu": cpu}), flush=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * RSS_UNIT
    print(json.dumps({"peak": peak, "threads": _blas_threads(), **facts(result)}), flush=True)


def _blas_threads() -> int:
    from threadpoolctl import threadpool_info

    return max((pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"), default=1)
