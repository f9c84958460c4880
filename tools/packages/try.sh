#!/bin/sh
# try.sh FOLDER ARCH: install the .deb of an architecture in a clean Debian, use it as a stranger would, remove it, and look for what it
# left. Needs root, mmdebstrap, and for another architecture qemu-user-static with its binfmt entries and arch-test. SUITE: bookworm.
set -eu
out=$(cd "$1" && pwd) arch=$2 suite=${SUITE:-bookworm}
root=$(mktemp -d)
trap 'umount "$root/proc" 2>/dev/null || :; rm -rf "$root"' EXIT
say() { echo "$arch: $*"; }
die() { echo "$arch: $*" >&2; exit 1; }
in_root() { chroot "$root" "$@"; }

say "a clean Debian $suite"
mmdebstrap --quiet --variant=minbase --arch="$arch" "$suite" "$root"
mount -t proc proc "$root/proc"
before=$(cd "$root" && find . -path ./proc -prune -o -path ./var -prune -o -print | LC_ALL=C sort | sha256sum)

cp "$out"/weft_*_"$arch".deb "$out"/weft-default_*_"$arch".deb "$root/tmp/"
in_root sh -c "dpkg -i /tmp/weft_*_$arch.deb" >/dev/null
in_root weft --version
loads() { in_root weft conform --rule lib.load "$1" >"$root/tmp/log" 2>&1; }
loads libnccl-net-weft.so || { cat "$root/tmp/log" >&2; die "the loader does not find libnccl-net-weft.so"; }
loads libnccl-net.so && die "weft alone has taken the name libnccl-net.so"
say "weft run"
in_root weft run --local --sizes 8,64K --abi all >"$root/tmp/log" 2>&1 || { cat "$root/tmp/log" >&2; die "weft run failed"; }
say "a process that opens the library as NCCL does"
in_root weft conform --rule lib. libnccl-net-weft.so | tail -1

in_root sh -c "dpkg -i /tmp/weft-default_*_$arch.deb" >/dev/null
for name in libnccl-net.so libnccl-profiler.so librccl-net.so; do
  loads "$name" || { cat "$root/tmp/log" >&2; die "weft-default: the loader does not find $name"; }
done
test -s "$root/usr/share/man/man1/weft-run.1.gz" && test -s "$root/usr/share/pkgconfig/weft.pc" && in_root test -x /usr/bin/weft || die "files are missing"

in_root dpkg --purge weft-default weft >/dev/null
rm -f "$root"/tmp/*
after=$(cd "$root" && find . -path ./proc -prune -o -path ./var -prune -o -print | LC_ALL=C sort | sha256sum)
test "$before" = "$after" || die "something is left of the packages: $(cd "$root" && find . -name '*weft*' -not -path './var/*' -not -path './proc/*')"
say "installed, used and removed"
