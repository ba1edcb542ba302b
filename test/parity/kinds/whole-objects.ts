// Large valid objects, which both servers store, and changes that make them invalid.
import type { JsonObject } from '#apimachinery/meta/index.ts'
import type { Row } from '#test/parity/support/compare-rows.ts'
import { kindRows } from './kind-table.ts'
import { wholePod, windowsPod } from './whole-pods.ts'

const labels = { app: 'web' }
const meta = (name: string): JsonObject => ({ name: `${name}-$ID`, labels })
const selector = { matchLabels: labels }
const template = (spec: JsonObject = {}): JsonObject => ({
  metadata: { labels },
  spec: { containers: [{ name: 'main', image: 'nginx:1.27' }], ...spec },
})

const pods: readonly Row[] = [
  ...kindRows(
    {
      object: { apiVersion: 'v1', kind: 'Pod', metadata: meta('whole'), spec: wholePod },
      others: [
        [
          'host ports twice',
          {
            spec: {
              hostNetwork: true,
              containers: [
                {
                  name: 'a',
                  image: 'a',
                  ports: [
                    { containerPort: 80, hostPort: 80 },
                    { containerPort: 80, hostPort: 80, protocol: 'UDP' },
                  ],
                },
                { name: 'b', image: 'b', ports: [{ containerPort: 80 }] },
              ],
            },
          },
        ],
        [
          'invalid tolerations',
          {
            spec: {
              tolerations: [
                { operator: 'Exists', value: 'x' },
                { key: 'a', operator: 'Equal', value: '-x-' },
                { key: 'a b', operator: 'Exists' },
                { operator: 'Equal' },
                { key: 'a', operator: 'Exists', effect: 'NoSchedule', tolerationSeconds: 1 },
              ],
            },
          },
        ],
        [
          'invalid fields and files of env',
          {
            spec: {
              containers: [
                {
                  name: 'main',
                  image: 'a',
                  env: [
                    { name: 'A', valueFrom: { fieldRef: { fieldPath: "metadata.labels['a b']" } } },
                    { name: 'B', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName2' } } },
                    { name: 'C', valueFrom: { resourceFieldRef: { resource: 'limits.cpu', divisor: '3' } } },
                    { name: 'D', valueFrom: { resourceFieldRef: { resource: 'limits.gpu' } } },
                    { name: 'E', value: 'x', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
                    { name: 'F', valueFrom: { secretKeyRef: { name: 'A_B', key: '..' } } },
                  ],
                },
              ],
            },
          },
        ],
        ['invalid host aliases', { spec: { hostAliases: [{ ip: 'x', hostnames: ['A_B'] }, { ip: '010.0.0.1' }] } }],
        ['invalid names of hosts', { spec: { hostname: 'a.b', subdomain: 'A', nodeName: 'x_y' } }],
        [
          'sysctls of the host',
          {
            spec: {
              hostNetwork: true,
              securityContext: {
                sysctls: [
                  { name: 'net.core.somaxconn', value: '1' },
                  { name: 'net.core.somaxconn', value: '1' },
                  { name: 'A b' },
                ],
              },
            },
          },
        ],
      ],
      updates: [
        ['tolerations', { spec: { tolerations: [{ operator: 'Exists' }] } }],
        ['a deadline', { spec: { activeDeadlineSeconds: 50 } }],
        ['a longer deadline', { spec: { activeDeadlineSeconds: 500 } }],
        ['the volumes', { spec: { volumes: [] } }],
      ],
    },
    'whole',
  ),
  ...kindRows({ object: { apiVersion: 'v1', kind: 'Pod', metadata: meta('windows'), spec: windowsPod } }, 'of Windows'),
]

const volumes: readonly Row[] = [
  ...['csi', 'local', 'iscsi'].flatMap((source) =>
    kindRows(
      {
        object: {
          apiVersion: 'v1',
          kind: 'PersistentVolume',
          metadata: meta(source),
          spec: {
            capacity: { storage: '1Gi' },
            accessModes: ['ReadWriteOnce'],
            storageClassName: 'fast',
            volumeMode: 'Filesystem',
            mountOptions: ['ro'],
            claimRef: { namespace: '$NS', name: 'claim' },
            nodeAffinity: {
              required: {
                nodeSelectorTerms: [
                  { matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In', values: ['a'] }] },
                ],
              },
            },
            ...(source === 'csi' && {
              csi: {
                driver: 'csi.example.com',
                volumeHandle: 'x',
                fsType: 'ext4',
                nodePublishSecretRef: { name: 'a', namespace: 'b' },
                volumeAttributes: { a: 'b' },
              },
            }),
            ...(source === 'local' && { local: { path: '/mnt/disk' } }),
            ...(source === 'iscsi' && {
              iscsi: { targetPortal: '10.0.0.1:3260', iqn: 'iqn.2001-04.com.example:storage', lun: 1 },
            }),
          },
        },
        updates: [
          ['more capacity', { spec: { capacity: { storage: '2Gi' } } }],
          ['another reclaim policy', { spec: { persistentVolumeReclaimPolicy: 'Delete' } }],
          [
            'another node affinity',
            {
              spec: {
                nodeAffinity: {
                  required: {
                    nodeSelectorTerms: [{ matchFields: [{ key: 'metadata.name', operator: 'In', values: ['a'] }] }],
                  },
                },
              },
            },
          ],
        ],
      },
      source,
    ),
  ),
  ...kindRows(
    {
      object: {
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        metadata: meta('whole'),
        spec: {
          accessModes: ['ReadWriteOncePod'],
          storageClassName: 'fast',
          resources: { requests: { storage: '1Gi' }, limits: { storage: '2Gi' } },
          dataSource: { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name: 'a' },
          selector: { matchExpressions: [{ key: 'a', operator: 'Exists' }] },
          volumeAttributesClassName: 'gold',
        },
      },
      others: [
        ['ReadWriteOncePod with another mode', { spec: { accessModes: ['ReadWriteOncePod', 'ReadWriteOnce'] } }],
        [
          'a source in another namespace',
          { spec: { dataSource: null, dataSourceRef: { kind: 'X', apiGroup: 'a.b', name: 'y', namespace: 'z' } } },
        ],
      ],
    },
    'whole',
  ),
]

const workloads: readonly Row[] = [
  ...kindRows(
    {
      object: {
        apiVersion: 'apps/v1',
        kind: 'StatefulSet',
        metadata: meta('whole'),
        spec: {
          replicas: 2,
          serviceName: 'web',
          selector,
          ordinals: { start: 3 },
          minReadySeconds: 5,
          podManagementPolicy: 'Parallel',
          updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition: 1 } },
          persistentVolumeClaimRetentionPolicy: { whenDeleted: 'Delete', whenScaled: 'Retain' },
          template: template({
            containers: [{ name: 'main', image: 'a', volumeMounts: [{ name: 'data', mountPath: '/data' }] }],
          }),
          volumeClaimTemplates: [
            {
              metadata: { name: 'data' },
              spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
            },
          ],
        },
      },
      updates: [
        ['the claims', { spec: { volumeClaimTemplates: [] } }],
        ['the ordinals', { spec: { ordinals: { start: -1 } } }],
      ],
    },
    'whole',
  ),
  ...kindRows(
    {
      object: {
        apiVersion: 'batch/v1',
        kind: 'Job',
        metadata: meta('whole'),
        spec: {
          completions: 5,
          parallelism: 2,
          completionMode: 'Indexed',
          backoffLimitPerIndex: 1,
          maxFailedIndexes: 2,
          podReplacementPolicy: 'Failed',
          ttlSecondsAfterFinished: 5,
          podFailurePolicy: {
            rules: [
              { action: 'FailIndex', onExitCodes: { containerName: 'main', operator: 'In', values: [1, 2] } },
              { action: 'Ignore', onPodConditions: [{ type: 'DisruptionTarget', status: 'True' }] },
            ],
          },
          successPolicy: { rules: [{ succeededIndexes: '0-2,4', succeededCount: 2 }] },
          template: template({ restartPolicy: 'Never' }),
        },
      },
      updates: [
        ['parallelism', { spec: { parallelism: 3 } }],
        ['completions', { spec: { completions: 6, parallelism: 6 } }],
        ['completions alone', { spec: { completions: 6 } }],
      ],
    },
    'whole',
  ),
  ...kindRows(
    {
      object: {
        apiVersion: 'autoscaling/v2',
        kind: 'HorizontalPodAutoscaler',
        metadata: meta('whole'),
        spec: {
          minReplicas: 1,
          maxReplicas: 5,
          scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' },
          metrics: [
            { type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 50 } } },
            {
              type: 'ContainerResource',
              containerResource: {
                name: 'cpu',
                container: 'main',
                target: { type: 'AverageValue', averageValue: '1' },
              },
            },
            { type: 'Pods', pods: { metric: { name: 'rps' }, target: { type: 'AverageValue', averageValue: '1k' } } },
            {
              type: 'Object',
              object: {
                metric: { name: 'rps', selector },
                describedObject: { kind: 'Service', name: 'web', apiVersion: 'v1' },
                target: { type: 'Value', value: '10' },
              },
            },
            { type: 'External', external: { metric: { name: 'queue' }, target: { type: 'Value', value: '30' } } },
          ],
        },
      },
      others: [['no replicas', { spec: { minReplicas: 0 } }]],
    },
    'whole',
  ),
]

const networks: readonly Row[] = [
  ...kindRows(
    {
      object: {
        apiVersion: 'discovery.k8s.io/v1',
        kind: 'EndpointSlice',
        metadata: meta('whole'),
        addressType: 'IPv6',
        endpoints: [
          {
            addresses: ['2001:db8::1'],
            conditions: { ready: true, serving: true },
            hostname: 'a',
            nodeName: 'node',
            zone: 'here',
            hints: { forZones: [{ name: 'here' }], forNodes: [{ name: 'node' }] },
            targetRef: { kind: 'Pod', name: 'a' },
          },
        ],
        ports: [
          { name: 'http', port: 80, appProtocol: 'kubernetes.io/h2c' },
          { name: '', port: 81, protocol: 'SCTP' },
        ],
      },
      others: [
        ['names', { addressType: 'FQDN', endpoints: [{ addresses: ['example.com'] }] }],
        ['no addresses', { endpoints: [{ addresses: null }] }],
        ['no endpoints', { endpoints: null, ports: null }],
      ],
      updates: [['the type', { addressType: 'IPv4' }]],
    },
    'whole',
  ),
  ...kindRows(
    {
      object: {
        apiVersion: 'networking.k8s.io/v1',
        kind: 'NetworkPolicy',
        metadata: meta('whole'),
        spec: {
          podSelector: {},
          policyTypes: ['Ingress', 'Egress'],
          ingress: [
            {
              from: [
                { ipBlock: { cidr: '2001:db8::/32', except: ['2001:db8:1::/48'] } },
                { namespaceSelector: {}, podSelector: selector },
              ],
              ports: [
                { port: 80, endPort: 90 },
                { port: 'http', protocol: 'UDP' },
              ],
            },
          ],
          egress: [{}],
        },
      },
    },
    'whole',
  ),
  ...kindRows(
    {
      object: {
        apiVersion: 'networking.k8s.io/v1',
        kind: 'IngressClass',
        metadata: meta('whole'),
        spec: {
          controller: 'example.com/ingress',
          parameters: { apiGroup: 'a.example.com', kind: 'X', name: 'y', scope: 'Namespace', namespace: 'z' },
        },
      },
    },
    'whole',
  ),
  ...kindRows(
    {
      object: {
        apiVersion: 'networking.k8s.io/v1',
        kind: 'Ingress',
        metadata: meta('whole'),
        spec: {
          ingressClassName: 'a',
          defaultBackend: { resource: { apiGroup: 'a.b', kind: 'X', name: 'y' } },
          tls: [{ hosts: ['*.example.com'], secretName: 'a' }],
          rules: [
            {
              host: '*.example.com',
              http: {
                paths: [
                  { path: '/a', pathType: 'Exact', backend: { service: { name: 'a', port: { name: 'http' } } } },
                  { pathType: 'ImplementationSpecific', backend: { service: { name: 'a', port: { number: 1 } } } },
                ],
              },
            },
          ],
        },
      },
    },
    'whole',
  ),
]

const limits: readonly Row[] = [
  ...kindRows(
    {
      object: {
        apiVersion: 'v1',
        kind: 'ResourceQuota',
        metadata: meta('whole'),
        spec: {
          hard: { pods: '5', 'requests.cpu': '1', 'limits.memory': '1Gi' },
          scopeSelector: {
            matchExpressions: [
              { scopeName: 'PriorityClass', operator: 'In', values: ['high'] },
              { scopeName: 'NotBestEffort', operator: 'Exists' },
            ],
          },
        },
      },
      others: [
        ['scopes that do not fit', { spec: { scopes: ['BestEffort', 'NotBestEffort', 'Nonsense', 'BestEffort'] } }],
        ['scopes without resources', { spec: { hard: { services: '1', 'requests.nvidia.com/gpu': '1' } } }],
        ['a part of a pod', { spec: { hard: { pods: '1.5' } } }],
      ],
    },
    'whole',
  ),
  ...kindRows(
    {
      object: {
        apiVersion: 'node.k8s.io/v1',
        kind: 'RuntimeClass',
        metadata: meta('whole'),
        handler: 'runc',
        overhead: { podFixed: { cpu: '10m', memory: '1Mi' } },
        scheduling: { nodeSelector: { a: 'b' }, tolerations: [{ key: 'a', operator: 'Exists' }] },
      },
    },
    'whole',
  ),
  ...kindRows(
    {
      object: {
        apiVersion: 'v1',
        kind: 'Node',
        metadata: meta('whole'),
        spec: {
          podCIDR: '10.2.0.0/24',
          podCIDRs: ['10.2.0.0/24', '2001:db8::/64'],
          providerID: 'aws:///a/b',
          taints: [
            { key: 'a', effect: 'NoSchedule' },
            { key: 'a', effect: 'NoExecute', value: 'b' },
          ],
        },
      },
      others: [['blocks of one family', { spec: { podCIDRs: ['10.2.0.0/24', '10.3.0.0/24'] } }]],
    },
    'whole',
  ),
]

export const wholeRows: readonly Row[] = [...pods, ...volumes, ...workloads, ...networks, ...limits]
