"""Processes of Beam's DirectRunner (`--direct_running_mode=multi_processing`) that are killed.

Beam would wait for ever for the answers of such a process.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator

from apache_beam.portability import python_urns
from apache_beam.portability.api import beam_fn_api_pb2
from apache_beam.runners.portability import local_job_service
from apache_beam.runners.portability.fn_api_runner import worker_handlers

from official.xlnet.errors import DataError

_PAUSE_SECONDS = 0.2


@contextlib.contextmanager
def killed_process_errors() -> Iterator[None]:
    """Context manager in which a killed process of Beam is an error.

    Raises:
      DataError: a process has ended before its work.
    """
    handlers = worker_handlers.WorkerHandler._registered_environments
    former_handler = handlers[python_urns.SUBPROCESS_SDK]
    failures: list[str] = []

    class Handler(_WatchedProcess):
        process_failures = failures

    handlers[python_urns.SUBPROCESS_SDK] = Handler, bytes
    try:
        yield
    except Exception as error:  # What `_fail` has answered, or an error of a broken connection.
        if not failures:
            raise
        raise DataError(
            f"a worker process of Beam was killed or failed ({failures[0]}), possibly because it "
            "ran out of memory; run the same command again to resume, with a smaller "
            "--direct_num_workers if necessary"
        ) from error
    finally:
        handlers[python_urns.SUBPROCESS_SDK] = former_handler


class _WatchedProcess(worker_handlers.SubprocessSdkWorkerHandler):
    """A process of Beam, all of whose work fails once it has ended with an error."""

    process_failures: list[str]

    def start_worker(self) -> None:
        """Starts the process, as Beam does, and a thread that waits for its end."""
        self.worker = local_job_service.SubprocessSdkWorker(
            self._worker_command_line, self.control_address, self.provision_info, self.worker_id
        )
        self.worker_thread = threading.Thread(target=self._run)
        self.worker_thread.start()

    def _run(self) -> None:
        try:
            self.worker.run()
        except RuntimeError as error:  # Its exit status.
            self.process_failures.append(str(error))
            threading.Thread(target=self._fail, args=(str(error),), daemon=True).start()

    def _fail(self, message: str) -> None:
        """Answers what the process is asked for with an error, until Beam closes it."""
        connection = self.control_conn
        while connection._state != worker_handlers.BeamFnControlServicer.DONE_STATE:
            for instruction_id, answer in list(connection._futures_by_id.items()):
                answer.set(
                    beam_fn_api_pb2.InstructionResponse(
                        instruction_id=instruction_id, error=message
                    )
                )
            time.sleep(_PAUSE_SECONDS)
