#!/bin/sh
# Builds the container image `ropewalk` from the archive of this machine's processor in a directory of packages.
#
#   sh packaging/container/build.sh dist [NAME]
set -eu

packages="${1:?the directory of the packages}"
name="${2:-ropewalk}"
here="$(cd "$(dirname "$0")" && pwd)"
archive="$(ls "$packages"/ropewalk-*-"$(uname -m)"-linux.tar.xz)"
version="$(basename "$archive" | cut -d- -f2)"
builder=
for tool in buildah podman docker; do
  if [ -z "$builder" ] && command -v "$tool" >/dev/null; then builder="$tool"; fi
done
[ -n "$builder" ] || { echo "build.sh: install buildah, podman or docker" >&2; exit 1; }
context="$(mktemp -d)"
trap 'rm -rf "$context"' EXIT
tar -xf "$archive" -C "$context" --strip-components=1
"$builder" build --file "$here/Containerfile" --tag "$name:$version" --tag "$name:latest" "$context"
