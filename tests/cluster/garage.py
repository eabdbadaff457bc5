"""Three nodes of Garage, a store that speaks the protocol of Amazon S3. Each object is on all of them."""

import os
import secrets
import shutil
import time

import processes
from servers import run, wait_until

REGION = "garage"
BUCKET = "cloakroom"
# How long the nodes may take for each step until they have everything that they lost, in seconds.
MAX_RECOVERY = 180


class Node:
    """A node, whose data and settings are in `directory`. It is started by `start`."""

    def __init__(self, binary, directory, rpc_secret):
        self.binary = binary
        self.blocks = directory / "data"
        self.data_layout = directory / "meta" / "data_layout"
        self.log = directory / "log"
        self.settings = directory / "garage.toml"
        self.port, rpc_port = processes.free_port(), processes.free_port()
        directory.mkdir(parents=True)
        self.settings.write_text(
            f'metadata_dir = "{directory}/meta"\ndata_dir = "{self.blocks}"\ndb_engine = "sqlite"\n'
            f'replication_factor = 3\nrpc_bind_addr = "127.0.0.1:{rpc_port}"\n'
            f'rpc_public_addr = "127.0.0.1:{rpc_port}"\nrpc_secret = "{rpc_secret}"\n'
            f'[s3_api]\ns3_region = "{REGION}"\napi_bind_addr = "127.0.0.1:{self.port}"\n',
            encoding="utf-8",
        )
        self.settings.chmod(0o600)
        self.process = None

    def start(self):
        environment = {**os.environ, "RUST_LOG": "garage=warn"}
        self.process = processes.start([self.binary, "-c", self.settings, "server"], self.log, env=environment)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def command(self, *arguments):
        return run([self.binary, "-c", self.settings, *arguments])

    def answers(self):
        """Whether it takes commands."""
        try:
            return self.command("status")
        except RuntimeError:
            return ""

    def busy(self):
        """Its workers that have something to do, a line each."""
        return self.command("worker", "list", "--busy")

    def failed_blocks(self):
        """Contents that it needs and could not fetch, a line each."""
        return [line for line in self.command("block", "list-errors").splitlines() if line][1:]

    def address(self):
        """Its identity, which is the beginning of its keys, and where others reach it."""
        return self.command("node", "id", "-q").strip()


class Garage:
    """The nodes, with a bucket, and a key that may use it."""

    def __init__(self, binary, directory):
        rpc_secret = secrets.token_hex(32)
        self.key, self.secret = "GK" + secrets.token_hex(12), secrets.token_hex(32)
        self.nodes = [Node(binary, directory / f"node{number}", rpc_secret) for number in (1, 2, 3)]

    def start(self):
        for node in self.nodes:
            node.start()
        for node in self.nodes:
            wait_until(node.answers, "a node of the store")
        first = self.nodes[0]
        self.connect(first)
        for node in self.nodes:
            first.command("layout", "assign", "-z", "here", "-c", "1G", node.address().split("@")[0])
        first.command("layout", "apply", "--version", "1")
        first.command("bucket", "create", BUCKET)
        first.command("key", "import", "--yes", "-n", "cloakroom", self.key, self.secret)
        first.command("bucket", "allow", "--read", "--write", BUCKET, "--key", self.key)

    def connect(self, node):
        """Lets a node that was started and the others find each other at once, and waits until all have. Before that,
        no other node may be stopped: two of three are needed."""
        wait_until(node.answers, "a node of the store")
        for other in self.nodes:
            if other is not node:
                node.command("node", "connect", other.address())
        is_whole = lambda: all((text := each.answers()) and "FAILED" not in text for each in self.nodes)
        wait_until(is_whole, "connections among all nodes")

    def start_again(self, node):
        node.start()
        self.connect(node)

    def lose_disk(self, node):
        """Kills a node, which comes back with an empty disk for contents."""
        node.kill()
        shutil.rmtree(node.blocks)
        # Garage refuses an empty directory, which may be a disk that is not mounted, until this is removed.
        node.data_layout.unlink()
        self.start_again(node)

    def recover(self):
        """Lets each node fetch all that it lacks from the others, and waits until it has. The records come first,
        because they say which contents a node must have. The queues are cleared, because what is in them to be done
        later, such as the removal of deleted contents in ten minutes, is not done earlier."""
        everywhere = lambda *what: self.nodes[0].command("repair", "--all-nodes", "--yes", *what)
        wait_until(lambda: self.is_idle("Merkle", " queue"), "trees of the store's records", MAX_RECOVERY)
        everywhere("tables")
        wait_until(lambda: self.is_idle(" sync "), "the records of the nodes of the store", MAX_RECOVERY)
        self.nodes[0].command("worker", "set", "--all-nodes", "resync-tranquility", "0")
        everywhere("clear-resync-queue")
        everywhere("blocks")
        is_whole = lambda: self.is_idle("Block") and not any(node.failed_blocks() for node in self.nodes)
        wait_until(is_whole, "the contents of the nodes of the store", MAX_RECOVERY)

    def is_idle(self, *workers):
        """Whether no node has a worker of these names that is busy. One may be about to hand work to the next, so this
        looks twice."""
        for _ in range(2):
            if any(name in node.busy() for node in self.nodes for name in workers):
                return False
            time.sleep(1)
        return True

    def leave_only(self, node):
        """Deletes the contents on all other nodes, so that they can be read from this one alone."""
        for other in self.nodes:
            if other is not node:
                shutil.rmtree(other.blocks)

    def stop(self):
        for node in self.nodes:
            if node.process:
                node.kill()
