"""The worker's side of a launch: starts one process of the job, reports of it, and ends it.

The launcher sends this file as text to wherever the worker is to run, so it needs Python and nothing else.
stdin has one line of JSON, what to run (`_plan.py` makes it), and then lines for as long as the launcher lives:
"stop", "stop INDEX", "leave SECONDS" (stop, with this time until KILL), or "meet TEXT" (Meeting); an empty line says
only that it lives. The end of stdin ends the worker. Reports are lines of JSON on stdout that begin with the marker.
Lines are shorter than PIPE_BUF, so that they are not mixed with the worker's own output.

usage: agent.py MARKER [--address ADDRESS] [--spec FILE]
SPDX-License-Identifier: Apache-2.0
"""
import base64
import ctypes
import json
import os
import select
import signal
import socket
import sys
import time
import traceback
from typing import Any, Callable, Dict, List, NoReturn, Optional, Tuple

KILL_AFTER = 2.0  #: seconds from TERM to KILL
PART = 2700  #: bytes of a result in one report
LARGEST_RESULT = 1 << 30
KILLED = float("-inf")  #: Agent.kill_at, once KILL was sent
LOOK_EVERY = 0.2  #: seconds between looks at a Meeting's file
LARGEST_MEETING = 512  #: bytes of that file
PR_SET_PDEATHSIG = 1
#: What an environment that the agent inherits may say of another job.
IDENTITY = ("RANK", "SIZE", "ROLE", "SERVERS", "SERVER_INDEX", "RENDEZVOUS", "LISTEN_FD", "LOCAL_RANK", "LOCAL_SIZE")
Spec = Dict[str, Any]


class Launcher:
    """The lines that the launcher sends, from a descriptor; None: no line ever comes."""

    def __init__(self, descriptor: Optional[int]) -> None:
        self.descriptor = descriptor
        self.pending = b""
        self.heard = time.monotonic()

    def lines(self) -> Optional[List[bytes]]:
        """What one read brings; None at the end."""
        assert self.descriptor is not None
        data = os.read(self.descriptor, 1 << 16)
        if not data:
            return None
        self.heard = time.monotonic()
        *whole, self.pending = (self.pending + data).split(b"\n")
        return whole

    def spec(self) -> Tuple[Optional[Spec], List[bytes]]:
        """What to run, with the lines after it; None if the launcher has ended or stops the job before."""
        while True:
            lines = self.lines()
            if lines is None:
                return None, []
            for i, line in enumerate(lines):
                if line.startswith((b"stop", b"leave")):
                    return None, []
                if line:
                    return json.loads(line), lines[i + 1:]


class Meeting:
    """How a worker of an elastic job finds the others: a file in a folder of its own. One that becomes the coordinator
    writes it, and the launcher passes the text on to the files of the others."""

    def __init__(self) -> None:
        import tempfile  # what other jobs need not wait for
        self.owner = os.getpid()
        self.folder = tempfile.mkdtemp(prefix="dtrain-")
        self.path = os.path.join(self.folder, "job")
        self.known = b""  #: the text that the launcher knows

    @property
    def rendezvous(self) -> str:
        return f"file://{self.path}"

    def find(self) -> Optional[str]:
        """What the process itself has written since the last call: None if nothing, "" if it has removed the file, as
        the last coordinator does."""
        try:
            with open(self.path, "rb") as file:
                text = file.read(LARGEST_MEETING)
        except FileNotFoundError:
            text = b""
        if text == self.known:
            return None
        self.known = text
        return text.decode(errors="replace").strip()

    def take(self, text: str) -> Optional[str]:
        """Writes what another process has written; unless this one has done so, too, which find() would return: the
        text that comes was older."""
        own = self.find()
        if own or not text:
            return own
        fresh = f"{self.path}.new"
        with open(fresh, "wb") as file:
            file.write(text.encode() + b"\n")
        os.rename(fresh, self.path)
        self.known = text.encode() + b"\n"
        return own

    def close(self) -> None:
        import shutil
        if os.getpid() == self.owner:  # not a worker that was forked
            shutil.rmtree(self.folder, ignore_errors=True)


class Agent:
    def __init__(self, marker: str, launcher: Launcher) -> None:
        self.marker = marker
        self.launcher = launcher
        self.index = 0
        self.pid = 0
        self.result = bytearray()
        self.kill_at: Optional[float] = None
        self.meeting: Optional[Meeting] = None
        self.signals = os.pipe()

    def report(self, what: str, **fields: Any) -> None:
        line = f"{self.marker} {json.dumps({'what': what, **fields})}\n".encode()
        while line:
            line = line[os.write(1, line):]

    def fail(self, text: str, kind: str = "") -> int:
        self.report("ended", status=127, signal=0, text=text[:2000], kind=kind)
        return 127

    def run(self, address: str, spec: Optional[Spec]) -> int:
        self.report("here", host=socket.gethostname(), address=address or own_address())
        lines: List[bytes] = []
        if spec is None:
            spec, lines = self.launcher.spec()
        if spec is None:
            return self.fail("stopped before it was told what to run", "stopped")
        index = spec.get("index")
        self.index = int(os.environ[spec["index_from"]]) if index is None else index
        os.set_blocking(self.signals[1], False)
        signal.set_wakeup_fd(self.signals[1])
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self.handle_signal)
        try:
            return self.work(spec, lines)
        finally:
            if self.meeting is not None:
                self.meeting.close()

    def work(self, spec: Spec, lines: List[bytes]) -> int:
        environment = self.make_environment(spec)
        results, confirmation = self.start(spec, environment)
        error = b"".join(iter(lambda: os.read(confirmation, 4096), b""))
        os.close(confirmation)
        if error:
            os.waitpid(self.pid, 0)
            return self.fail(error.decode(), "start")
        self.report("started", pid=self.pid)
        self.obey(lines)
        return self.watch(results, spec.get("patience"))

    def handle_signal(self, number: int, _: Any) -> None:
        if number != signal.SIGCHLD:
            self.end()

    def make_environment(self, spec: Spec) -> Dict[str, str]:
        environment = dict(os.environ)
        for name in IDENTITY:
            environment.pop(f"DTRAIN_{name}", None)
        if "DTRAIN_SECRET" in spec["env"]:
            environment.pop("DTRAIN_SECRET_FILE", None)
        environment.update(spec["env"])
        if spec.get("listen") is not None:
            listener = listen(spec["listen"])
            environment["DTRAIN_LISTEN_FD"] = str(listener.fileno())
            environment["DTRAIN_RENDEZVOUS"] = meeting = f"tcp://{spec['meet']}:{listener.getsockname()[1]}"
            listener.set_inheritable(True)
            listener.detach()
            self.report("listening", rendezvous=meeting)
        if spec.get("meet_by_file") is not None:
            self.meeting = Meeting()
            self.meeting.take(spec["meet_by_file"])
            environment["DTRAIN_RENDEZVOUS"] = self.meeting.rendezvous
        return environment

    def start(self, spec: Spec, environment: Dict[str, str]) -> Tuple[int, int]:
        """The pipes of the result and of the errors of starting."""
        result, confirmation = os.pipe(), os.pipe()
        parent = os.getpid()
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            become_worker(spec, self.index, environment, parent, result[1], confirmation[1])
        os.close(result[1])
        os.close(confirmation[1])
        return result[0], confirmation[0]

    def obey(self, lines: List[bytes]) -> None:
        for line in lines:
            order, _, rest = line.partition(b" ")
            if order == b"stop" and rest in (b"", b"%d" % self.index):
                self.end()
            elif order == b"leave":
                self.end(float(rest))
            elif order == b"meet" and self.meeting is not None:
                self.tell_meeting(self.meeting.take(rest.decode()))

    def tell_meeting(self, text: Optional[str]) -> None:
        if text is not None:
            self.report("meeting", text=text)

    def end(self, kill_after: float = KILL_AFTER) -> None:
        """TERM now, and KILL later."""
        if self.pid != 0:
            kill_at = time.monotonic() + kill_after
            if self.kill_at is None:
                self.signal_group(signal.SIGTERM)
            self.kill_at = min(kill_at, self.kill_at or kill_at)

    def signal_group(self, number: int) -> None:
        try:
            os.killpg(self.pid, number)
        except (ProcessLookupError, PermissionError):
            pass

    def watch(self, results: int, patience: Optional[float]) -> int:
        """Until the worker has ended; its exit status."""
        sources = {self.signals[0], results}
        if self.launcher.descriptor is not None:
            sources.add(self.launcher.descriptor)
        while True:
            ready, _, _ = select.select(sources, [], [], self.next_look(patience))
            if self.signals[0] in ready:
                os.read(self.signals[0], 4096)
            if results in ready and not self.take_result(results):
                sources.discard(results)
            if self.launcher.descriptor in ready:
                lines = self.launcher.lines()
                if lines is None:
                    sources.discard(self.launcher.descriptor)
                    self.end()
                self.obey(lines or [])
            if self.meeting is not None:
                self.tell_meeting(self.meeting.find())
            now = time.monotonic()
            if patience and now > self.launcher.heard + patience:
                self.end()
            if self.kill_at not in (None, KILLED) and now >= self.kill_at:
                self.signal_group(signal.SIGKILL)
                self.kill_at = KILLED
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid != 0:
                if self.meeting is not None:
                    self.tell_meeting(self.meeting.find())
                while results in sources and self.take_result(results):
                    pass
                return self.ended(status)

    def next_look(self, patience: Optional[float]) -> float:
        soon = [1.0 if patience else 60.0]
        if self.meeting is not None:
            soon.append(LOOK_EVERY)
        if self.kill_at not in (None, KILLED):
            soon.append(max(0.0, (self.kill_at or 0.0) - time.monotonic()))
        return min(soon)

    def take_result(self, results: int) -> bool:
        os.set_blocking(results, False)
        try:
            data = os.read(results, 1 << 16)
        except BlockingIOError:  # a process that the worker left behind holds the pipe
            return False
        self.result += data[:LARGEST_RESULT - len(self.result)]
        return bool(data)

    def ended(self, status: int) -> int:
        self.signal_group(signal.SIGKILL)  # the processes that it has left behind
        for first in range(0, len(self.result), PART):
            self.report("result", part=base64.b64encode(self.result[first:first + PART]).decode())
        killer = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        code = 128 + killer if killer else os.WEXITSTATUS(status)
        self.report("ended", status=code, signal=killer, text="", kind="")
        return code


def own_address() -> str:
    """Where other hosts reach this one: where ssh has come to, else where the default route begins."""
    connection = os.environ.get("SSH_CONNECTION", "").split()
    if len(connection) == 4 and not connection[2].startswith("127.") and connection[2] != "::1":
        return connection[2]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing
            return str(probe.getsockname()[0])
        except OSError:
            return socket.gethostname()


def listen(host: str) -> socket.socket:
    """At a free port of this address; "": of all addresses, IPv6 and IPv4."""
    if host == "" and socket.has_dualstack_ipv6():
        try:
            return socket.create_server(("", 0), family=socket.AF_INET6, dualstack_ipv6=True, backlog=1024)
        except OSError:
            pass  # this host has no IPv6
    return socket.create_server((host, 0), backlog=1024)


def become_worker(spec: Spec, index: int, environment: Dict[str, str], parent: int, result: int,
                  confirmation: int) -> NoReturn:
    """In the child: never returns."""
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.setsid()
    die_with(parent)
    try:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(1, 2)
        if spec.get("cwd"):
            os.chdir(spec["cwd"])
        serves = spec["workers"] <= index < spec["members"]  # newcomers of elastic jobs come after servers
        command = spec["server_command"] if serves else spec.get("command")
        if command:
            execute(command, spec, environment)
    except OSError as error:
        os.write(confirmation, str(error).encode()[:2000])
        os._exit(127)
    os.close(confirmation)
    os.environ.clear()
    os.environ.update(environment)
    call(spec, result)


def die_with(parent: int) -> None:
    """The kernel kills this process when the agent ends, however it ends."""
    try:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    except (OSError, AttributeError):
        return
    if os.getppid() != parent:
        os._exit(1)


def execute(command: List[str], spec: Spec, environment: Dict[str, str]) -> None:
    script = spec.get("script")
    if script and not os.path.isfile(script):
        raise FileNotFoundError(f"script {script} does not exist on {socket.gethostname()}, in {os.getcwd()}")
    try:
        os.execvpe(command[0], command, environment)
    except FileNotFoundError:
        raise FileNotFoundError(f"program {command[0]} is not found on {socket.gethostname()}") from None


def call(spec: Spec, result: int) -> NoReturn:
    """Calls the function that was sent, writes what it returns or raises, and ends as a program does."""
    import pickle  # what a program that is no function need not wait for
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    sys.path.extend(entry for entry in spec["path"] if entry not in sys.path)
    code = 0
    answer: Dict[str, Any] = {}
    dumps: Callable[[Any], bytes] = pickle.dumps
    try:
        function, args, kwargs = pickle.loads(base64.b64decode(spec["function"]))
        if spec["cloudpickle"]:
            import cloudpickle  # type: ignore[import-untyped, import-not-found, unused-ignore]
            dumps = cloudpickle.dumps
        data = dumps({"value": function(*args, **kwargs)})
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
        if error.code is not None and not isinstance(error.code, int):
            print(error.code, file=sys.stderr)
        data = dumps({"value": None})
    except BaseException as error:
        traceback.print_exc()
        code = 1
        answer = {"type": type(error).__name__, "text": str(error), "traceback": traceback.format_exc()}
        try:
            pickle.loads(dumps(error))  # some exceptions can be sent, but not received
            answer["exception"] = dumps(error)
        except Exception:
            pass
        data = dumps(answer)
    with open(result, "wb") as file:
        file.write(data)
    sys.exit(code)


def main(arguments: List[str]) -> int:
    options = dict(zip(arguments[1::2], arguments[2::2]))
    spec: Optional[Spec] = None
    if "--spec" in options:
        with open(options["--spec"], encoding="utf-8") as file:
            spec = json.load(file)
    return Agent(arguments[0], Launcher(0 if spec is None else None)).run(options.get("--address", ""), spec)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
