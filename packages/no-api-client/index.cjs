// An API client without methods, in the place of @kubernetes/client-node and gaxios for @dot-i/k8s-operator alone (`overrides` in
// package.json). The constructor of the library creates a client; ResilientOperator (src/operator/framework) overrides each method
// of the library that would use it.
exports.KubeConfig = class KubeConfig {
  loadFromDefault() {}
  makeApiClient() {}
}
