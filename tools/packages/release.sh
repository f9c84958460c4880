#!/bin/sh
# release.sh FOLDER: make the files of a release from the tag of this commit, after all that can be checked by a machine. They are built
# twice, in clones of different names, and must have the same bytes. With KEY, a GnuPG key, SHA256SUMS is signed.
set -eu
out=$1
die() { echo "release: $*" >&2; exit 1; }
version=$(sed -n 's/^const release = "\(.*\)"$/\1/p' internal/version/version.go)
tag=v$version
case $version in *-*) die "internal/version says $version: a release has no suffix. Change it, and begin a chapter of CHANGELOG.md" ;; esac
[ -z "$(git status --porcelain)" ] || die "the work tree has changes that no commit has: git status"
[ "$(git describe --tags --exact-match --match "$tag" 2>/dev/null)" = "$tag" ] || die "this commit is not $tag: git tag -s $tag -m 'weft $version'"
[ "$(git cat-file -t "$tag")" = tag ] || die "$tag says nothing of who made it: git tag -s -f $tag -m 'weft $version'"
# Whether a signature is good only its maker's public key says, which must be here.
said=$(git verify-tag "$tag" 2>&1) || die "git verify-tag $tag: $said
release: if nobody has signed it: git tag -s -f $tag -m 'weft $version'; if its maker's key is missing: gpg --import it first"
notes=$(awk -v head="## $version" 'index($0, "## ") == 1 { on = ($0 == head || index($0, head " ") == 1); next } on' CHANGELOG.md)
[ -n "$notes" ] || die "CHANGELOG.md has no chapter \"## $version\", which is the notes of the release"
[ -z "${KEY:-}" ] || gpg --list-secret-keys "$KEY" >/dev/null || die "there is no secret key $KEY"
make --no-print-directory released-check

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for clone in one another; do
  git -c advice.detachedHead=false clone --quiet --branch "$tag" . "$work/$clone"
  echo "release: the packages of $tag, in a clone named $clone"
  make --no-print-directory -C "$work/$clone" packages >"$work/log" 2>&1 || { cat "$work/log" >&2; die "make packages failed"; }
done
diff "$work/one/dist/packages/SHA256SUMS" "$work/another/dist/packages/SHA256SUMS" >&2 || die "the same commit gave other bytes"

rm -rf "$out" && mkdir -p "$out" && cp "$work"/one/dist/packages/* "$out/"
printf '%s\n' "$notes" >"$out/NOTES.md"
rm "$out/SHA256SUMS"
(cd "$out" && sha256sum -- *) >"$work/sums"
mv "$work/sums" "$out/SHA256SUMS"
[ -z "${KEY:-}" ] || gpg --local-user "$KEY" --armor --detach-sign --output "$out/SHA256SUMS.asc" "$out/SHA256SUMS"
echo "release: $out has $(ls "$out" | wc -l) files of $tag"
[ -n "${KEY:-}" ] || echo "release: nobody has signed it: gpg --armor --detach-sign $out/SHA256SUMS"
