export * from './informer/index.ts'
export {
  inClusterConfig,
  loadKubeconfig,
  type Kubeconfig,
  type KubeconfigOptions,
  type KubeconfigSource,
} from './kubeconfig/kubeconfig.ts'
export * from './kubeconfig/endpoint.ts'
export { type ExecCommand, kubeconfigText, type KubeconfigCredentials } from './kubeconfig/kubeconfig.ts'
export { httpTransport, type HttpTransportOptions } from './verbs/http-transport.ts'
export { connectThroughProxy } from './verbs/proxy-tunnel.ts'
export { boundedTransport, passedOn, responseBoundOf } from './verbs/bounded-transport.ts'
export { tracedTransport } from './verbs/traced-transport.ts'
export * from './verbs/transport.ts'
export * from './verbs/client.ts'
export { linesOf, readJson } from './verbs/response.ts'
export { createClient, untrustedServer, type ClientOptions } from './verbs/create-client.ts'
