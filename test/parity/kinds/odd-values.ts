// Values that a generator over the OpenAPI schemas found: quantities and times in unusual spellings, and what the
// storage of a kind fills in or drops.
import type { JsonObject } from '#apimachinery/meta/index.ts'
import { row, type Row } from '#test/parity/support/compare-rows.ts'
import type { Manifest } from '#test/parity/support/session.ts'

const quantities = [
  ...[
    '+1',
    '001',
    '5.',
    '.5',
    '1.500',
    '1.50',
    '1000m',
    ' 1',
    '1 ',
    '1e3',
    '1E3',
    '1e+3',
    '1E+03',
    '1e4',
    '1024Mi',
    '1.Gi',
  ],
  ...['8Mi', '16Ki', '00', '0m', '1n', '1500u', '0.0001', '1.123456789', '1.1234567891', '1e', '1Mi1', 'x', ''],
]

const object = (apiVersion: string, kind: string, rest: JsonObject): Manifest => ({
  ...{ apiVersion, kind, metadata: { name: 'odd-value' } },
  ...rest,
})

const withQuantity: Readonly<Record<string, (quantity: string) => Manifest>> = {
  'a pod': (cpu) =>
    object('v1', 'Pod', { spec: { containers: [{ name: 'c', image: 'i', resources: { limits: { cpu } } }] } }),
  'a volume': (sizeLimit) =>
    object('v1', 'Pod', {
      spec: { containers: [{ name: 'c', image: 'i' }], volumes: [{ name: 'v', emptyDir: { sizeLimit } }] },
    }),
  'a quota': (cpu) => object('v1', 'ResourceQuota', { spec: { hard: { cpu } } }),
  'an overhead': (cpu) => object('node.k8s.io/v1', 'RuntimeClass', { handler: 'h', overhead: { podFixed: { cpu } } }),
  'a metric': (averageValue) =>
    object('autoscaling/v2', 'HorizontalPodAutoscaler', {
      spec: {
        maxReplicas: 2,
        scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'x' },
        metrics: [{ type: 'Pods', pods: { metric: { name: 'm' }, target: { type: 'AverageValue', averageValue } } }],
      },
    }),
}

const noTime = '0001-01-01T00:00:00Z'
const noMicroTime = '0001-01-01T00:00:00.000000Z'

const objects: Readonly<Record<string, readonly Manifest[]>> = {
  'times that are zero': [
    object('v1', 'Event', {
      involvedObject: { namespace: '$NS', name: 'x' },
      ...{ firstTimestamp: noTime, lastTimestamp: noTime, eventTime: null },
    }),
    object('coordination.k8s.io/v1', 'Lease', { spec: { renewTime: noMicroTime, acquireTime: noMicroTime } }),
    object('v1', 'PodTemplate', {
      template: {
        metadata: { creationTimestamp: noTime, deletionTimestamp: noTime },
        spec: { containers: [{ name: 'c', image: 'i' }] },
      },
    }),
  ],
  'a limit range without a name': [
    { apiVersion: 'v1', kind: 'LimitRange', metadata: {}, spec: { limits: [{ type: 'Pod', max: { cpu: '1' } }] } },
  ],
  'sources of a claim': [
    { kind: 'Else', name: 'a' },
    { apiGroup: 'example.com', kind: 'Populator', name: 'a' },
    { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name: 'a' },
    { kind: 'PersistentVolumeClaim', name: 'a' },
    { apiGroup: '-x', kind: 'VolumeSnapshot', name: '' },
  ].flatMap((source) =>
    [{ dataSource: source }, { dataSource: source, dataSourceRef: source }].map((sources) =>
      object('v1', 'PersistentVolumeClaim', {
        spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, ...sources },
      }),
    ),
  ),
  'an external name with a traffic policy': ['Local', 'Cluster', 'Else'].map((internalTrafficPolicy) =>
    object('v1', 'Service', { spec: { type: 'ExternalName', externalName: 'a.example.com', internalTrafficPolicy } }),
  ),
}

export const oddValueRows: readonly Row[] = [
  ...Object.entries(withQuantity).map(([what, make]) =>
    row(`odd values: quantities of ${what}`, async (session) => {
      for (const quantity of quantities) await session.create(make(quantity), { query: '?dryRun=All' })
    }),
  ),
  ...Object.entries(objects).map(([what, manifests]) =>
    row(`odd values: ${what}`, async (session) => {
      for (const manifest of manifests) await session.create(manifest, { query: '?dryRun=All' })
    }),
  ),
]
