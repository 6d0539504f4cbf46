# SPDX-License-Identifier: Apache-2.0
"""What the whole system's tests share: image archives, comparing trees, an object store and a relay in front of it."""
import contextlib
import datetime
import hashlib
import hmac
import http.client
import os
import pathlib
import random
import select
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "cli"))
from world import PATIENCE, Place, Server, free_port  # noqa: E402,F401 (the path has to be known first)

SKIPPED = 77
SWIFT_KEY = "test:tester"
SWIFT_SECRET = "testing"


def let_pass(seconds):
    """For what time itself is the matter of: a slow line, a kill at any moment, a server that cannot say it is ready."""
    select.select([], [], [], seconds)


def make_image(path, seed=1, files=40, file_bytes=3000):
    """An archive as GNU tar makes it: files, directories, links, modes and times of many kinds."""
    numbers = random.Random(seed)
    top = pathlib.Path(str(path) + ".tree")
    for name in ("etc", "usr/bin", "usr/share/deep/er", "var/log", "tmp", "home/me"):
        (top / "rootfs" / name).mkdir(parents=True)
    root = top / "rootfs"
    for number in range(files):
        place = root / "usr/share" / f"group-{number % 7}"
        place.mkdir(exist_ok=True)
        file = place / f"file-{number:05}"
        file.write_bytes(numbers.randbytes(numbers.randrange(file_bytes)))
        file.chmod(numbers.choice((0o644, 0o600, 0o755, 0o444)))
        os.utime(file, (1_600_000_000 + number, 1_600_000_000 + number))
    (root / "etc/hostname").write_text(f"image-{seed}\n", encoding="utf-8")
    (root / "etc/empty").touch()
    (root / "usr/bin/tool").write_bytes(b"#!/bin/sh\n" + bytes(200_000))
    (root / "usr/bin/tool").chmod(0o755)
    os.link(root / "usr/bin/tool", root / "usr/bin/same-tool")
    (root / "bin").symlink_to("usr/bin")
    (root / "usr/share/deep/er" / ("long-" + "n" * 150)).write_text("long name\n", encoding="utf-8")
    (root / "usr/share/grüße").write_text("not ASCII\n", encoding="utf-8")
    (root / "tmp").chmod(0o1777)
    (root / "home/me").chmod(0o700)
    os.utime(root / "var/log", (1_500_000_000, 1_500_000_000))
    subprocess.run(["tar", "--format=pax", "--sort=name", "--numeric-owner", "-C", top, "-cf", path, "rootfs"],
                   check=True, timeout=PATIENCE)
    shutil.rmtree(top)
    return pathlib.Path(path)


def unpack_with_tar(archive, place):
    """The tree that GNU tar makes of it."""
    place = pathlib.Path(place)
    place.mkdir()
    subprocess.run(["tar", "-xpf", archive, "--numeric-owner", "-C", place], check=True, timeout=PATIENCE)
    return place


def attributes_of(path):
    """Extended attributes, access control lists among them."""
    return {name: os.getxattr(path, name, follow_symlinks=False).hex()
            for name in sorted(os.listxattr(path, follow_symlinks=False))}


def tree_of(top):
    """Everything that a tree says of itself: kind, mode, owner, time, attributes, device numbers, links, contents."""
    top = pathlib.Path(top)
    found = {}
    first_of = {}
    for directory, names, files in os.walk(top):
        for name in sorted(names + files):
            path = pathlib.Path(directory) / name
            inside = str(path.relative_to(top))
            if inside == "lost+found":
                continue
            status = path.lstat()
            mode = status.st_mode
            fact = [stat.filemode(mode), status.st_uid, status.st_gid, status.st_mtime_ns, attributes_of(path)]
            if stat.S_ISLNK(mode):
                fact.append(os.readlink(path))
            if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
                fact.append((os.major(status.st_rdev), os.minor(status.st_rdev)))
            if stat.S_ISREG(mode):
                fact.append(hashlib.sha256(path.read_bytes()).hexdigest())
                fact.append(status.st_nlink)
                if status.st_nlink > 1:
                    fact.append(first_of.setdefault(status.st_ino, inside))
            found[inside] = fact
        names[:] = [name for name in sorted(names) if not (name == "lost+found" and directory == str(top))]
    return found


def tree_difference(expected, found):
    """What is different between two trees; nothing where they are equal."""
    expected, found = tree_of(expected), tree_of(found)
    return [f"{name}: {expected.get(name)} became {found.get(name)}" for name in sorted(expected.keys() | found.keys())
            if expected.get(name) != found.get(name)]


def sign(method, path, host, body, key, secret):
    """The headers of a request to an S3 store (signature version 4)."""
    now = datetime.datetime.now(datetime.timezone.utc)
    stamp, day = now.strftime("%Y%m%dT%H%M%SZ"), now.strftime("%Y%m%d")
    content = hashlib.sha256(body).hexdigest()
    headers = {"host": host, "x-amz-content-sha256": content, "x-amz-date": stamp}
    names = ";".join(sorted(headers))
    lines = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
    request = f"{method}\n{path}\n\n{lines}\n{names}\n{content}"
    scope = f"{day}/us-east-1/s3/aws4_request"
    text = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
    made = ("AWS4" + secret).encode()
    for word in (day, "us-east-1", "s3", "aws4_request"):
        made = hmac.digest(made, word.encode(), "sha256")
    signature = hmac.digest(made, text.encode(), "sha256").hex()
    headers["Authorization"] = (f"AWS4-HMAC-SHA256 Credential={key}/{scope}, SignedHeaders={names}, "
                                f"Signature={signature}")
    return headers


class Swift:
    """A real object store, as tests/support/swift_server.py runs it."""

    @staticmethod
    def obstacle():
        for program in ("/usr/bin/swift-proxy-server", "/usr/bin/memcached"):
            if not os.path.exists(program):
                return f"{program} is not installed"
        return ""

    def __init__(self, directory):
        directory = pathlib.Path(directory)
        ports = set()
        while len(ports) < 5:
            ports.add(free_port())
        ports = list(ports)
        self.port = ports[0]
        self.log = open(directory / "swift.log", "wb")
        # Debian's interpreter: it is the one that has Swift's modules.
        self.process = subprocess.Popen(
            ["/usr/bin/python3", HERE.parent / "support/swift_server.py", directory / "swift", *map(str, ports)],
            stdin=subprocess.PIPE, stdout=self.log, stderr=self.log)
        end = time.monotonic() + 2 * PATIENCE
        while self.refusal("ready", "ready", b"ready"):
            if self.process.poll() is not None or time.monotonic() > end:
                self.close()
                raise AssertionError("Swift does not answer: " + (directory / "swift.log").read_text(errors="replace"))
            let_pass(0.05)

    def request(self, method, path, body=b""):
        host = f"127.0.0.1:{self.port}"
        connection = http.client.HTTPConnection(host, timeout=PATIENCE)
        try:
            connection.request(method, path, body, sign(method, path, host, body, SWIFT_KEY, SWIFT_SECRET))
            answer = connection.getresponse()
            answer.read()
            return answer.status
        except OSError:
            return 0
        finally:
            connection.close()

    def refusal(self, bucket, key, body):
        """Makes both; why one of them is not there, else nothing. A bucket may be there (409) from a try before, in which
        its object could not be written yet."""
        made = self.request("PUT", f"/{bucket}")
        status = self.request("PUT", f"/{bucket}/{key}", body)
        return "" if made in (200, 409) and status == 200 else f"PUT /{bucket}/{key}: {made}, {status}"

    def put(self, bucket, key, body=b""):
        if why := self.refusal(bucket, key, body):
            raise AssertionError(why)

    def close(self):
        self.process.stdin.close()
        self.process.wait(PATIENCE)
        self.log.close()


class Relay:
    """Passes everything on to a port and writes down the requests; what comes back can be slowed down or held."""

    def __init__(self, port):
        self.target = port
        self.requests = []
        self.bytes_per_second = 0
        self.flowing = threading.Event()
        self.flowing.set()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return  # closed
            server = socket.create_connection(("127.0.0.1", self.target), PATIENCE)
            threading.Thread(target=self.forward, args=(client, server), daemon=True).start()
            threading.Thread(target=self.back, args=(server, client), daemon=True).start()

    def forward(self, client, server):
        try:
            while data := client.recv(65536):
                # Requests have no body here, so that each begins a piece.
                self.requests.append(data.partition(b"\r\n")[0].decode("latin-1"))
                server.sendall(data)
        except OSError:
            pass  # one side has gone, as happens to servers that are killed
        hang_up(client, server)
        client.close()

    def back(self, server, client):
        try:
            while data := server.recv(16384):
                self.flowing.wait(PATIENCE)
                if self.bytes_per_second:
                    let_pass(len(data) / self.bytes_per_second)
                client.sendall(data)
        except OSError:
            pass  # likewise
        hang_up(client, server)
        server.close()

    def count(self, text):
        return sum(text in request for request in self.requests)

    def close(self):
        self.listener.close()


def hang_up(*sockets):
    for one in sockets:
        try:
            one.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # it is closed already


def pool_obstacle(kind):
    """Why there can be no pool of this kind here; nothing where there can."""
    system = {"reflink": "xfs", "btrfs": "btrfs"}.get(kind)
    if system is None:
        return ""
    if os.geteuid() != 0 or not os.access("/dev/loop-control", os.W_OK):
        return "loop devices need the superuser and /dev/loop-control"
    if not shutil.which(f"mkfs.{system}", path="/usr/sbin:/sbin"):
        return f"mkfs.{system} is not installed"
    if system not in pathlib.Path("/proc/filesystems").read_text(encoding="utf-8").split():
        return f"the kernel has no {system}"
    return ""


@contextlib.contextmanager
def tree_at(path, directory):
    """Where the files of an active snapshot are: it is a directory, or a block device that is mounted meanwhile."""
    if os.path.isdir(path):
        yield path
        return
    point = tempfile.mkdtemp(dir=directory)
    subprocess.run(["mount", "-o", "ro", path, point], check=True, timeout=PATIENCE)
    try:
        yield point
    finally:
        subprocess.run(["umount", point], check=True, timeout=PATIENCE)


def mounts_below(directory):
    """Mount points, innermost last."""
    with open("/proc/self/mounts", encoding="utf-8") as mounts:
        points = [line.split()[1] for line in mounts]
    return [point for point in points if point.startswith(os.path.realpath(directory) + "/")]


def devices_below(directory):
    """Loop devices on files in this directory, each with its file."""
    listed = subprocess.run(["losetup", "-l", "-n", "-O", "NAME,BACK-FILE"], check=False, capture_output=True,
                            text=True, timeout=PATIENCE).stdout
    pairs = [line.split(maxsplit=1) for line in listed.splitlines()]
    return {device: file for device, file in pairs if file.startswith(os.path.realpath(directory) + "/")}


def release_mounts(directory):
    """Gives back what a pool in this directory keeps, as a restart of the machine would: mounts, then devices."""
    for _ in range(3):  # a device inside a pool keeps the pool, which keeps another device
        for point in reversed(mounts_below(directory)):
            subprocess.run(["umount", point], check=False, capture_output=True, timeout=PATIENCE)
        for device in devices_below(directory):
            subprocess.run(["losetup", "-d", device], check=False, capture_output=True, timeout=PATIENCE)


@contextlib.contextmanager
def released(directory):
    """Releases what a pool in this directory keeps, whatever happens."""
    try:
        yield
    finally:
        release_mounts(directory)
