// The gateway's view of its member: four lists, each followed by a watch. Only a small record of each object is kept.
import type { GroupVersionResource, KubeObject } from '#apimachinery/meta/index.ts'
import { createInformer, type Informer, type KubeClient } from '#client/index.ts'
import { gatewayNamespacesName, gatewayPeerLabel, managedLabel, memberParts } from '#crds/index.ts'
import type { Logger } from '#telemetry/index.ts'
import { podRecord, type PodRecord } from './pod-addresses.ts'
import { peerOf, type Peer } from './peers.ts'
import { sliceRecord, type SliceRecord } from './slice-record.ts'

const secrets = { group: '', version: 'v1', resource: 'secrets' } as const
const configmaps = { group: '', version: 'v1', resource: 'configmaps' } as const
const pods = { group: '', version: 'v1', resource: 'pods' } as const
const endpointslices = { group: 'discovery.k8s.io', version: 'v1', resource: 'endpointslices' } as const
const managed = `${managedLabel}=true`

/** An object reduced to its record. */
interface Kept<T> extends KubeObject {
  kept: T | undefined
}

export type OnChange<T> = (key: string, before: T | undefined, after: T | undefined) => void

export interface MemberViewOptions {
  readonly client: KubeClient
  readonly namespace: string
  /** Called with the gateway's Secret, or with undefined when it is gone. */
  readonly onSecret: (secret: KubeObject | undefined) => void
  /** Called with the ConfigMap of the adopted namespaces, or with undefined when it is gone. */
  readonly onNamespaces: (configMap: KubeObject | undefined) => void
  readonly onPeer: OnChange<Peer>
  readonly onSlice: OnChange<SliceRecord>
  readonly onPod: OnChange<PodRecord>
  readonly log: Logger
  readonly signal: AbortSignal
}

export interface MemberView extends AsyncDisposable {
  /** Resolves when all lists are complete. */
  synced(signal: AbortSignal): Promise<void>
  readonly hasSynced: boolean
}

/** Starts the lists and watches. */
export function followMember(options: MemberViewOptions): MemberView {
  const { client, namespace, onSecret, onNamespaces, onPeer, onSlice, onPod, log, signal } = options
  const keep = <T>(
    gvr: GroupVersionResource,
    record: (object: KubeObject) => T | undefined,
    onChange: OnChange<T>,
    scope: { readonly namespace?: string; readonly labelSelector?: string; readonly fieldSelector?: string },
  ): Informer<Kept<T>> => {
    const transform = (object: Kept<T>): Kept<T> => keptOf(object, record)
    const informer = createInformer<Kept<T>>({ client, gvr, ...scope, transform, log, signal })
    informer.onChange(({ key, before, after }) => {
      const [was, is] = [before?.kept, after?.kept] as [T | undefined, T | undefined]
      if (was !== undefined || is !== undefined) onChange(key, was, is)
    })
    return informer
  }
  const informers = [
    keep<KubeObject>(
      secrets,
      (secret) => secret,
      (_key, _before, after) => onSecret(after),
      {
        namespace,
        fieldSelector: `metadata.name=${memberParts.gateway}`,
      },
    ),
    keep<KubeObject>(
      configmaps,
      (configMap) => configMap,
      (_key, _before, after) => onNamespaces(after),
      { namespace, fieldSelector: `metadata.name=${gatewayNamespacesName}` },
    ),
    keep<Peer>(configmaps, peerOf, onPeer, { namespace, labelSelector: `${gatewayPeerLabel}=true` }),
    // Pods come before slices: an endpoint that has left is used only while its pod is known.
    keep<PodRecord>(pods, podRecord, onPod, { labelSelector: managed }),
    // The controller of EndpointSlices copies the labels of a Service to the slices with its pods: one selector finds
    // both kinds of slices.
    keep<SliceRecord>(endpointslices, sliceRecord, onSlice, { labelSelector: managed }),
  ]
  return {
    synced: async (until) => {
      await Promise.all(informers.map((informer) => informer.synced(until)))
    },
    get hasSynced() {
      return informers.every(({ hasSynced }) => hasSynced)
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(informers.map((informer) => informer[Symbol.asyncDispose]()))
    },
  }
}

/** Asks the API for the pods with this address. */
export async function findPods(client: KubeClient, address: string, signal: AbortSignal): Promise<PodRecord[]> {
  const fieldSelector = `status.podIP=${address}`
  const { items } = await client.list<KubeObject>(pods, { labelSelector: managed, fieldSelector, signal })
  return items.map(podRecord).filter((record) => record !== undefined)
}

function keptOf<T>(object: KubeObject, record: (object: KubeObject) => T | undefined): Kept<T> {
  const { name, namespace, uid, resourceVersion } = object.metadata
  const metadata = {
    ...(name !== undefined && { name }),
    ...(namespace !== undefined && { namespace }),
    ...(uid !== undefined && { uid }),
    ...(resourceVersion !== undefined && { resourceVersion }),
  }
  return { apiVersion: object.apiVersion, kind: object.kind, metadata, kept: record(object) }
}
