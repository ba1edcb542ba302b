# Functions for the blocks `setup` in documents. The script of a page begins with this file.
# Without pipefail, as in the shell of a reader: `head` ends what writes to it.
set -eu

# Starts kcp on an embedded store in .run/kcp, and makes its admin's file the current kubeconfig.
installation() {
  kcp start --root-dir .run/kcp > kcp.log 2>&1 &
  wait_until kcp_is_ready
  export KUBECONFIG=$PWD/.run/kcp/admin.kubeconfig
}

kcp_is_ready() {
  [ -s .run/kcp/admin.kubeconfig ] && kubectl --kubeconfig .run/kcp/admin.kubeconfig get --raw /readyz
}

# Simulated members that run pods, by name; their kubeconfigs are NAME.kubeconfig.
members() {
  for name; do kcp member simulate "$name" --root-dir .run/kcp > "$name.log" 2>&1 & done
  for name; do
    wait_until kubectl --kubeconfig .run/kcp/admin.kubeconfig wait --for=condition=Ready "membercluster/$name" --timeout=1s
  done
}

# A host, which runs already.
host() {
  export KUBECONFIG=$PWD/host.kubeconfig
}

wait_until() {
  for _ in $(seq 300); do
    if "$@" > /dev/null 2>&1; then return; fi
    sleep 0.2
  done
  echo "does not become true: $*" >&2
  return 1
}

end_all() {
  local jobs
  jobs=$(jobs -p)
  # Their data is thrown away, so nothing has to end in order.
  [ -z "$jobs" ] || kill -KILL $jobs 2> /dev/null || true
  wait
}
trap end_all EXIT
trap 'exit 143' TERM INT
