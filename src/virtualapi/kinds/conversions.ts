// Resources that are served in several versions and stored in one. All other resources are stored as they are served.
import { apiVersionOf, type KubeObject } from '#apimachinery/meta/index.ts'
import { storageKeyOf } from './resources/resource-definition.ts'
import type { ResourceInfo } from './resources/resource-info.ts'
import { hpaFromStorage, hpaToStorage } from './conversion/horizontal-pod-autoscaler.ts'
import { eventFromStorage, eventToStorage } from './conversion/event.ts'

/** The store key, the version and the conversions with which a resource version is stored. */
export interface StorageForm {
  readonly storageKey: string
  readonly storageApiVersion: string
  /** Converts to the stored form. Pure; absent if only the apiVersion differs. */
  readonly toStorage?: (object: KubeObject) => KubeObject
  readonly fromStorage?: (object: KubeObject) => KubeObject
}

const converted: Readonly<Record<string, StorageForm>> = {
  'autoscaling/v1/horizontalpodautoscalers': {
    storageKey: 'horizontalpodautoscalers.autoscaling',
    storageApiVersion: 'autoscaling/v2',
    toStorage: hpaToStorage,
    fromStorage: hpaFromStorage,
  },
  'events.k8s.io/v1/events': {
    storageKey: 'events',
    storageApiVersion: 'v1',
    toStorage: eventToStorage,
    fromStorage: eventFromStorage,
  },
}

/** The storage key and storage version of a built-in resource version, with the conversions. */
export function storageOf(info: ResourceInfo): StorageForm {
  const apiVersion = apiVersionOf(info)
  return (
    converted[`${apiVersion}/${info.resource}`] ?? { storageKey: storageKeyOf(info), storageApiVersion: apiVersion }
  )
}
