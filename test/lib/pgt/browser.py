# SPDX-License-Identifier: PostgreSQL
"""browser: a headless Chromium, driven over its debugging pipe: no driver, no port."""
import atexit
import base64
import json
import os
import select
import shutil
import signal
import subprocess
from pathlib import Path

from pgt import procs, waits

NAMES = ("chromium", "chromium-browser", "google-chrome")


def program() -> str | None:
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One page. What the page complains of (errors, refused by the content policy) is in `complaints`."""

    def __init__(self) -> None:
        binary = program()
        assert binary is not None
        to_read, to_write = os.pipe(), os.pipe()  # what it reads, what it writes
        home = procs.folder("browser")

        def place() -> None:
            first, second = os.dup(to_read[0]), os.dup(to_write[1])
            os.dup2(first, 3)
            os.dup2(second, 4)
        self.popen = subprocess.Popen(  # pylint: disable=consider-using-with,subprocess-popen-preexec-fn
            [binary, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--disable-extensions", "--remote-debugging-pipe",
             f"--user-data-dir={home}", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, close_fds=False,
            preexec_fn=place, start_new_session=True, env={**os.environ, "HOME": str(home), "TMPDIR": str(home), "LANG": "en_US.UTF-8"})
        os.close(to_read[0])
        os.close(to_write[1])
        self.out, self.inp = to_read[1], to_write[0]
        atexit.register(self.stop)
        self.number = 0
        self.rest = b""
        self.session = ""
        self.complaints: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    def stop(self) -> None:
        if self.popen.poll() is None:
            os.killpg(self.popen.pid, signal.SIGKILL)
            self.popen.wait()
        for fd in (self.out, self.inp):
            try:
                os.close(fd)
            except OSError:
                pass

    def _message(self, end: float) -> dict:
        while b"\0" not in self.rest:
            left = end - waits.now()
            assert left > 0 and select.select([self.inp], [], [], left)[0], "the browser does not answer"
            more = os.read(self.inp, 1 << 20)
            assert more, "the browser has ended"
            self.rest += more
        text, self.rest = self.rest.split(b"\0", 1)
        return json.loads(text)

    def _note(self, message: dict) -> None:
        params = message.get("params", {})
        if message.get("method") == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.complaints.append(details.get("exception", {}).get("description", details["text"]))
        elif message.get("method") == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.complaints.append(params["entry"]["text"] + " " + params["entry"].get("url", ""))
        elif message.get("method") == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
            self.complaints.append(str(params["args"]))

    def call(self, method: str, may_fail: bool = False, **params) -> dict:
        self.number += 1
        message: dict = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        end = waits.deadline(60)
        while True:
            got = self._message(end)
            if got.get("id") == self.number:
                assert may_fail or "error" not in got, got
                return got.get("result", {})
            self._note(got)

    def js(self, code: str):
        """The value of an expression; promises are waited for."""
        got = self.call("Runtime.evaluate", expression=code, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in got, got["exceptionDetails"]
        return got["result"].get("value")

    def wait(self, code: str, seconds: float = 30):
        """Until it is true; while a page is loaded there may be nothing yet of which it tells."""
        def value():
            got = self.call("Runtime.evaluate", may_fail=True, expression=code, awaitPromise=True, returnByValue=True)
            return None if "exceptionDetails" in got or "result" not in got else got["result"].get("value")
        return waits.wait_for(f"in the page: {code}", value, seconds)

    def open(self, url: str) -> None:
        self.call("Page.navigate", url=url)
        self.wait("document.readyState === 'complete'")

    def type(self, selector: str, text: str) -> None:
        self.js(f"document.querySelector({json.dumps(selector)}).focus()")
        self.call("Input.insertText", text=text)

    def press(self, key: str, code: int) -> None:
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code,
                      **({"text": "\r"} if key == "Enter" and kind == "keyDown" else {}))

    def click(self, selector: str) -> None:
        self.wait(f"document.querySelector({json.dumps(selector)}) !== null")
        self.js(f"document.querySelector({json.dumps(selector)}).click()")

    def look(self, width: int, height: int, dark: bool = False) -> None:
        """The size of the window, and what the user prefers."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def picture(self, path: Path) -> None:
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)["data"]
        path.write_bytes(base64.b64decode(data))
