"""Processes that the benchmark starts: what they use, as /proc shows it (proc(5)), and how they end."""

import os
import pathlib
import signal
import socket
import subprocess

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
# How long a process may take to end after SIGTERM, in seconds, before it is killed.
MAX_STOP = 40


def start(command, log, **options):
    """Starts a server that writes its output to the file `log`.

    It gets a session of its own: Ctrl-C in the terminal must reach only this program, which then stops what it has
    started. And kernels that group processes by session (sched(7), autogroup) share the cores among servers, database
    and load generator as they do among the services of a host.
    """
    with open(log, "wb") as output:
        return subprocess.Popen(command, stdout=output, stderr=output, start_new_session=True, **options)


def stop(process):
    """Ends a process that `start` has started, and waits for it."""
    process.terminate()
    try:
        process.wait(MAX_STOP)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def interrupt_once():
    """Ctrl-C, SIGTERM and SIGHUP raise KeyboardInterrupt. Of several only the first does: what was started is being
    stopped then."""

    def interrupt(*_):
        for number in numbers:
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    for number in numbers:
        signal.signal(number, interrupt)


def free_port():
    """A TCP port of 127.0.0.1 on which nobody listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def _stat(pid):
    """The fields of /proc/PID/stat from the third, `state`, on; none if the process has ended."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def state(pid):
    """What the process does: `T` if it is stopped, `Z` if it has ended unnoticed by its parent, `X` if it is gone."""
    stat = _stat(pid)
    return stat[0] if stat else "X"


def parent(pid):
    return int(_stat(pid)[1])


def family(pid):
    """The process and all its descendants."""
    children = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit() and (stat := _stat(entry)):
            children.setdefault(int(stat[1]), []).append(int(entry))
    members = [pid]
    for member in members:
        members += children.get(member, [])
    return members


def cpu_seconds(pid):
    """CPU time that a process and its descendants have used, also those that have ended."""
    times = (stat[11:15] for member in family(pid) if (stat := _stat(member)))
    return sum(int(ticks) for four in times for ticks in four) / TICKS_PER_SECOND


def busy_seconds():
    """CPU time that all processes of the machine have used, and what its host has taken from it, since it started."""
    with open("/proc/stat", encoding="ascii") as file:
        user, nice, system, _, _, irq, softirq, steal = map(int, file.readline().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / TICKS_PER_SECOND


def _memory(pid, field):
    """A field of /proc/PID/status in MiB, summed over the process and its descendants."""
    total = 0
    for member in family(pid):
        try:
            lines = pathlib.Path(f"/proc/{member}/status").read_text().splitlines()
        except (FileNotFoundError, ProcessLookupError):
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith(field + ":"))
    return total / 1024


def resident(pid):
    """Resident memory in MiB."""
    return _memory(pid, "VmRSS")


def forget_peak(pid):
    """Lets `peak` begin anew."""
    for member in family(pid):
        pathlib.Path(f"/proc/{member}/clear_refs").write_text("5")


def peak(pid):
    """The most memory in MiB that was resident at once since `forget_peak`."""
    return _memory(pid, "VmHWM")
