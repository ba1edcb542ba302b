export * from './annotations.ts'
export * from './client.ts'
export { createClient, type ClientOptions } from './create-client.ts'
export * from './endpoint.ts'
export { httpTransport, type HttpTransportOptions } from './http-transport.ts'
export * from './informer/index.ts'
export {
  inClusterConfig,
  loadKubeconfig,
  type Kubeconfig,
  type KubeconfigOptions,
  type KubeconfigSource,
} from './kubeconfig.ts'
export * from './transport.ts'
