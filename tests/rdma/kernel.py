"""Debian's kernel for the machine of vm.py, as it starts fastest under emulation: uncompressed,
with a first root that holds busybox, the modules needed, and guest/init.
SPDX-License-Identifier: Apache-2.0"""
import fcntl
import lzma
import os
import pathlib
import re
import shlex
import shutil
import struct
import subprocess
import tempfile

INIT = pathlib.Path(__file__).resolve().parent / "guest/init"
# rxe computes its checksums with crc32; without crc32_generic no device can be made.
MODULES = ("virtio_pci", "9pnet_virtio", "9p", "overlay", "crc32_generic", "ib_uverbs", "rdma_ucm",
           "rdma_rxe", "veth", "virtio_net", "sch_netem")


class Unavailable(Exception):
    """what the machine needs and this host lacks"""


def output(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    if done.returncode != 0:
        raise Unavailable(" ".join(f"{shlex.join(map(str, command))}: {done.stderr}".split()))
    return done.stdout


def download(package):
    """Fetches the newest kernel package, without installing it."""
    if shutil.which("apt-get") is None:
        raise Unavailable("the kernel comes from Debian by apt-get, which is not here")
    depends = re.search(r"Depends: (linux-image-\S+-amd64)",
                        output("apt-cache", "depends", "linux-image-amd64"))
    if depends is None:
        raise Unavailable("apt-get knows no linux-image-amd64; as root, run: apt-get update")
    with tempfile.TemporaryDirectory(dir=package.parent) as folder:
        output("apt-get", "download", "-q", depends[1], cwd=folder)
        next(pathlib.Path(folder).glob("*.deb")).rename(package)


def uncompressed(image):
    """The ELF kernel inside of a bzImage (Linux: Documentation/x86/boot.rst)."""
    setup_sectors = image[0x1f1] or 4
    offset, length = struct.unpack_from("<II", image, 0x248)
    start = (setup_sectors + 1) * 512 + offset
    try:
        return lzma.LZMADecompressor(format=lzma.FORMAT_XZ).decompress(image[start:start + length])
    except lzma.LZMAError:
        raise Unavailable("the kernel is not compressed by xz, as Debian's is") from None


def files_of_modules(root, version):
    """What insmod has to load, in this order."""
    files = []
    for module in MODULES:
        for line in output("modprobe", "-d", root, "-S", version, "--show-depends",
                           module).splitlines():
            name = line.split()[1] if line.startswith("insmod") else None
            if name and name not in files:
                files.append(name)
    return files


def pack(root, version, tree):
    """Writes the first root next to the folder `tree`, where it is put together."""
    for name in ("bin", "dev", "modules", "proc", "sys"):
        (tree / name).mkdir(parents=True)
    shutil.copy(shutil.which("busybox"), tree / "bin/busybox")
    for i, file in enumerate(files_of_modules(root, version)):
        shutil.copy(file, tree / f"modules/{i:02}-{os.path.basename(file)}")
    shutil.copy(INIT, tree / "init")
    output("sh", "-c", "find . | cpio -o -H newc --quiet | gzip -1 >../initrd.gz", cwd=tree)


def make(package, cache):
    with tempfile.TemporaryDirectory(dir=cache) as folder:
        work = pathlib.Path(folder)
        output("dpkg", "-x", package, work / "debian")
        version = next((work / "debian/lib/modules").iterdir()).name
        output("depmod", "-b", work / "debian", version)
        image = (work / f"debian/boot/vmlinuz-{version}").read_bytes()
        (work / "vmlinux").write_bytes(uncompressed(image))
        pack(work / "debian", version, work / "first")
        (work / "vmlinux").rename(cache / "vmlinux")
        (work / "initrd.gz").rename(cache / "initrd.gz") # says that both are there


def prepare(cache):
    """The kernel and its first root, in the folder `cache`, made unless they are there."""
    cache.mkdir(parents=True, exist_ok=True)
    package, kernel, first_root = (cache / name
                                   for name in ("linux-image.deb", "vmlinux", "initrd.gz"))
    with open(cache / "lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX) # two may want them at once
        if not package.exists():
            download(package)
        newest = max(path.stat().st_mtime for path in (INIT, pathlib.Path(__file__)))
        if not first_root.exists() or first_root.stat().st_mtime < newest:
            make(package, cache)
    return kernel, first_root
