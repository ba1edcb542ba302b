// storage.k8s.io.
import type { JsonObject } from '#apimachinery/meta/index.ts'
import type { Row } from '#test/parity/support/compare-rows.ts'
import { kindRows } from './kind-table.ts'

const labels = { app: 'web' }
const meta = { labels }
const wide = (name: string): JsonObject => ({ name: `${name}-$ID` })

export const storageRows: readonly Row[] = [
  ...kindRows({
    object: {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'StorageClass',
      metadata: wide('storage'),
      provisioner: 'example.com/x',
      parameters: { a: 'b' },
    },
    others: [
      ['no provisioner', { provisioner: '' }],
      ['an invalid provisioner', { provisioner: 'A B' }],
      ['unknown policies', { reclaimPolicy: 'x', volumeBindingMode: 'y' }],
      ['Recycle', { reclaimPolicy: 'Recycle' }],
      ['empty keys', { parameters: { '': 'x' } }],
      ['many parameters', { parameters: Object.fromEntries(Array.from({ length: 513 }, (_, i) => [`k${i}`, ''])) }],
      [
        'topologies',
        {
          allowedTopologies: [
            {
              matchLabelExpressions: [
                { key: 'a', values: ['x', 'x'] },
                { key: 'a', values: [] },
              ],
            },
            {},
          ],
        },
      ],
      [
        'expansion and options',
        { allowVolumeExpansion: true, mountOptions: ['ro'], volumeBindingMode: 'WaitForFirstConsumer' },
      ],
    ],
    updates: [
      ['provisioner', { provisioner: 'example.com/y' }],
      ['parameters', { parameters: { a: 'c' } }],
      ['policy', { reclaimPolicy: 'Retain' }],
      ['mode', { volumeBindingMode: 'WaitForFirstConsumer' }],
      ['expansion', { allowVolumeExpansion: true }],
      ['mount options', { mountOptions: ['ro'] }],
      ['topologies', { allowedTopologies: [{ matchLabelExpressions: [{ key: 'a', values: ['x'] }] }] }],
    ],
  }),
  ...kindRows({
    object: {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'CSIDriver',
      metadata: { name: 'csi-$ID.example.com' },
      spec: { attachRequired: true },
    },
    others: [
      ['nothing', { spec: null }],
      ['an invalid name', { metadata: { name: 'a'.repeat(64) } }],
      ['unknown modes', { spec: { volumeLifecycleModes: ['x'], fsGroupPolicy: 'y' } }],
      [
        'token requests',
        {
          spec: {
            tokenRequests: [
              { audience: 'a' },
              { audience: 'a', expirationSeconds: 5 },
              { audience: 'b', expirationSeconds: 8589934592 },
            ],
          },
        },
      ],
      ['a period', { spec: { nodeAllocatableUpdatePeriodSeconds: 5 } }],
      [
        'everything',
        {
          spec: {
            podInfoOnMount: true,
            storageCapacity: true,
            requiresRepublish: true,
            seLinuxMount: true,
            fsGroupPolicy: 'File',
          },
        },
      ],
    ],
    updates: [
      ['attachRequired', { spec: { attachRequired: false } }],
      ['podInfoOnMount', { spec: { podInfoOnMount: true } }],
      ['fsGroupPolicy', { spec: { fsGroupPolicy: 'File' } }],
      ['modes', { spec: { volumeLifecycleModes: ['Ephemeral'] } }],
      ['capacity', { spec: { storageCapacity: true } }],
      ['republish', { spec: { requiresRepublish: true } }],
      ['tokens', { spec: { tokenRequests: [{ audience: 'x' }] } }],
    ],
  }),
  ...kindRows({
    object: {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'CSINode',
      metadata: wide('csinode'),
      spec: { drivers: [{ name: 'a.example.com', nodeID: 'n', topologyKeys: ['a.b/c'] }] },
    },
    others: [
      ['nothing', { spec: null }],
      [
        'invalid drivers',
        {
          spec: {
            drivers: [
              { name: 'a.b', nodeID: '' },
              { name: 'a.b', nodeID: 'x', topologyKeys: ['a', 'a', 'b c', ''] },
              { name: '', nodeID: 'y'.repeat(200) },
              { name: 'A_', nodeID: 'x', allocatable: { count: -1 } },
            ],
          },
        },
      ],
    ],
    updates: [
      [
        'one more',
        {
          spec: {
            drivers: [
              { name: 'a.example.com', nodeID: 'n', topologyKeys: ['a.b/c'] },
              { name: 'b.example.com', nodeID: 'n' },
            ],
          },
        },
      ],
      ['another id', { spec: { drivers: [{ name: 'a.example.com', nodeID: 'm', topologyKeys: ['a.b/c'] }] } }],
    ],
  }),
  ...kindRows({
    object: {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'VolumeAttachment',
      metadata: wide('attach'),
      spec: { attacher: 'a.example.com', nodeName: 'n', source: { persistentVolumeName: 'pv' } },
    },
    others: [
      ['nothing', { spec: null }],
      ['no source', { spec: { source: { persistentVolumeName: null } } }],
      ['invalid names', { spec: { attacher: 'A B', nodeName: '', source: { persistentVolumeName: '' } } }],
      [
        'an inline source',
        {
          spec: {
            source: {
              persistentVolumeName: null,
              inlineVolumeSpec: {
                capacity: { storage: '1Gi' },
                accessModes: ['ReadWriteOnce'],
                csi: { driver: 'a.b', volumeHandle: 'x' },
              },
            },
          },
        },
      ],
      ['both', { spec: { source: { inlineVolumeSpec: {} } } }],
      ['a status', { status: { attached: true } }],
    ],
    updates: [['the node', { spec: { nodeName: 'm' } }]],
    parts: [
      ['status', 'attached', { status: { attached: true, attachmentMetadata: { a: 'b' } } }],
      ['status', 'an error', { status: { attachError: { message: 'x'.repeat(2000), errorCode: 5 } } }],
    ],
  }),
  ...kindRows({
    object: {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'CSIStorageCapacity',
      metadata: meta,
      storageClassName: 'x',
      capacity: '1Gi',
    },
    others: [
      ['no class', { storageClassName: '' }],
      ['an invalid class name', { storageClassName: 'A_' }],
      ['negative', { capacity: '-1', maximumVolumeSize: '-1' }],
      ['an invalid topology', { nodeTopology: { matchExpressions: [{ key: 'a', operator: 'Huh' }] } }],
    ],
    updates: [
      ['capacity', { capacity: '2Gi' }],
      ['the class', { storageClassName: 'y' }],
      ['the topology', { nodeTopology: { matchLabels: { a: 'b' } } }],
    ],
  }),
  ...kindRows({
    object: {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'VolumeAttributesClass',
      metadata: wide('vac'),
      driverName: 'a.example.com',
      parameters: { a: 'b' },
    },
    others: [
      ['no driver', { driverName: '' }],
      ['an invalid driver', { driverName: 'A B' }],
      ['no parameters', { parameters: null }],
      ['empty keys', { parameters: { '': 'x' } }],
    ],
    updates: [
      ['the driver', { driverName: 'b.example.com' }],
      ['the parameters', { parameters: { a: 'c' } }],
    ],
  }),
]
