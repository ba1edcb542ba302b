// Warnings for valid objects: deprecated fields, deprecated formats, and values that hide others.
import type { JsonObject, JsonValue } from '#apimachinery/meta/index.ts'
import { applyMergePatch } from '#apimachinery/patch/index.ts'
import { row, type Row } from '#test/parity/support/compare-rows.ts'
import { pathOf, type Manifest } from '#test/parity/support/session.ts'
import { keyPairs } from './key-pairs.ts'

const labels = { app: 'web' }
const container = { name: 'main', image: 'nginx:1.27' }
const port = (rest: JsonObject): JsonObject => ({ containerPort: 80, ...rest })
const other = (rest: JsonObject): JsonObject => ({ name: 'other', image: 'nginx:1.27', ...rest })

function object(apiVersion: string, kind: string, rest: JsonObject = {}): Manifest {
  return { apiVersion, kind, metadata: { name: 'warned-$ID', labels }, ...rest }
}

/** Valid pod templates, each of which causes a warning. */
const templates: readonly (readonly [about: string, template: JsonObject])[] = [
  [
    'deprecated node labels',
    {
      spec: {
        nodeSelector: { 'beta.kubernetes.io/os': 'linux' },
        affinity: {
          nodeAffinity: {
            requiredDuringSchedulingIgnoredDuringExecution: {
              nodeSelectorTerms: [
                { matchExpressions: [{ key: 'beta.kubernetes.io/arch', operator: 'In', values: ['a'] }] },
              ],
            },
            preferredDuringSchedulingIgnoredDuringExecution: [
              {
                weight: 1,
                preference: {
                  matchExpressions: [
                    { key: 'failure-domain.beta.kubernetes.io/zone', operator: 'In', values: ['-a', 'b c'] },
                  ],
                },
              },
            ],
          },
          podAffinity: {
            requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey: 'a' }],
            preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 1, podAffinityTerm: { topologyKey: 'a' } }],
          },
          podAntiAffinity: {
            requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey: 'a', labelSelector: {} }],
            preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 1, podAffinityTerm: { topologyKey: 'a' } }],
          },
        },
        topologySpreadConstraints: [
          {
            maxSkew: 1,
            topologyKey: 'failure-domain.beta.kubernetes.io/region',
            whenUnsatisfiable: 'DoNotSchedule',
          },
        ],
      },
    },
  ],
  [
    'deprecated annotations',
    {
      metadata: {
        annotations: {
          'scheduler.alpha.kubernetes.io/critical-pod': '',
          'security.alpha.kubernetes.io/sysctls': 'a=b',
          'security.alpha.kubernetes.io/unsafe-sysctls': 'a=b',
          'seccomp.security.alpha.kubernetes.io/pod': 'runtime/default',
          'container.seccomp.security.alpha.kubernetes.io/main': 'runtime/default',
        },
      },
    },
  ],
  [
    'a profile in an annotation',
    { metadata: { annotations: { 'container.apparmor.security.beta.kubernetes.io/main': 'runtime/default' } } },
  ],
  [
    'an invalid profile in an annotation',
    { metadata: { annotations: { 'container.apparmor.security.beta.kubernetes.io/main': 'localhost/' } } },
  ],
  [
    "an annotation that repeats the pod's profile",
    {
      metadata: { annotations: { 'container.apparmor.security.beta.kubernetes.io/main': 'localhost/a' } },
      spec: { securityContext: { appArmorProfile: { type: 'Localhost', localhostProfile: 'a' } } },
    },
  ],
  [
    'volumes of removed kinds',
    {
      spec: {
        volumes: [
          { name: 'a', photonPersistentDisk: { pdID: 'x' } },
          { name: 'b', gitRepo: { repository: 'x' } },
          { name: 'c', scaleIO: { gateway: 'a', system: 'b', volumeName: 'c', secretRef: { name: 'd' } } },
          { name: 'd', flocker: { datasetName: 'x' } },
          { name: 'e', storageos: { volumeName: 'x' } },
          { name: 'f', quobyte: { registry: 'a:1', volume: 'b' } },
          { name: 'g', glusterfs: { endpoints: 'a', path: 'b' } },
          { name: 'h', cephfs: { monitors: ['a'] } },
          { name: 'i', rbd: { monitors: ['a'], image: 'b' } },
          {
            name: 'j',
            ephemeral: {
              volumeClaimTemplate: {
                spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1500m' } } },
              },
            },
          },
        ],
      },
    },
  ],
  [
    'files in each other’s way',
    {
      spec: {
        volumes: [
          {
            name: 'a',
            configMap: {
              name: 'x',
              items: ['p', 'p/q', 'pq', 'p', 'r/'].map((path) => ({ key: 'k', path })),
            },
          },
          { name: 'b', secret: { secretName: 'y', items: ['r', 'r/s'].map((path) => ({ key: 'k', path })) } },
          {
            name: 'c',
            downwardAPI: {
              items: ['l', 'l'].map((path) => ({ path, fieldRef: { fieldPath: 'metadata.labels' } })),
            },
          },
          {
            name: 'd',
            projected: {
              sources: [
                {},
                { configMap: { name: 'x', items: [{ key: 'k', path: 'token' }] } },
                { serviceAccountToken: { path: 'token' } },
                { secret: { name: 'y', items: [{ key: 'k', path: 'token/a' }] } },
                { secret: { name: 'z' } },
              ],
            },
          },
        ],
      },
    },
  ],
  [
    'duplicates',
    {
      spec: {
        hostAliases: ['192.0.2.1', '192.0.2.1', '::ffff:192.0.2.1', '2001:DB8::1'].map((ip) => ({
          ip,
          hostnames: ['a'],
        })),
        imagePullSecrets: [{ name: 'a' }, { name: 'a' }, { name: '' }],
        dnsConfig: { nameservers: ['192.000.002.001', '2001:db8:0:0::1'] },
        terminationGracePeriodSeconds: -1,
      },
    },
  ],
  [
    'fractions of bytes',
    {
      spec: {
        containers: [
          {
            ...container,
            resources: {
              limits: { memory: '1.5', 'ephemeral-storage': '2500m', cpu: '100m' },
              requests: { memory: '1500m', 'ephemeral-storage': '1' },
            },
          },
        ],
      },
    },
  ],
  [
    'duplicate variables',
    {
      spec: {
        initContainers: [other({ env: [{ name: 'A', value: '1' }, { name: 'A' }] })],
        containers: [
          {
            ...container,
            env: [
              { name: 'A', value: '1' },
              { name: 'A', value: '$(A)' },
              { name: 'A', value: '$(A)2' },
              { name: 'A', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
              { name: 'B', value: '1' },
              { name: 'B', value: '2' },
            ],
          },
        ],
      },
    },
  ],
  [
    'overlapping ports',
    {
      spec: {
        containers: [
          {
            ...container,
            ports: [
              port({ name: 'a' }),
              port({ hostPort: 81 }),
              port({ hostPort: 81, hostIP: '127.0.0.1' }),
              port({ protocol: 'UDP', hostIP: '127.0.0.1' }),
            ],
          },
          other({ ports: [port({ name: 'a' }), port({ hostPort: 82, hostIP: '127.0.0.1' })] }),
        ],
      },
    },
  ],
]

const pod = object('v1', 'Pod', { spec: { containers: [container], serviceAccountName: 'default' } })
const template = { metadata: { labels }, spec: { containers: [container] } }
const selector = { matchLabels: labels }
const jobTemplate = { ...template, spec: { ...template.spec, restartPolicy: 'Never' } }

/** Each kind with a pod template, and the template's path. */
const owners: readonly (readonly [owner: Manifest, path: readonly string[]])[] = [
  [object('apps/v1', 'Deployment', { spec: { selector, template } }), ['spec', 'template']],
  [object('apps/v1', 'ReplicaSet', { spec: { selector, template } }), ['spec', 'template']],
  [object('apps/v1', 'DaemonSet', { spec: { selector, template } }), ['spec', 'template']],
  [object('apps/v1', 'StatefulSet', { spec: { selector, template, serviceName: '' } }), ['spec', 'template']],
  [object('batch/v1', 'Job', { spec: { template: jobTemplate } }), ['spec', 'template']],
  [
    object('batch/v1', 'CronJob', {
      spec: { schedule: '* * * * *', jobTemplate: { spec: { template: jobTemplate } } },
    }),
    ['spec', 'jobTemplate', 'spec', 'template'],
  ],
  [object('v1', 'ReplicationController', { spec: { selector: labels, template } }), ['spec', 'template']],
  [object('v1', 'PodTemplate', { template }), ['template']],
]

const at = (path: readonly string[], value: JsonValue): JsonValue =>
  path.reduceRight<JsonValue>((inner, key) => ({ [key]: inner }), value)

const changed = (good: Manifest, patch: JsonValue): Manifest => applyMergePatch(good, patch) as Manifest

/** A new object, a change outside the template, and a change of the template. */
function ownerRow(owner: Manifest, path: readonly string[]): Row {
  const old = { spec: { nodeSelector: { 'beta.kubernetes.io/os': 'linux' } } }
  const now = { spec: { nodeSelector: { 'beta.kubernetes.io/os': null, 'beta.kubernetes.io/arch': 'a' } } }
  return row(`warnings: ${owner.kind}: new, and changed`, async (session) => {
    const url = pathOf(owner)
    await session.create(changed(owner, at(path, old)))
    await session.patch(`${url}?dryRun=All`, { metadata: { annotations: { a: 'b' } } })
    await session.patch(`${url}?dryRun=All`, at(path, now))
    await session.patch(`${url}?dryRun=All`, at(path, { metadata: { labels: { b: 'c' } } }))
    if ('status' in owner || owner.kind !== 'PodTemplate')
      await session.patch(`${url}/status?dryRun=All`, { metadata: { annotations: { a: 'b' } } })
    if (['Deployment', 'ReplicaSet', 'StatefulSet', 'ReplicationController'].includes(owner.kind))
      await session.patch(`${url}/scale?dryRun=All`, { spec: { replicas: 3 } })
    await session.delete(`${url}?propagationPolicy=Background`, undefined, { quiet: true })
    const dotted = changed(owner, { metadata: { name: 'a.b-$ID' } })
    await session.create(dotted, { query: '?dryRun=All' })
  })
}

function newRow(about: string, ...objects: readonly Manifest[]): Row {
  return row(`warnings: new: ${about}`, async (session) => {
    for (const one of objects) await session.create(one, { query: '?dryRun=All' })
  })
}

/** A new object, a change, and a change of the status if there is one. */
function lifeRow(about: string, good: Manifest, { parts = [] as readonly (readonly [string, JsonValue])[] } = {}): Row {
  return row(`warnings: ${about}`, async (session) => {
    await session.create(good)
    await session.patch(`${pathOf(good)}?dryRun=All`, { metadata: { annotations: { a: 'b' } } })
    for (const [subresource, patch] of parts) await session.patch(`${pathOf(good)}/${subresource}?dryRun=All`, patch)
    await session.delete(pathOf(good), undefined, { quiet: true })
  })
}

const tooMuch = { spec: { nodeSelector: { 'beta.kubernetes.io/os': 'linux' }, overhead: { memory: '1500m' } } }

const volume = (spec: JsonObject): Manifest =>
  object('v1', 'PersistentVolume', {
    spec: { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], ...spec },
  })
const ingress = (ip: string): JsonValue => ({ status: { loadBalancer: { ingress: [{ ip }] } } })
const annotated = (annotations: JsonObject): JsonValue => ({ metadata: { annotations } })
const addresses = ['192.0.2.1', '192.0.02.1', '::ffff:192.0.2.1', '2001:0db8::1']
const blocks = [
  '192.0.2.0/24',
  '192.0.2.1/24',
  '192.00.2.0/24',
  '2001:0db8::/32',
  '2001:db8::1/32',
  '::ffff:1.2.3.0/120',
]

export const warningRows: readonly Row[] = [
  ...templates.map(([about, patch]) =>
    newRow(about, changed(pod, patch), changed(owners[0]?.[0] ?? pod, { spec: { template: patch } })),
  ),
  ...owners.map(([owner, path]) => ownerRow(owner, path)),
  newRow(
    'an overhead',
    changed(pod, tooMuch),
    changed(owners[0]?.[0] ?? pod, { spec: { template: tooMuch } }),
    changed(pod, { spec: { ...tooMuch.spec, containers: [] } }),
  ),
  newRow('a pod with a name with dots', changed(pod, { metadata: { name: 'a.b-$ID' } }), {
    ...pod,
    metadata: { generateName: 'a.b-' },
  }),
  newRow(
    'many warnings',
    ...[20, 30, 60].map((count) =>
      changed(pod, {
        spec: {
          containers: [
            {
              ...container,
              env: Array.from({ length: count }, (_, i) => ({ name: 'A', value: `${i} ${'x'.repeat(i)}` })),
            },
          ],
        },
      }),
    ),
    changed(pod, {
      spec: {
        affinity: {
          nodeAffinity: {
            preferredDuringSchedulingIgnoredDuringExecution: [
              {
                weight: 1,
                preference: {
                  matchExpressions: [
                    { key: 'a', operator: 'In', values: ['ä', '"quoted" \\', 'ü'.repeat(300), 'x'.repeat(4000)] },
                  ],
                },
              },
            ],
          },
        },
      },
    }),
  ),
  lifeRow('a status with addresses', pod, {
    parts: [
      ['status', { status: { podIPs: [{ ip: '2001:DB8::1' }], hostIPs: [{ ip: '2001:DB8::2' }] } }],
      ['resize', { spec: { containers: [container] } }],
    ],
  }),
  newRow(
    'jobs with many pods',
    ...[1, 10_001].map((parallelism) =>
      object('batch/v1', 'Job', {
        spec: { template: jobTemplate, completionMode: 'Indexed', completions: 100_001, parallelism },
      }),
    ),
  ),
  lifeRow(
    'a stateful set with claims',
    object('apps/v1', 'StatefulSet', {
      spec: {
        ...{ selector, template, serviceName: '', revisionHistoryLimit: -1 },
        volumeClaimTemplates: [
          {
            metadata: { name: 'a' },
            spec: {
              accessModes: ['ReadWriteOnce'],
              resources: { requests: { storage: '1.5' }, limits: { storage: '2500m' } },
            },
          },
        ],
      },
    }),
  ),
  lifeRow(
    'a claim',
    object('v1', 'PersistentVolumeClaim', {
      metadata: { name: 'warned-$ID', annotations: { 'volume.beta.kubernetes.io/storage-class': 'a' } },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1.5' } } },
    }),
    { parts: [['status', { status: { phase: 'Pending' } }]] },
  ),
  newRow(
    'volumes',
    volume({
      ...{ hostPath: { path: '/x' }, persistentVolumeReclaimPolicy: 'Recycle' },
      nodeAffinity: {
        required: {
          nodeSelectorTerms: [{ matchExpressions: [{ key: 'beta.kubernetes.io/os', operator: 'In', values: ['-a'] }] }],
        },
      },
    }),
    ...[{ hostPath: { path: '/x' } }, { nfs: { server: 'a', path: '/x' } }].map((source) =>
      changed(volume(source), annotated({ 'volume.beta.kubernetes.io/mount-options': 'a' })),
    ),
    changed(volume({ hostPath: { path: '/x' } }), annotated({ 'volume.beta.kubernetes.io/storage-class': 'a' })),
    volume({ cephfs: { monitors: ['a'] } }),
    volume({ photonPersistentDisk: { pdID: 'x' } }),
    volume({ scaleIO: { gateway: 'a', system: 'b', volumeName: 'c', secretRef: { name: 'd', namespace: 'e' } } }),
    volume({ storageos: { volumeName: 'x' } }),
    volume({ glusterfs: { endpoints: 'a', path: 'b' } }),
    volume({ rbd: { monitors: ['a'], image: 'b' } }),
  ),
  lifeRow(
    'a service with deprecated addresses',
    object('v1', 'Service', {
      spec: {
        ...{ type: 'LoadBalancer', ports: [{ port: 80 }], externalIPs: addresses },
        ...{ loadBalancerIP: '2001:DB8::1', loadBalancerSourceRanges: blocks.slice(0, 5) },
      },
    }),
    { parts: ['2001:DB8::1', '192.0.02.1', 'x'].map((ip) => ['status', ingress(ip)] as const) },
  ),
  newRow(
    'services with source ranges',
    ...['LoadBalancer', 'ClusterIP'].flatMap((type) => [
      object('v1', 'Service', {
        spec: { type, ports: [{ port: 80 }], loadBalancerSourceRanges: [' 192.0.2.1/24 ', '192.0.2.0/33', 'x'] },
      }),
      ...['192.0.2.0/24 , 2001:db8::/32', '192.0.2.0/24,x, /1', ' '].map((ranges) =>
        changed(
          object('v1', 'Service', { spec: { type, ports: [{ port: 80 }] } }),
          annotated({ 'service.beta.kubernetes.io/load-balancer-source-ranges': ranges }),
        ),
      ),
    ]),
  ),
  lifeRow(
    'an ingress with the deprecated class annotation',
    object('networking.k8s.io/v1', 'Ingress', {
      metadata: { name: 'warned-$ID', annotations: { 'kubernetes.io/ingress.class': 'nginx' } },
      spec: { defaultBackend: { service: { name: 'a', port: { number: 80 } } } },
    }),
    { parts: [['status', ingress('2001:DB8::1')]] },
  ),
  lifeRow(
    'endpoints',
    object('v1', 'Endpoints', {
      subsets: [
        {
          addresses: addresses.map((ip) => ({ ip })),
          notReadyAddresses: addresses.map((ip) => ({ ip })),
          ports: [{ port: 80 }],
        },
      ],
    }),
  ),
  newRow(
    'endpoints managed by their controller',
    object('v1', 'Endpoints', {
      metadata: { name: 'warned-$ID', labels: { 'endpoints.kubernetes.io/managed-by': 'endpoint-controller' } },
      subsets: [{ addresses: addresses.map((ip) => ({ ip })), ports: [{ port: 80 }] }],
    }),
  ),
  ...['IPv4', 'IPv6', 'FQDN'].map((addressType) =>
    lifeRow(
      `endpoint slices: ${addressType}`,
      object('discovery.k8s.io/v1', 'EndpointSlice', {
        addressType,
        endpoints:
          { IPv4: ['192.0.02.1'], IPv6: ['2001:0db8::1'], FQDN: ['example.com'] }[addressType]?.map((one) => ({
            addresses: [one],
          })) ?? [],
        ports: [],
      }),
    ),
  ),
  newRow(
    'nodes',
    object('v1', 'Node', {
      spec: { podCIDRs: ['10.2.0.1/24'], podCIDR: '10.2.0.1/24', externalID: 'x', configSource: { configMap: null } },
    }),
  ),
  lifeRow(
    'a network policy',
    object('networking.k8s.io/v1', 'NetworkPolicy', {
      spec: {
        podSelector: {},
        ingress: [{ from: blocks.map((cidr) => ({ ipBlock: { cidr } })) }],
        egress: [{ to: [{ ipBlock: { cidr: '0.0.0.0/0', except: blocks.slice(0, 3) } }] }],
      },
    }),
  ),
  lifeRow(
    'a runtime class',
    object('node.k8s.io/v1', 'RuntimeClass', {
      handler: 'a',
      scheduling: { nodeSelector: { 'beta.kubernetes.io/os': 'linux' } },
    }),
  ),
  row('warnings: an account that mounts only its own', async (session) => {
    const account = object('v1', 'ServiceAccount')
    const only = annotated({ 'kubernetes.io/enforce-mountable-secrets': 'true' })
    await session.create(changed(account, only), { query: '?dryRun=All' })
    await session.create(account)
    await session.patch(pathOf(account), only)
    await session.patch(pathOf(account), { metadata: { labels: { a: 'b' } } })
    await session.delete(pathOf(account), undefined, { quiet: true })
  }),
  ...keyPairs.map(([about, certificate, key]) =>
    newRow(
      `a certificate with a key: ${about}`,
      object('v1', 'Secret', {
        type: 'kubernetes.io/tls',
        stringData: { 'tls.crt': certificate, 'tls.key': key },
      }),
    ),
  ),
]
