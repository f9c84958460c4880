#!/bin/sh
# oldest.sh ARCHIVE GLIBC FOLDER: unpack the .tar.gz of this machine's architecture where there is nothing but a glibc built from the
# tree GLIBC (a checkout of glibc-2.28, the oldest that packages run on), and use it as a stranger would. The build stays in FOLDER.
# Needs root, bison and gawk.
set -eu
die() { echo "glibc: $*" >&2; exit 1; }
[ "$(id -u)" = 0 ] || die "this needs root, for a root of its own"
[ -f "$1" ] || die "there is no archive for this machine: make packages first, or say PACK_OUT=FOLDER"
archive=$(realpath "$1") tree=$(realpath "$2") build=$3
case $(uname -m) in
x86_64) loader=/lib64/ld-linux-x86-64.so.2 ;;
aarch64) loader=/lib/ld-linux-aarch64.so.1 ;;
*) die "weft is built for x86_64 and aarch64, and this is $(uname -m)" ;;
esac
for tool in bison gawk; do command -v $tool >/dev/null || die "$tool is missing: install it"; done
version=$(sed -n 's/^#define VERSION "\(.*\)"/\1/p' "$tree/version.h")
[ -n "$version" ] || die "$tree is no tree of glibc: it has no version.h"

mkdir -p "$build" && cd "$build"
if ! [ -e built ]; then
  echo "glibc: building $version from $tree into $build"
  # A tree of 2018 knows neither -fno-common nor control-flow protection, which compilers of today take for granted.
  { "$tree/configure" --prefix=/usr --disable-werror --disable-profile --disable-nscd --without-selinux \
    CFLAGS="-O2 -U_FORTIFY_SOURCE -fcommon -fno-stack-protector -fcf-protection=none" && make -j"$(nproc)"; } >log 2>&1 || { tail -20 log >&2; die "the build failed: see $build/log"; }
  touch built
fi
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root/lib" "$root/lib64" "$root/proc" "$root/dev" "$root/tmp" "$root/weft"
# The loader and what Debian has in libc6 of the libraries; nothing else, no libgcc, no libstdc++.
cp elf/ld.so "$root$loader"
for l in libc.so.6:libc.so libm.so.6:math/libm.so libdl.so.2:dlfcn/libdl.so libpthread.so.0:nptl/libpthread.so.0 librt.so.1:rt/librt.so libresolv.so.2:resolv/libresolv.so; do
  cp "${l#*:}" "$root/lib64/${l%:*}"
done
tar xzf "$archive" -C "$root/weft" --strip-components=1
# In a mount namespace of its own, so that nothing of this machine is below $root when it is removed.
use() { unshare --mount sh -c 'mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && exec chroot "$0" "$@"' "$root" "$@" >"$root/tmp/log" 2>&1 || { cat "$root/tmp/log" >&2; die "$* failed on $version"; }; tail -1 "$root/tmp/log"; }
use /weft/bin/weft --version
use /weft/bin/weft conform --rule lib. /weft/lib/libnccl-net-weft.so
use /weft/bin/weft run --local --sizes 8,64K --abi all
echo "glibc: used on glibc $version"
