#!/usr/bin/env bash
# Runs one function of the Kubernetes shell tests of kubectl, in a working copy (working-copy.ts) that is the current folder.
# `between_functions` runs what they do between their functions.   driver.sh FUNCTION SERVER TOKEN
set -o errexit -o nounset -o pipefail
only="$1" server="$2" token="$3"

# Our version says who made the server: v1.34.3+kcp-...; that is skew to --match-server-version.
export TERM="${TERM:-xterm}" KUBE_TEMP="${PWD}/tmp" HOME="${PWD}/tmp" TMPDIR="${PWD}/tmp" ALLOW_SKEW=true
source hack/lib/init.sh
source hack/lib/test.sh
source test/cmd/legacy-script.sh

# With pipefail, a grep -q that ends at its first match breaks the pipe of whoever still writes, and fails the whole line.
grep() {
  local one all=() quiet=
  for one in "$@"; do
    case "${one}" in
      -q) quiet=yes ;;
      -q*) quiet=yes all+=("-${one#-q}") ;;
      *) all+=("${one}") ;;
    esac
  done
  if [[ -n "${quiet}" ]]; then command grep "${all[@]}" >/dev/null; else command grep "$@"; fi
}

kube::util::ensure-gnu-sed
trap 'stop-proxy || true' EXIT

CONTEXT=test
kubectl config set-credentials test-admin --token "${token}" >/dev/null
kubectl config set-cluster local --insecure-skip-tls-verify --server "${server}" >/dev/null
kubectl config set-context "${CONTEXT}" --user test-admin --cluster local >/dev/null
kubectl config use-context "${CONTEXT}" >/dev/null
create_and_use_new_namespace >/dev/null # where the function before would have left it

# As theirs, without the report: a function sets errexit itself, which must not be switched off around it.
record_command() {
  [[ "${only}" != between_functions ]] || return 0
  set +o errexit +o nounset
  ("${only}")
  local status=$?
  set -o errexit -o nounset
  [[ "${status}" -eq 0 ]] || foundError="${only}"
}

SUPPORTED_RESOURCES=("*")
[[ "${only}" == between_functions ]] || WHAT=one
runTests
