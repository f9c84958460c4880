#!/bin/sh
# image.sh FOLDER ARCH: build the image of docs/examples/kubernetes/Dockerfile from the archive of FOLDER, on a Debian made here under
# the name that its FROM line has, run it as an init container does, and use what it has copied in a root that has nothing else.
# Needs root, buildah and mmdebstrap. SUITE: bookworm.
set -eu
out=$(cd "$1" && pwd) arch=$2 suite=${SUITE:-bookworm}
file=$(cd "$(dirname "$0")/../../docs/examples/kubernetes" && pwd)/Dockerfile
die() { echo "image: $*" >&2; exit 1; }
[ "$(id -u)" = 0 ] || die "this needs root, for roots of its own"
for tool in buildah mmdebstrap; do command -v $tool >/dev/null || die "$tool is missing: install it"; done
archive=$(ls "$out"/weft-*-linux-"$arch".tar.gz 2>/dev/null) || die "$out has no archive for $arch: make packages first, or say PACK_OUT=FOLDER"
version=${archive##*/weft-} version=${version%-linux-*}
work=$(mktemp -d)
box() { buildah --root "$work/images" --runroot "$work/run" --storage-driver vfs "$@"; }
trap 'box unmount --all >/dev/null 2>&1 || :; umount "$work/root/proc" 2>/dev/null || :; rm -rf "$work"' EXIT

echo "image: a Debian $suite under the name of the FROM line"
mmdebstrap --quiet --variant=minbase --arch="$arch" "$suite" "$work/base.tar"
base=$(box from scratch)
box add --quiet "$base" "$work/base.tar" / >/dev/null
box config --arch "$arch" "$base"
box commit --quiet --rm "$base" "$(sed -n 's/^FROM //p' "$file")" >/dev/null

echo "image: build"
box build --quiet --isolation chroot --pull-never --arch "$arch" --build-arg VERSION="$version" --build-arg TARGETARCH="$arch" --tag weft -f "$file" "$out" >/dev/null

# The command is the image's own; the volume is an empty folder, which is /opt/weft in that container and in the job's.
echo "image: run it as an init container"
init=$(box from --pull-never weft)
mkdir "$work/volume"
box inspect --type container --format '{{range .OCIv1.Config.Cmd}}{{println .}}{{end}}' "$init" | sed '/^$/d' >"$work/words"
[ -s "$work/words" ] || die "the image has no CMD"
set --
while IFS= read -r word; do set -- "$@" "$word"; done <"$work/words"
box run --isolation chroot --volume "$work/volume:/opt/weft" "$init" "$@"

echo "image: use what it has copied"
mkdir -p "$work/root/opt"
tar xf "$work/base.tar" -C "$work/root"
mv "$work/volume" "$work/root/opt/weft"
mount -t proc proc "$work/root/proc"
chroot "$work/root" sh -euc 'eval "$(/opt/weft/bin/weft env)"; echo "image: $NCCL_NET_PLUGIN in $LD_LIBRARY_PATH"; /opt/weft/bin/weft selftest' >"$work/log" 2>&1 ||
  { cat "$work/log" >&2; die "what was copied does not work"; }
grep '^image:' "$work/log"
tail -1 "$work/log"
