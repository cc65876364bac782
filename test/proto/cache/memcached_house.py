# SPDX-License-Identifier: PostgreSQL
"""memcached_house: a real memcached server, which can die, hang and come back empty, and one that asks for a password."""
import ctypes
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
    def __init__(self, *more, env=None):
        self.port, self.more, self.env, self.process = procs.free_port(), more, env, None
        self.start()

    def start(self):
        self.process = subprocess.Popen(["memcached", "-u", "nobody", "-l", "127.0.0.1", "-p", str(self.port), "-U", "0", *self.more],
                                        env={**os.environ, **(self.env or {})})
        waits.wait_for("memcached", lambda: is_listening(self.port))

    def stop(self):
        if self.process is not None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
            self.process.wait()
            self.process = None

    def freeze(self):  # it answers nothing, and refuses nothing
        procs.stand_still(self.process.pid)

    def thaw(self):
        self.process.send_signal(signal.SIGCONT)


SASL_CONF = """\
pwcheck_method: auxprop
auxprop_plugin: sasldb
mech_list: plain
sasldb_path: {}
"""
SASL_SET_CREATE = 1


def sasl_server(user: str, password: str):
    """One that asks for this password; None: the machine has not what that takes (libsasl2 and its sasldb)."""
    folder = procs.folder("sasl")
    (folder / "memcached.conf").write_text(SASL_CONF.format(folder / "db"), encoding="utf-8")
    child = os.fork()  # the library takes where its configuration is from the environment, and keeps it
    if child == 0:
        os.environ["SASL_CONF_PATH"] = str(folder)
        os._exit(set_password(user.encode(), password.encode()))
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0:
        return None
    folder.chmod(0o755)
    for path in folder.iterdir():
        path.chmod(0o644)
    return Server("-S", env={"SASL_CONF_PATH": str(folder)})


def set_password(user: bytes, password: bytes) -> int:
    conn = ctypes.c_void_p()
    try:
        lib = ctypes.CDLL("libsasl2.so.2")
    except OSError:
        return 1
    if lib.sasl_server_init(None, b"memcached") != 0 or \
            lib.sasl_server_new(b"memcached", None, None, None, None, None, 0, ctypes.byref(conn)) != 0:
        return 1
    return int(lib.sasl_setpass(conn, user, password, len(password), None, 0, SASL_SET_CREATE) != 0)
