"""A process that imports PyTorch, which takes seconds, while the one that plans a sweep composes its jobs."""

from __future__ import annotations

import functools
import os
import pickle
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Literal

Question = Literal["probe", "measure"]


class HelperError(RuntimeError):
    """The helper has ended, or a question went beyond what it foresees."""


class Helper:
    """Answers questions about jobs in their order; functions of `vitpos.sweep.probe` are what can be asked.

    The process ends with this one, since its input does.
    """

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "vitpos.sweep.helper"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={"OMP_NUM_THREADS": "1", **os.environ},
            start_new_session=True,  # an interrupt from the keyboard is for this process
        )
        self._thread = ThreadPoolExecutor(max_workers=1)

    def ask(self, question: Question, config: Mapping[str, Any]) -> Future[Any]:
        """Return the answer to come; it raises HelperError where there is none."""
        return self._thread.submit(self._ask, question, config)

    def end(self) -> None:
        """End the process, whatever it is doing."""
        self._process.kill()
        self._thread.shutdown(wait=True, cancel_futures=True)
        self._process.communicate()

    def _ask(self, question: Question, config: Mapping[str, Any]) -> Any:
        assert self._process.stdin
        assert self._process.stdout
        try:
            pickle.dump((question, config), self._process.stdin)
            self._process.stdin.flush()
            error, answer = pickle.load(self._process.stdout)
        except (OSError, EOFError) as cause:
            raise HelperError(f"the process that looks at jobs has ended ({self._process.wait()})") from cause
        if error:
            raise HelperError(error)
        return answer


@functools.cache
def start_helper() -> Helper:
    """Start the helper of this process, or return the one that runs; the earlier, the sooner it has its imports."""
    return Helper()


def serve() -> None:
    """Answer until the input ends."""
    import gc

    gc.disable()  # a process of seconds; collecting would take a sixth of them
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever libraries print is no answer
    sys.modules["wandb"] = None  # type: ignore[assignment]  # timm imports it where it can
    import vitpos.sweep.probe

    del sys.modules["wandb"]
    while True:
        try:
            question, config = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            answer = "", getattr(vitpos.sweep.probe, question)(config)
        except Exception as error:
            answer = f"{type(error).__name__}: {' '.join(str(error).split())}", None
        pickle.dump(answer, answers)
        answers.flush()


if __name__ == "__main__":
    serve()
