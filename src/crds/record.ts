// Record: one object of a logical cluster, stored in the host's etcd by store/host. Not an API for tenants.
import type { KubeObject, ObjectMeta } from '#apimachinery/meta/index.ts'
import { ageColumn } from './conditions.ts'
import type { Kind } from './crd.ts'

/** Fields are at the top and not in `spec`: people do not edit Records, and each byte is stored for every object. */
export interface StorageRecord extends KubeObject {
  apiVersion: 'storage.kcp.dev/v1'
  kind: 'Record'
  metadata: ObjectMeta & { name: string; namespace: string }
  /** Id of the logical cluster. */
  cluster: string
  /** Resource and group, such as `deployments.apps`. */
  resource: string
  /** Empty or absent for cluster-scoped objects. */
  namespace?: string
  name: string
  /** The object as one string, so that the host neither decodes nor tracks its fields. */
  data: string
}

/** Labels of a Record. Lists select Records by these and by their namespace (the bucket). */
export const recordClusterLabel = 'storage.kcp.dev/cluster'
export const recordResourceLabel = 'storage.kcp.dev/resource'

export const recordKind: Kind = {
  group: 'storage.kcp.dev',
  version: 'v1',
  kind: 'Record',
  plural: 'records',
  scope: 'Namespaced',
  description:
    'A Record contains one object of a logical cluster. Only the API server of kcp writes it; use kubectl on the logical cluster instead. Its fields: cluster, the id of the logical cluster; resource, with the group; namespace and name of the object there; data, the object itself.',
  // The store checks the other fields when it reads a Record (store/host/record-codec.ts).
  open: true,
  properties: { data: { type: 'string', description: 'The object itself.' } },
  required: ['cluster', 'resource', 'name', 'data'],
  status: false,
  columns: [
    { name: 'Cluster', type: 'string', jsonPath: '.cluster' },
    { name: 'Resource', type: 'string', jsonPath: '.resource' },
    { name: 'In Namespace', type: 'string', jsonPath: '.namespace' },
    { name: 'Object', type: 'string', jsonPath: '.name' },
    ageColumn,
  ],
}

export const records = { group: 'storage.kcp.dev', version: 'v1', resource: 'records' } as const
