"""A small MCP client over stdio, Python's standard library only.

For what needs no real client: the demonstration of ./run, the benchmark and the soak test.
How real clients fare is shown in tests/clients/.
"""

import json
import os
import queue
import subprocess
import threading

LATEST_REVISION = "2025-11-25"


class ServerFailed(Exception):
    """The server closed its output, did not answer in time, or answered with a JSON-RPC error."""


class StdioClient:
    """Starts a server and speaks to it. Requests may overlap; one thread uses the client."""

    def __init__(self, command):
        environment = {"LLM_SANDBOX_LOG": "warn", **os.environ}
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
        self._next_id = 0
        self._answers = {}
        self._messages = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def initialize(self):
        """The handshake; returns the server's answer to `initialize`."""
        answer = self.request(
            "initialize",
            {
                "protocolVersion": LATEST_REVISION,
                "capabilities": {},
                "clientInfo": {"name": "llm-sandbox-checks", "version": "1"},
            },
        )
        self.notify("notifications/initialized")
        return answer

    def call_tool(self, name, arguments, timeout=60):
        return self.request("tools/call", {"name": name, "arguments": arguments}, timeout)

    def run_python(self, code, timeout=60):
        return self.call_tool("execute_code", {"code": code, "language": "python"}, timeout)

    def request(self, method, params=None, timeout=60):
        return self.wait_for(self.send(method, params), timeout)

    def send(self, method, params=None):
        """Sends a request and returns its id, for wait_for()."""
        self._next_id += 1
        self._write({"jsonrpc": "2.0", "id": self._next_id, "method": method, "params": params or {}})
        return self._next_id

    def notify(self, method, params=None):
        self._write({"jsonrpc": "2.0", "method": method, "params": params or {}})

    def wait_for(self, request_id, timeout=60):
        """The result of a request that was sent, in whatever order the answers come."""
        while request_id not in self._answers:
            try:
                message = self._messages.get(timeout=timeout)
            except queue.Empty:
                raise ServerFailed(f"no answer within {timeout} s") from None
            if message is None:
                raise ServerFailed(f"the server ended with status {self.process.wait()} before it answered")
            if "id" in message:
                self._answers[message["id"]] = message
        answer = self._answers.pop(request_id)
        if "error" in answer:
            raise ServerFailed(f"the server answered with error {answer['error']}")
        return answer["result"]

    def close(self):
        """Ends the server as clients do, by EOF; kills it if that does not help. Returns its status."""
        if not self.process.stdin.closed:
            try:
                self.process.stdin.close()
            except BrokenPipeError:
                pass
        try:
            self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._reader.join()
        self.process.stdout.close()
        return self.process.returncode

    def _write(self, message):
        try:
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise ServerFailed("the server closed its input") from None

    def _read(self):
        for line in self.process.stdout:
            self._messages.put(json.loads(line))
        self._messages.put(None)  # the end


def text_of(tool_result):
    """The text block of execute_code's answer, decoded: exit_code, stderr, stdout, …"""
    texts = [block["text"] for block in tool_result["content"] if block["type"] == "text"]
    return json.loads(texts[-1])


def images_of(tool_result):
    return [block for block in tool_result["content"] if block["type"] == "image"]


def server_path():
    """The server under test: LLM_SANDBOX_SERVER, else the one that ./run builds."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    return os.environ.get("LLM_SANDBOX_SERVER", os.path.join(root, "build", "llm-sandbox"))
