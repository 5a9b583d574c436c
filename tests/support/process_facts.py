"""What /proc and the cgroup file systems tell of a server and what it started. Linux only."""

import os

CGROUP_ROOT = "/sys/fs/cgroup"
OUR_PREFIX = "llm-sandbox"  # how the names of cgroups and folders that a server makes begin


def _process_ids():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _read(path):
    """The bytes of a file under /proc; empty if its process has just ended."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def _parent_and_start(pid):
    """(parent's id, start time in clock ticks), or None if the process has ended or is a zombie."""
    _, _, rest = _read(f"/proc/{pid}/stat").rpartition(b") ")
    fields = rest.split()
    if not fields or fields[0] in (b"Z", b"X"):
        return None
    return int(fields[1]), int(fields[19])


def descendants(pid):
    """The processes below `pid`, as {(id, start time)}: an id alone may be given out again."""
    alive = {child: found for child in _process_ids() if (found := _parent_and_start(child))}
    below, new = {pid}, {pid}
    while new:
        new = {child for child, (parent, _) in alive.items() if parent in new} - below
        below |= new
    return {(child, alive[child][1]) for child in below - {pid}}


def still_running(processes):
    """Those of descendants()' answer that still run."""
    return {(pid, start) for pid, start in processes if (found := _parent_and_start(pid)) and found[1] == start}


def processes_with(marker):
    """The processes whose command line holds `marker`, as descendants() gives them."""
    wanted = marker.encode()
    found = {pid: _parent_and_start(pid) for pid in _process_ids() if wanted in _read(f"/proc/{pid}/cmdline")}
    return {(pid, facts[1]) for pid, facts in found.items() if facts}


def descriptors(pid):
    """The open descriptors of a process: {number: what it is}."""
    found = {}
    for number in os.listdir(f"/proc/{pid}/fd"):
        try:
            found[int(number)] = os.readlink(f"/proc/{pid}/fd/{number}")
        except OSError:
            continue  # closed since
    return found


def memory_kb(pid):
    """{"Rss": …, "Pss": …} in KiB."""
    lines = _read(f"/proc/{pid}/smaps_rollup").decode().splitlines()
    values = {line.split(":")[0]: int(line.split()[1]) for line in lines[1:] if line.endswith("kB")}
    return {name: values[name] for name in ("Rss", "Pss")}


def mounts():
    """What servers mounted where everybody sees it (other programs mount things, too)."""
    lines = _read("/proc/self/mountinfo").decode().splitlines()
    return {line for line in lines if OUR_PREFIX in line}


def cgroups(pid):
    """The cgroup folders that the server with this id made, of either version: llm-sandbox-PID-… and all below."""
    own = f"{OUR_PREFIX}-{pid}-"
    return {folder for folder, _, _ in os.walk(CGROUP_ROOT) if f"/{own}" in folder}


def processes_in(folders):
    """The ids of the processes in the given cgroup folders."""
    return {int(pid) for folder in folders for pid in _read(os.path.join(folder, "cgroup.procs")).split()}
