"""The network between the browser and a service: it lets as much of large requests through as a test wants, and
breaks."""

import select
import socket
import struct
import threading

from service import wait_for

# So few bytes wait on the way that what the browser has sent is about what has come.
BUFFER = 64 * 1024
UNLIMITED = 1 << 60
# All that a connection has before its large request passes.
SMALL = 256 * 1024


class Wire:
    """A port that leads to that of the service."""

    def __init__(self, service):
        self._port, self._is_there, self._room = service.port, True, UNLIMITED
        self._changed, self._ends = threading.Condition(), set()
        self._listener = socket.socket()
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen(100)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def let(self, count=UNLIMITED):
        """From now on so many bytes of large requests go to the service, and those after them stay on the way."""
        with self._changed:
            self._room = count
            self._changed.notify_all()

    def set_network(self, page, is_there):
        """Takes the network away, with all connections, or gives it back. The browser is told by its system."""
        page.cdp("Network.enable")
        if is_there:
            self._is_there = True
        page.cdp("Network.emulateNetworkConditions", offline=not is_there, latency=0, downloadThroughput=-1,
                 uploadThroughput=-1)
        if not is_there:
            self._is_there = False
            self.cut()

    def cut(self):
        """Breaks all connections."""
        with self._changed:
            for end in self._ends:
                _break(end)
            self._changed.notify_all()
        wait_for("end of all connections", lambda: not self._ends)

    def close(self):
        """Takes no more connections."""
        self._listener.close()
        self.cut()

    def _accept(self):
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self._port))
            except OSError:
                _break(near)
                near.close()
                continue
            threading.Thread(target=self._carry, args=(near, far), daemon=True).start()

    def _carry(self, near, far):
        with self._changed:
            self._ends |= {near, far}
            if not self._is_there:
                _break(near)
        back = threading.Thread(target=self._pass, args=(far, near, False), daemon=True)
        back.start()
        self._pass(near, far, True)
        back.join()
        with self._changed:
            self._ends -= {near, far}
        near.close()
        far.close()

    def _pass(self, source, target, is_counted):
        passed = 0
        try:
            while piece := source.recv(BUFFER):
                passed += len(piece)
                while piece:
                    count = self._take((source, target), len(piece)) if is_counted and passed > SMALL else len(piece)
                    target.sendall(piece[:count])
                    piece = piece[count:]
            target.shutdown(socket.SHUT_WR)
        except OSError:
            _break(source)
            _break(target)

    def _take(self, ends, count):
        """Waits for room for at most so many bytes, and takes it."""
        with self._changed:
            while self._room <= 0:
                if any(map(_has_ended, ends)):
                    raise OSError
                self._changed.wait(0.05)
            count = min(count, self._room)
            self._room -= count
            return count


def _break(end):
    """Ends a connection without a word to come."""
    try:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        end.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # it has ended already


def _has_ended(end):
    """Whether the other side has closed a connection, or it is broken."""
    poll = select.poll()
    poll.register(end, select.POLLRDHUP)
    return bool(poll.poll(0))
