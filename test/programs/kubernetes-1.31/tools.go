//go:build tools

// Package programs pins the API server of an older Kubernetes version, which tests use as a member.
package programs

import _ "k8s.io/kubernetes/cmd/kube-apiserver"
