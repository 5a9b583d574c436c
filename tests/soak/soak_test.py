#!/usr/bin/env python3
"""What the server leaves behind: nothing after 1,000 calls, nothing after it was killed.

  python3 -m unittest soak_test.ThousandCalls      (as root or as an ordinary user)
"""

import os
import signal
import sys
import time
import unittest
import uuid

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import process_facts as facts  # noqa: E402
from stdio_client import StdioClient, server_path, text_of  # noqa: E402

CALLS = 1000
WARM_UP_CALLS = 100
IN_FLIGHT = 4
AGENT = "/llm-sandbox/llm-sandbox-agent"
ALLOWED_GROWTH_KB = 8 * 1024

# A family of three: the first process and two children, one of them in a session of its own. Each carries the marker in
# its command line, so that it can be seen from outside, and lives until it is killed.
FAMILY = """
import os, sys
for step in ("child", "grandchild"):
    if os.fork() == 0:
        if step == "grandchild":
            os.setsid()
        break
os.execv(sys.executable, [sys.executable, "-c", "import time; time.sleep(600)", "{marker}"])
"""


def until(condition, seconds):
    """Waits until `condition()` is true; tells whether it became so in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def run_calls(client, count):
    """`count` calls, IN_FLIGHT at a time. Returns the answers that are not what they should be."""
    waiting, wrong = [], []
    for number in range(count + IN_FLIGHT):
        if number >= IN_FLIGHT:
            expected, request = waiting.pop(0)
            answer = text_of(client.wait_for(request))
            if answer != {"exit_code": 0, "stderr": "", "stdout": f"{expected}\n"}:
                wrong.append(answer)
        if number < count:
            arguments = {"code": f"print({number})", "language": "python"}
            waiting.append((number, client.send("tools/call", {"name": "execute_code", "arguments": arguments})))
    return wrong


class ThousandCalls(unittest.TestCase):
    def test_leave_descriptors_memory_and_processes_where_they_were(self):
        mounts = facts.mounts()
        with StdioClient([server_path(), "serve"]) as client:
            client.initialize()
            server = client.process.pid
            self.assertEqual(run_calls(client, WARM_UP_CALLS), [])
            # The teardown of a sandbox may end after its answer: what stays for a moment is not yet a leak.
            self.assertTrue(until(lambda: not facts.descendants(server), 5), "processes are left after the warm-up")
            descriptors, memory = facts.descriptors(server), facts.memory_kb(server)
            in_use = facts.cgroups(server)

            self.assertEqual(run_calls(client, CALLS), [])
            self.assertTrue(
                until(lambda: not facts.descendants(server), 5), f"left behind: {facts.descendants(server)}"
            )
            self.assertTrue(
                until(lambda: len(facts.descriptors(server)) <= len(descriptors), 5),
                f"{len(descriptors)} descriptors became {facts.descriptors(server)}",
            )
            self.assertTrue(
                until(lambda: facts.cgroups(server) <= in_use, 5), f"new: {facts.cgroups(server) - in_use}"
            )
            growth = facts.memory_kb(server)["Rss"] - memory["Rss"]
            print(f"{CALLS} calls: memory grew by {growth} KiB from {memory['Rss']} KiB, "
                  f"{len(descriptors)} descriptors", file=sys.stderr)
            self.assertLess(growth, ALLOWED_GROWTH_KB)
            self.assertEqual(client.close(), 0)
        self.assertLessEqual(facts.mounts(), mounts)
        self.assertEqual(facts.cgroups(server), set())


class KilledServer(unittest.TestCase):
    def test_takes_its_sandboxes_with_it(self):
        mounts = facts.mounts()
        marker = f"family-{uuid.uuid4()}"
        client = StdioClient([server_path(), "serve"])
        self.addCleanup(client.close)
        client.initialize()
        code = FAMILY.format(marker=marker)
        client.send("tools/call", {"name": "execute_code", "arguments": {"code": code, "timeout": 60}})
        self.assertTrue(until(lambda: len(facts.processes_with(marker)) == 3, 20), "the family did not come up")
        started = facts.descendants(client.process.pid)
        self.assertGreaterEqual(started, facts.processes_with(marker))

        os.kill(client.process.pid, signal.SIGKILL)
        client.process.wait()

        self.assertTrue(until(lambda: not facts.processes_with(marker), 1), "the program outlived the server")
        self.assertTrue(until(lambda: not facts.still_running(started), 1), f"{facts.still_running(started)} are left")
        self.assertLessEqual(facts.mounts(), mounts)
        self.assertEqual(facts.processes_in(facts.cgroups(client.process.pid)), set())

        # Empty cgroup folders nobody could remove: the next server does.
        with StdioClient([server_path(), "serve"]) as next_server:
            next_server.initialize()
            self.assertEqual(text_of(next_server.run_python("print(1)"))["stdout"], "1\n")
        self.assertEqual(facts.cgroups(client.process.pid), set())


    def test_takes_them_with_it_even_while_they_start(self):
        # Launcher, bwrap and agent all have the agent's path in their command lines.
        before = facts.processes_with(AGENT)
        code = "import time; time.sleep(600)"
        for number in range(40):
            client = StdioClient([server_path(), "serve"])
            self.addCleanup(client.close)
            client.send("tools/call", {"name": "execute_code", "arguments": {"code": code}})
            time.sleep(number * 0.002)  # the moment at which it is killed is what varies here
            client.process.kill()
            client.process.wait()
        self.assertTrue(until(lambda: facts.processes_with(AGENT) <= before, 5),
                        f"left behind: {facts.processes_with(AGENT) - before}")

    def test_a_cancelled_start_leaves_nothing(self):
        before = facts.processes_with(AGENT)
        with StdioClient([server_path(), "serve"]) as client:
            client.initialize()
            self.assertEqual(text_of(client.run_python("print(1)"))["stdout"], "1\n")
            for number in range(60):
                call = client.send("tools/call", {"name": "execute_code", "arguments": {"code": "print(1)"}})
                time.sleep(number * 0.0005)
                client.notify("notifications/cancelled", {"requestId": call})
            self.assertTrue(until(lambda: facts.processes_with(AGENT) <= before, 5),
                            f"left behind: {facts.processes_with(AGENT) - before}")
            self.assertEqual(text_of(client.run_python("print(2)"))["stdout"], "2\n")


class EndedServer(unittest.TestCase):
    """SIGTERM and SIGINT, as clients send them, with a call under way."""

    def test_takes_its_sandboxes_with_it_within_a_second(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(signal=number.name):
                marker = f"family-{uuid.uuid4()}"
                client = StdioClient([server_path(), "serve"])
                self.addCleanup(client.close)
                client.initialize()
                client.send(
                    "tools/call", {"name": "execute_code", "arguments": {"code": FAMILY.format(marker=marker)}}
                )
                self.assertTrue(until(lambda: len(facts.processes_with(marker)) == 3, 20), "the family is missing")
                started = facts.descendants(client.process.pid)
                os.kill(client.process.pid, number)
                self.assertTrue(until(lambda: client.process.poll() is not None, 1), "the server still runs")
                self.assertEqual(facts.still_running(started), set())
                self.assertEqual(facts.cgroups(client.process.pid), set())


if __name__ == "__main__":
    unittest.main()
