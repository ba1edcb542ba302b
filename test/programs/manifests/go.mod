// Projects whose manifests and CustomResourceDefinitions the suites in test/manifests apply. Only the files of these modules are
// read, nothing is compiled; go.sum pins them.
module kcp.dev/test/programs/manifests

go 1.25.0

require (
	github.com/argoproj/argo-cd/v3 v3.1.9
	github.com/argoproj/argo-rollouts v1.8.3
	github.com/cert-manager/cert-manager v1.21.2
	github.com/crossplane-contrib/provider-kubernetes v1.0.0
	github.com/fluxcd/kustomize-controller v1.9.5
	github.com/fluxcd/source-controller v1.9.0
	github.com/kyverno/kyverno v1.19.1
	github.com/open-policy-agent/gatekeeper/v3 v3.23.1
	github.com/prometheus-operator/prometheus-operator v0.85.0
	k8s.io/kubernetes v1.34.3
	sigs.k8s.io/gateway-api v1.4.0
	sigs.k8s.io/kueue v0.17.0
	sigs.k8s.io/kwok v0.8.0
	sigs.k8s.io/mcs-api v0.5.2
	sigs.k8s.io/metrics-server v0.9.0
)
