#!/usr/bin/env python3
"""run.py BINARY TRANSCRIPT... : plays each transcript against a server process of its own. See README.md beside it."""
import json, os, queue, re, shutil, subprocess, sys, threading, time
from pathlib import Path

from schema_check import SchemaCheck, jsonschema

PATIENCE = 30  # seconds for any one expected message
END_PATIENCE = 5  # for the end of the server; it promises one, on a machine that has nothing else to do
KINDS = {"<any>": lambda v: True, "<string>": lambda v: isinstance(v, str), "<bool>": lambda v: isinstance(v, bool),
         "<int>": lambda v: type(v) is int, "<number>": lambda v: type(v) in (int, float)}


class Failed(Exception):
    pass


def matches(expected, actual):
    if isinstance(expected, str) and expected in KINDS:
        return KINDS[expected](actual)
    if isinstance(expected, str) and expected.startswith("<~"):
        return isinstance(actual, str) and re.search(expected[2:-1], actual, re.S) is not None
    if isinstance(expected, dict) and "<json>" in expected:
        return isinstance(actual, str) and matches(expected["<json>"], json.loads(actual))
    if isinstance(expected, dict):
        keys = set(expected) - {"..."}
        return (isinstance(actual, dict) and keys <= set(actual) and ("..." in expected or keys == set(actual))
                and all(matches(expected[key], actual[key]) for key in keys))
    if isinstance(expected, list):
        if expected[-1:] == ["..."]:
            actual, expected = actual[:len(expected) - 1], expected[:-1]
        return (isinstance(actual, list) and len(actual) == len(expected)
                and all(map(matches, expected, actual)))
    return type(expected) is type(actual) and expected == actual


class Player:
    def __init__(self, binary, lines):
        self.lines, self.check, self.held = lines, SchemaCheck(), []
        environment = {**os.environ, **dict(line[5:].split("=", 1) for line in lines if line.startswith("@env "))}
        self.server = subprocess.Popen([binary, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                       stderr=subprocess.DEVNULL, env=environment)
        self.incoming = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.server.stdout:
            self.incoming.put(line)
        self.incoming.put(None)

    def next(self):
        if self.held:
            return self.held.pop(0)
        try:
            line = self.incoming.get(timeout=PATIENCE)
        except queue.Empty:
            raise Failed(f"no message within {PATIENCE} s")
        if line is None:
            return None
        message = json.loads(line.decode())
        if jsonschema:
            self.check.received(message)
        return message

    def expect(self, patterns):
        """The next messages are these, in any order."""
        patterns = list(patterns)
        while patterns:
            message = self.next()
            found = [p for p in patterns if matches(p, message)]
            if not found:
                raise Failed(f"unexpected: {json.dumps(message)}\n  wanted: {json.dumps(patterns)}")
            patterns.remove(found[0])

    def skip(self, pattern, at_least):
        count = 0
        while (message := self.next()) is not None and matches(pattern, message):
            count += 1
        self.held.append(message)
        if count < at_least:
            raise Failed(f"wanted: {json.dumps(pattern)}\n  came: {json.dumps(message)}")

    def play(self):
        group = []
        for line in self.lines + [""]:
            kind, _, rest = line.partition(" ")
            if group and kind != "<|":
                self.expect(group)
                group = []
            if kind == ">":
                rest = re.sub(r"\{\{(.)\*(\d+)\}\}", lambda m: m[1] * int(m[2]), rest)
                self.check.sent(rest)
                self.server.stdin.write(rest.encode("utf-8", "surrogateescape") + b"\n")
                self.server.stdin.flush()
            elif kind == "<":
                self.expect([json.loads(rest)])
            elif kind == "<|":
                group.append(json.loads(rest))
            elif kind in ("<*", "<+"):
                self.skip(json.loads(rest), int(kind == "<+"))
            elif kind == "@kill":
                self.server.send_signal(int(rest))
                return self.end()
        self.server.stdin.close()
        self.end()

    def end(self):
        started = time.monotonic()
        if (message := self.next()) is not None:
            raise Failed(f"unexpected at the end: {json.dumps(message)}")
        status = self.server.wait(PATIENCE)
        if status != 0 or time.monotonic() - started > END_PATIENCE:
            raise Failed(f"ended with status {status} after {time.monotonic() - started:.2f} s")


def play(binary, path):
    """Whether it passed; None if it cannot run here."""
    lines = Path(path).read_text(errors="surrogateescape").splitlines()
    missing = [p for line in lines if line.startswith("@needs ") for p in line.split()[1:] if not shutil.which(p)]
    if missing:
        return print(f"skipped: {path}: {' '.join(missing)}")
    player = Player(binary, lines)
    try:
        player.play()
        return True
    except Exception as error:  # a broken pipe or a schema violation fails a transcript like a wrong answer
        print(f"FAILED {path}: {type(error).__name__}: {str(error)[:3000]}")
        return False
    finally:
        player.server.kill()
        player.server.wait()


def main():
    binary, paths = sys.argv[1], sys.argv[2:]
    if not jsonschema:
        print("skipped: python3-jsonschema")
    outcomes = [play(os.path.abspath(binary), path) for path in paths]
    print(f"{outcomes.count(True)} passed, {outcomes.count(False)} failed")
    sys.exit(1 if False in outcomes or True not in outcomes else 0)


main()
