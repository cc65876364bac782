# SPDX-License-Identifier: PostgreSQL
"""memcached_house: a real memcached server, which can die, hang and come back empty."""
import os
import shutil
import signal
import socket
import subprocess

from pgt import procs, waits


def is_left_out() -> bool:
    """The build of pgpool knows no memcached."""
    program = os.environ.get("PGPOOL_BIN", "")
    if not os.access(program, os.X_OK):
        return False
    told = subprocess.run([program, "-v"], capture_output=True, text=True, check=False).stderr
    return any("memcached" in line for line in told.splitlines() if line.startswith("built without:"))


IS_MISSING = shutil.which("memcached") is None or is_left_out()


def is_listening(port):
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


class Server:
    def __init__(self, *more):
        self.port, self.more, self.process = procs.free_port(), more, None
        self.start()

    def start(self):
        self.process = subprocess.Popen(["memcached", "-u", "nobody", "-l", "127.0.0.1", "-p", str(self.port), "-U", "0", *self.more])
        waits.wait_for("memcached", lambda: is_listening(self.port))

    def stop(self):
        if self.process is not None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
            self.process.wait()
            self.process = None

    def freeze(self):  # it answers nothing, and refuses nothing
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self):
        self.process.send_signal(signal.SIGCONT)
