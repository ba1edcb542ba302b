export {
  createClient,
  createInformer,
  httpTransport,
  inClusterConfig,
  loadKubeconfig,
  type ClientOptions,
  type DeepReadonly,
  type Informer,
  type InformerOptions,
  type KubeClient,
  type Kubeconfig,
  type Transport,
  type WatchEvent,
} from '#client/index.ts'
export { type GroupVersionResource, type KubeObject } from '#apimachinery/meta/index.ts'
export { isStatusError } from '#apimachinery/status/index.ts'
export { createLogger, type Logger } from '#telemetry/index.ts'
