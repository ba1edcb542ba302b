#!/usr/bin/env bash
# Regenerates the tables in src/virtualapi/kinds/resources/typed/generated from the pinned Kubernetes modules.
set -euo pipefail
if [ "${1:-}" = --help ]; then
  sed -n 2p "$0" | cut -c3-
  exit 0
fi
here=$(cd "$(dirname "$0")" && pwd)
generated=$here/../../src/virtualapi/kinds/resources/typed/generated
write() {
  cd "$here/$1"
  go run . >"$generated/$2.new"
  mv "$generated/$2.new" "$generated/$2"
}
write go-types go-types.json
write go-internal internal-types.json
