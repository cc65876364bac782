# SPDX-License-Identifier: PostgreSQL
"""memcached_house: a real memcached server, which can die, hang and come back empty."""
import shutil
import signal
import socket
import subprocess

from pgt import procs, waits

IS_MISSING = shutil.which("memcached") is None


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
