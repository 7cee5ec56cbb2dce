"""Drives a headless Chromium over the pipe of its DevTools protocol
(https://chromedevtools.github.io/devtools-protocol), which takes no port and no library."""

import base64
import fcntl
import json
import os
import subprocess
import tempfile
import time

ARGUMENTS = (
    "chromium-headless-shell",
    "--remote-debugging-pipe",  # reads commands from descriptor 3, writes to 4
    "--no-sandbox",  # which root has not
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--window-size=1280,760",
)
FIRST_FREE_DESCRIPTOR = 10


def _pipe():
    """Ends that are not 3 or 4, in whose place the browser gets them."""
    ends = os.pipe()
    moved = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, FIRST_FREE_DESCRIPTOR) for end in ends]
    for end in ends:
        os.close(end)
    return moved


class Browser:
    """A context manager: one page, and the errors that it reported."""

    def __init__(self):
        self.errors = []
        self._number = 0
        self._session = None

    def __enter__(self):
        commands, self._commands = _pipe()
        self._answers, answers = _pipe()

        def connect():
            os.dup2(commands, 3)
            os.dup2(answers, 4)

        self._folder = tempfile.TemporaryDirectory()
        self._process = subprocess.Popen(
            [*ARGUMENTS, f"--user-data-dir={self._folder.name}"],
            preexec_fn=connect,
            pass_fds=(3, 4),
            stderr=subprocess.DEVNULL,
        )
        os.close(commands)
        os.close(answers)
        self._reader = os.fdopen(self._answers, "rb")
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        attached = self._call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self._call(f"{domain}.enable")
        return self

    def __exit__(self, *_):
        self._session = None
        self._call("Browser.close")
        self._process.wait()
        self._reader.close()
        os.close(self._commands)
        self._folder.cleanup()

    def open(self, path):
        """Returns the seconds until the page is painted."""
        start = time.monotonic()
        self._call("Page.navigate", url=f"file://{os.path.abspath(path)}")
        self._wait_for("Page.loadEventFired")
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        return time.monotonic() - start

    def run(self, script):
        """The value of an expression, of a promise once it is kept."""
        answer = self._call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in answer:
            raise AssertionError(f"{script}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def press(self, key):
        for kind in ("keyDown", "keyUp"):
            self._call("Input.dispatchKeyEvent", type=kind, key=key)

    def click(self, selector):
        """With the mouse, near the top of the first element that the selector finds."""
        place = self._place_of(selector)
        for kind in ("mousePressed", "mouseReleased"):
            self._mouse(kind, place, button="left", clickCount=1)

    def drag(self, selector, right, down):
        place = self._place_of(selector)
        self._mouse("mousePressed", place, button="left", clickCount=1)
        place = {"x": place["x"] + right, "y": place["y"] + down}
        self._mouse("mouseMoved", place, button="left")
        self._mouse("mouseReleased", place, button="left", clickCount=1)

    def turn_wheel(self, selector, down):
        self._mouse("mouseWheel", self._place_of(selector), deltaX=0, deltaY=down)

    def _place_of(self, selector):
        place = self.run(
            f"(r => r && {{x: r.x + r.width / 2, y: r.y + Math.min(r.height / 2, 10)}})"
            f"(document.querySelector({json.dumps(selector)})?.getBoundingClientRect())"
        )
        assert place, f"no {selector}"
        return place

    def _mouse(self, kind, place, **parameters):
        self._call("Input.dispatchMouseEvent", type=kind, **place, **parameters)

    def resize(self, width, height):
        self._call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                   deviceScaleFactor=1, mobile=False)

    def screenshot(self, path, selector):
        """Of the first element that the selector finds."""
        clip = self.run(
            "(r => ({x: r.x, y: r.y, width: r.width, height: r.height, scale: 1}))"
            f"(document.querySelector({json.dumps(selector)}).getBoundingClientRect())"
        )
        data = self._call("Page.captureScreenshot", format="png", clip=clip)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def _call(self, method, **parameters):
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        number = self._number
        answer = self._read_until(lambda each: each.get("id") == number)
        if "error" in answer:
            raise AssertionError(f"{method}: {answer['error']}")
        return answer["result"]

    def _wait_for(self, event):
        self._read_until(lambda each: each.get("method") == event)

    def _read_until(self, is_wanted):
        while True:
            message = self._read()
            self._note_error(message)
            if is_wanted(message):
                return message

    def _read(self):
        text = bytearray()
        while not text.endswith(b"\0"):
            byte = self._reader.read(1)
            if not byte:
                raise AssertionError("the browser ended")
            text += byte
        return json.loads(text[:-1])

    def _note_error(self, message):
        method, parameters = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(parameters["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning"):
            self.errors.append(json.dumps(parameters["args"]))
        elif method == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
            self.errors.append(json.dumps(parameters["entry"]))
