#!/bin/sh
# try.sh FOLDER ARCH: install the packages of an architecture in a clean Debian, the .deb first and then the .rpm, use them as a
# stranger would, remove them, and look for what they left. Needs root, mmdebstrap, and for another architecture qemu-user-static with
# its binfmt entries and arch-test. SUITE: bookworm.
set -eu
out=$(cd "$1" && pwd) arch=$2 suite=${SUITE:-bookworm}
root=$(mktemp -d)
trap 'umount "$root/proc" 2>/dev/null || :; rm -rf "$root"' EXIT
say() { echo "$arch: $*"; }
die() { echo "$arch: $*" >&2; exit 1; }
in_root() { chroot "$root" "$@"; }

say "a clean Debian $suite"
mmdebstrap --quiet --variant=minbase --include=rpm --arch="$arch" "$suite" "$root"
mount -t proc proc "$root/proc"
list() { (cd "$root" && find . -path ./proc -prune -o -path ./var -prune -o -path ./root -prune -o -print | LC_ALL=C sort) }
left() { list | diff "$root/var/before" - >&2 || die "the lines with > are what is left of the .$1"; }
use() {
  in_root weft --version
  loads libnccl-net-weft.so || { cat "$root/tmp/log" >&2; die "the loader does not find libnccl-net-weft.so"; }
  loads libnccl-net.so && die "weft alone has taken the name libnccl-net.so"
  say "weft run"
  in_root weft run --local --sizes 8,64K --abi all >"$root/tmp/log" 2>&1 || { cat "$root/tmp/log" >&2; die "weft run failed"; }
  say "a process that opens the library as NCCL does"
  in_root weft conform --rule lib. libnccl-net-weft.so | tail -1
}
loads() { in_root weft conform --rule lib.load "$1" >"$root/tmp/log" 2>&1; }
use_default() {
  for name in libnccl-net.so libnccl-profiler.so librccl-net.so; do
    loads "$name" || { cat "$root/tmp/log" >&2; die "weft-default: the loader does not find $name"; }
  done
  test -s "$root/usr/share/man/man1/weft-run.1.gz" && test -s "$root/usr/share/pkgconfig/weft.pc" && in_root test -x /usr/bin/weft || die "files are missing"
}
list >"$root/var/before"

cp "$out"/weft_*_"$arch".deb "$out"/weft-default_*_"$arch".deb "$root/tmp/"
in_root sh -c "dpkg -i /tmp/weft_*_$arch.deb" >/dev/null
use
in_root sh -c "dpkg -i /tmp/weft-default_*_$arch.deb" >/dev/null
use_default
in_root dpkg --purge weft-default weft >/dev/null
rm -f "$root"/tmp/*
left deb
say "installed, used and removed: the .deb"

# What Debian cannot do for the .rpm: look up what it depends on, and find a library in /usr/lib64 without being told.
for dir in lib64 share/pkgconfig share/bash-completion/completions share/fish/vendor_completions.d share/zsh/site-functions; do
  mkdir -p "$root/usr/$dir" # where rpm is at home, they belong to its base system
done
list >"$root/var/before"
machine=$(case $arch in amd64) echo x86_64 ;; arm64) echo aarch64 ;; esac)
cp "$out"/weft-[0-9]*."$machine".rpm "$out"/weft-default-[0-9]*."$machine".rpm "$root/tmp/"
export LD_LIBRARY_PATH=/usr/lib64
in_root sh -c "rpm --checksig --nosignature /tmp/*.rpm && rpm --install --nodeps /tmp/weft-[0-9]*.rpm" >/dev/null
use
in_root sh -c "rpm --install --nodeps /tmp/weft-default-*.rpm"
use_default
in_root rpm --verify --nodeps weft weft-default || die "rpm finds other files than it installed"
in_root rpm --erase --nodeps weft-default weft
rm -f "$root"/tmp/*
left rpm
say "installed, used and removed: the .rpm"
