#!/usr/bin/env bash
# Regenerates src/virtualapi/catalog/bootstrap/generated/bootstrap-objects.json from the pinned Kubernetes module.
set -euo pipefail
if [ "${1:-}" = --help ]; then
  sed -n 2p "$0" | cut -c3-
  exit 0
fi
root=$(cd "$(dirname "$0")/../.." && pwd)
out=$root/src/virtualapi/catalog/bootstrap/generated/bootstrap-objects.json
cd "$root/test/programs/kubernetes"
go run "$root/scripts/generate/go-bootstrap/main.go" >"$out.new"
mv "$out.new" "$out"
