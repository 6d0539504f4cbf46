# SPDX-License-Identifier: Apache-2.0
"""A kernel with a device mapper, as a process: User Mode Linux. The guest's root is the host's tree, read-only, so
the host's programs and this build's tests run in it unchanged; what it writes goes to memory and to its disks."""
import ctypes
import os
import pathlib
import pwd
import re
import shutil
import signal
import subprocess
import sys
import tempfile

SKIPPED = 77
KERNEL = "linux.uml"
MODULES = pathlib.Path("/usr/lib/uml/modules")
PROGRAMS = [KERNEL, "busybox", "insmod", "mkfs.ext4", "thin_check", "thin_ls"]
RESULT = re.compile(r"^uml result (\d+)\s*$", re.MULTILINE)

INIT = """#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C HOME=/
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mountpoint -q /dev || mount -t devtmpfs devtmpfs /dev
mount -t tmpfs -o size=75% tmpfs /mnt
mkdir /mnt/tmp
export TMPDIR=/mnt/tmp TEST_TMPDIR=/mnt/tmp PAWL_TEST_DM_DATA=/dev/ubdb PAWL_TEST_DM_METADATA=/dev/ubdc
{insmod}
cd /mnt/tmp
{commands}
echo "uml result $?"
busybox poweroff -f
"""


def end_with_parent():
    """Called in the guest's process: it ends when this script is killed."""
    set_death_signal = 1
    ctypes.CDLL(None).prctl(set_death_signal, signal.SIGKILL)


def missing_program():
    """The first program that is not installed, or None."""
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    return next((name for name in PROGRAMS if not shutil.which(name, path=path)), None)


def obstacle():
    """Why there can be no guest; nothing where there can."""
    missing = missing_program()
    return f"{missing} is not installed (Debian: user-mode-linux, thin-provisioning-tools, busybox)" if missing else ""


def skip_without_uml():
    """Ends the script visibly where it cannot run; makes it clean up when it is asked to end."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    if obstacle():
        print(f"skipped: {obstacle()}")
        sys.exit(SKIPPED)


def module_files(names):
    """The files of these modules, each after those that it needs."""
    versions = sorted(MODULES.iterdir())
    if not versions:
        raise RuntimeError(f"no modules in {MODULES}")
    folder = versions[-1]
    needs = {}
    for line in (folder / "modules.dep").read_text().splitlines():
        file, _, rest = line.partition(":")
        needs[pathlib.Path(file).stem] = [*reversed(rest.split()), file]
    files = []
    for name in names:
        for file in needs[name]:
            if file not in files:
                files.append(file)
    return [folder / file for file in files]


class Guest:
    """A folder with three disks that keep their contents from boot to boot, and the program to be tested."""

    def __init__(self, program, preload=None, data_mib=640, metadata_mib=8, root_mib=64):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="pawl-uml-"))
        # In memory: a guest that is killed loses what it has not written, not what its host has not. The guest
        # sees them as disks only, because its own /dev lies over this one.
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.disks = pathlib.Path(tempfile.mkdtemp(prefix="pawl-uml-", dir=memory))
        self.program = self.folder / "program"
        shutil.copy(program, self.program)
        for name, mib in (("data.img", data_mib), ("metadata.img", metadata_mib), ("root.img", root_mib)):
            with open(self.disks / name, "wb") as disk:
                disk.truncate(mib << 20)
        self.process = None
        self.preload = preload
        # The guest needs nothing of the host but reading: it runs as nobody where that can be arranged.
        self.user = pwd.getpwnam("nobody") if os.geteuid() == 0 else None
        if self.user:
            for path in [self.folder, *self.folder.iterdir(), self.disks, *self.disks.iterdir()]:
                os.chown(path, self.user.pw_uid, self.user.pw_gid)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()
        for path in (self.folder, self.disks):
            shutil.rmtree(path, ignore_errors=True)

    def start(self, commands, modules):
        """Boots; `commands` is a shell script, whose status is the result."""
        insmod = "\n".join(f"insmod {file}" for file in module_files(modules))
        init = self.folder / "init"
        init.write_text(INIT.format(insmod=insmod, commands=commands))
        init.chmod(0o755)
        command = [shutil.which(KERNEL) or KERNEL, "mem=1024M", "root=/dev/root", "rootfstype=hostfs", "rootflags=/",
                   "ro", f"init={init}", f"ubdb={self.disks}/data.img", f"ubdc={self.disks}/metadata.img",
                   f"ubdd={self.disks}/root.img",
                   "con=null", "con0=fd:0,fd:1", "quiet"]
        environment = {"TMPDIR": "/dev/shm", "HOME": str(self.folder), "PATH": "/usr/bin:/bin"}
        if self.preload:
            environment["LD_PRELOAD"] = str(self.preload)
        identity = {"user": self.user.pw_uid, "group": self.user.pw_gid, "extra_groups": []} if self.user else {}
        # A group of its own, because the kernel is several processes, all of which must end with it.
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, env=environment,
                                        preexec_fn=end_with_parent, start_new_session=True, text=True, errors="replace", **identity)

    def kill(self):
        """A power cut."""
        if self.process:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self.process.wait()
            self.process.stdout.close()
            self.process = None

    def lines(self):
        """The guest's output, line by line, until it ends."""
        for line in self.process.stdout:
            yield line.rstrip()

    def run(self, commands, modules, timeout):
        """The result of the commands and everything the guest has written; None where it did not get so far."""
        self.start(commands, modules)
        try:
            output, _ = self.process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired as error:
            output = (error.stdout or b"").decode(errors="replace") if isinstance(error.stdout, bytes) else ""
            output += f"\nthe guest was ended after {timeout} s"
        finally:
            self.kill()
        found = RESULT.findall(output)
        return (int(found[-1]) if found else None), output
