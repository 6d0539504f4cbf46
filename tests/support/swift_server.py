#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""An OpenStack Swift with its S3 interface, for tests: one device, one replica, everything on loopback.

    swift_server.py DIRECTORY PROXY ACCOUNT CONTAINER OBJECT MEMCACHED      (five ports)

Runs until its standard input ends, also by the death of whoever holds the other end, then ends all its processes and
removes the directory. The four servers are the ones of the package; they are forked from one interpreter, because
most of their start is importing the same modules.
"""
import getpass
import os
import pathlib
import shutil
import signal
import sys

COMMON = """[DEFAULT]
user = {user}
swift_dir = {directory}
devices = {directory}/devices
recon_cache_path = {directory}/recon
mount_check = false
bind_ip = 127.0.0.1
bind_port = {port}
workers = 0
log_level = WARNING
[pipeline:main]
pipeline = {pipeline}
[app:{name}-server]
use = egg:swift#{name}
"""
FILTERS = ["catch_errors", "gatekeeper", "healthcheck", "cache", "listing_formats", "bulk", "s3api", "tempauth", "copy",
           "slo", "dlo", "versioned_writes", "symlink"]
SETTINGS = {"cache": "memcache_servers = 127.0.0.1:{memcached}", "s3api": "location = us-east-1\nstorage_domain = s3.localhost",
            "tempauth": "user_test_tester = testing .admin"}


def configure(directory, name, port, memcached):
    values = {"user": getpass.getuser(), "directory": directory, "port": port, "name": name}
    filters = FILTERS if name == "proxy" else []
    text = COMMON.format(pipeline=" ".join([*filters, f"{name}-server"]), **values)
    if name == "proxy":
        # Its own default for a connection, half a second, is too short beside other tests on a small machine; and a
        # server that is asked ten times before it listens would not be asked again for a minute.
        text += ("account_autocreate = true\nconn_timeout = 20\nnode_timeout = 60\n"
                 "error_suppression_limit = 1000000000\nerror_suppression_interval = 1\n")
    for one in filters:
        egg = {"cache": "memcache"}.get(one, one)
        text += f"[filter:{one}]\nuse = egg:swift#{egg}\n{SETTINGS.get(one, '').format(memcached=memcached)}\n"
    path = directory / f"{name}.conf"
    path.write_text(text, encoding="utf-8")
    return str(path)


def make_ring(directory, name, port):
    from swift.common.ring import RingBuilder
    builder = RingBuilder(4, 1, 0)
    builder.add_dev({"id": 0, "region": 1, "zone": 1, "ip": "127.0.0.1", "port": port, "replication_ip": "127.0.0.1",
                     "replication_port": port, "device": "d1", "weight": 1, "meta": ""})
    builder.rebalance()
    builder.get_ring().save(str(directory / f"{name}.ring.gz"))


def spawn(run):
    """A child that has no part in this one's standard input."""
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        try:
            run()
        finally:
            os._exit(1)
    return child


def main():
    directory = pathlib.Path(sys.argv[1])
    proxy, account, container, object_, memcached = map(int, sys.argv[2:7])
    os.setsid()  # a signal to the test's group is not meant for the servers
    (directory / "devices" / "d1").mkdir(parents=True)
    ports = {"account": account, "container": container, "object": object_, "proxy": proxy}
    children = [spawn(lambda: os.execvp("memcached", ["memcached", "-u", getpass.getuser(), "-l", "127.0.0.1", "-p",
                                                       str(memcached), "-m", "16"]))]
    try:
        import swift.account.server
        import swift.container.server
        import swift.obj.server
        import swift.proxy.server
        from swift.common.wsgi import run_wsgi
        for name, port in ports.items():
            if name != "proxy":
                make_ring(directory, name, port)
        for name, port in ports.items():
            path = configure(directory, name, port, memcached)
            options = {"verbose": True, "log_name": name}
            children.append(spawn(lambda path=path, name=name, options=options: run_wsgi(path, f"{name}-server", **options)))
        while os.read(0, 1):
            pass
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
        for child in children:
            os.waitpid(child, 0)
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
