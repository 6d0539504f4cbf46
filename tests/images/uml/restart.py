#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A server with a pool of dm-thin on a machine whose power is cut: what was active is active again when it is back, and
nobody had to ask for it.

    restart.py <pawl> <registers library>
"""
import pathlib
import sys

import uml

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import images_world  # noqa: E402 (the path has to be known first)

MODULES = ["dm-thin-pool", "loop"]
TIMEOUT = 120
DONE = "all is active"
CONFIG = """listen: 127.0.0.1:8080
auth: {{enabled: false}}
data: /mnt/root/data
systems: [images]
images:
  backend: dmthin
  data_device: /dev/ubdb
  metadata_device: /dev/ubdc
  volume_size: 128MiB
  files: {folder}
"""
# The server's data lie on a disk of their own, as on a real machine. GNU tar compares what is there with the archives.
SERVE = """pawl={program}
export PAWL_URL=http://127.0.0.1:8080
exec 2>/mnt/tmp/progress
check() {{ mount -o ro $1 /mnt/look && tar -df {folder}/image.tar -C /mnt/look && umount /mnt/look; }}
mkdir -p /mnt/root /mnt/look
{make}mount /dev/ubdd /mnt/root || exit 9
busybox ifconfig lo 127.0.0.1 up
$pawl serve --config {folder}/serve.yaml > /mnt/tmp/ready &
until grep -q "Pawl is ready" /mnt/tmp/ready; do sleep 0.1; done
"""
BEFORE = """$pawl images process file://{folder}/image.tar --image-id image > /mnt/tmp/first || exit 2
$pawl images activate image --snapshot-name second > /mnt/tmp/second || exit 3
$pawl images activate image --snapshot-name resting > /mnt/tmp/resting || exit 4
$pawl images deactivate image --snapshot-name resting || exit 5
check $(cat /mnt/tmp/first) && check $(cat /mnt/tmp/second) || exit 6
echo {done}
sleep {timeout}
"""
# The names of the snapshots are those of their devices.
AFTER = """until [ -b /dev/mapper/snap-image ] && [ -b /dev/mapper/second ]; do sleep 0.1; done
check /dev/mapper/snap-image && check /dev/mapper/second || exit 7
[ ! -e /dev/mapper/resting ] || exit 8
$pawl images gc --json | grep -q '"garbage":\\[\\]'
"""


def main():
    uml.skip_without_uml()
    with uml.Guest(sys.argv[1], sys.argv[2], root_mib=256) as guest:
        folder = guest.folder
        images_world.make_image(folder / "image.tar")
        (folder / "image.tar").chmod(0o644)
        (folder / "serve.yaml").write_text(CONFIG.format(folder=folder), encoding="utf-8")
        words = {"program": guest.program, "folder": folder, "timeout": TIMEOUT, "done": DONE}
        make = "mkfs.ext4 -q /dev/ubdd\n"
        guest.start(SERVE.format(make=make, **words) + BEFORE.format(**words), MODULES)
        seen = []
        for line in guest.lines():
            seen.append(line)
            if line.endswith(DONE):
                break
        guest.kill()
        if not seen or not seen[-1].endswith(DONE):
            print("\n".join(seen) + "\nFAILED: no image became active")
            return 1
        result, output = guest.run(SERVE.format(make="", **words) + AFTER.format(**words), MODULES, TIMEOUT)
    if result != 0:
        print(output)
        print(f"FAILED: {result} after the power was cut")
        return 1
    print("what was active is active again")
    return 0


if __name__ == "__main__":
    sys.exit(main())
