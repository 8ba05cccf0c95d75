"""extract_vmlinux.py VMLINUZ OUT: the ELF kernel inside a compressed bzImage.

QEMU starts an ELF kernel directly (PVH), which spares the guest the slow emulated decompression.
"""

import re
import subprocess
import sys

# Magic bytes of the compressions a Debian kernel may use, and the program that undoes each.
COMPRESSIONS = (
    (b"\xfd7zXZ\x00", ["xz", "-dc"]),
    (b"\x1f\x8b\x08", ["gzip", "-dc"]),
    (b"\x28\xb5\x2f\xfd", ["zstd", "-dc"]),
    (b"\x02!L\x18", ["lz4", "-dc"]),
)

source, target = sys.argv[1:3]
with open(source, "rb") as file:
    image = file.read()
for magic, command in COMPRESSIONS:
    for match in re.finditer(re.escape(magic), image):
        try:
            # What follows the kernel in the image makes the program complain; the output counts.
            done = subprocess.run(command, input=image[match.start() :], capture_output=True, check=False)
        except FileNotFoundError:
            continue
        if done.stdout[:4] == b"\x7fELF":
            with open(target, "wb") as file:
                file.write(done.stdout)
            sys.exit(0)
sys.exit(f"{source}: no kernel found inside; compressed in a way unknown here?")
