export {
  isOf,
  watchAcross,
  type Across,
  type AcrossOptions,
  type ObjectIn,
  type ReconcileAcross,
  type ReconcileRequest,
  type Shard,
} from './watch-across.ts'
export type { AcrossResource } from './watched-resource.ts'
export { inClusterConfig, loadKubeconfig, type DeepReadonly, type Kubeconfig, type KubeClient } from '#client/index.ts'
export { type GroupVersionResource, type KubeObject } from '#apimachinery/meta/index.ts'
export { isStatusError } from '#apimachinery/status/index.ts'
export { createLogger, type Logger } from '#telemetry/index.ts'
