//go:build tools

// Package programs pins projects whose suites start a control plane by envtest.
package programs

import (
	_ "github.com/fluxcd/pkg/ssa"
	_ "github.com/open-policy-agent/cert-controller/pkg/rotator"
	_ "sigs.k8s.io/controller-runtime/pkg/client"
	_ "sigs.k8s.io/controller-runtime/pkg/envtest"
)
