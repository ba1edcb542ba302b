// The kinds of the core group.
import type { JsonObject } from '#apimachinery/meta/index.ts'
import type { Row } from '#test/parity/support/compare-rows.ts'
import { kindRows } from './kind-table.ts'

const labels = { app: 'web' }
const meta = (rest: JsonObject = {}): JsonObject => ({ labels, ...rest })
const container = { name: 'main', image: 'nginx:1.27' }
const podSpec = (rest: JsonObject = {}): JsonObject => ({ containers: [container], ...rest })
const base64 = (text: string): string => Buffer.from(text).toString('base64')

export const coreRows: readonly Row[] = [
  ...kindRows({
    object: { apiVersion: 'v1', kind: 'Pod', metadata: meta(), spec: podSpec({ serviceAccountName: 'default' }) },
    others: [
      ['no containers', { spec: { containers: [] } }],
      ['no spec', { spec: null }],
      ['containers with the same name', { spec: podSpec({ containers: [container, container] }) }],
      ['a container without a name and image', { spec: { containers: [{}] } }],
      ['an image with a blank', { spec: { containers: [{ name: 'a', image: ' x ' }] } }],
      ['unknown policies', { spec: { restartPolicy: 'Sometimes', dnsPolicy: 'Mine', preemptionPolicy: 'x' } }],
      ['dnsPolicy None without a config', { spec: { dnsPolicy: 'None' } }],
      [
        'a dnsConfig too large',
        {
          spec: {
            dnsConfig: { nameservers: ['1.1.1.1', '2.2.2.2', '3.3.3.3', 'x'], searches: ['a_b'], options: [{}] },
          },
        },
      ],
      ['negative grace and deadline', { spec: { terminationGracePeriodSeconds: -1, activeDeadlineSeconds: 0 } }],
      [
        'host ports without the host network',
        { spec: { hostNetwork: true, containers: [{ ...container, ports: [{ containerPort: 80, hostPort: 81 }] }] } },
      ],
      [
        'invalid ports',
        {
          spec: {
            containers: [
              {
                ...container,
                ports: [
                  { containerPort: 0, protocol: 'X' },
                  { containerPort: 80, name: 'Too_Long_A_Name_Here' },
                  { containerPort: 81, name: 'a' },
                  { containerPort: 82, name: 'a' },
                ],
              },
            ],
          },
        },
      ],
      [
        'invalid env',
        {
          spec: {
            containers: [
              {
                ...container,
                env: [
                  { name: '' },
                  { name: 'a=b' },
                  { name: 'A', value: 'x', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
                  { name: 'B', valueFrom: {} },
                  { name: 'C', valueFrom: { fieldRef: { fieldPath: 'spec.x' } } },
                  { name: 'D', valueFrom: { secretKeyRef: { name: '', key: 'a b' } } },
                  { name: 'E', valueFrom: { resourceFieldRef: { resource: 'limits.gpu' } } },
                ],
                envFrom: [{ prefix: '1=', configMapRef: { name: 'A_' } }, {}],
              },
            ],
          },
        },
      ],
      [
        'invalid probes',
        {
          spec: {
            containers: [
              {
                ...container,
                livenessProbe: { httpGet: { port: 0, path: 'x' }, exec: { command: [] } },
                readinessProbe: {},
                startupProbe: { tcpSocket: { port: 'x y' }, periodSeconds: -1, successThreshold: 2 },
              },
            ],
          },
        },
      ],
      [
        'a grpc probe and a lifecycle',
        {
          spec: {
            containers: [
              {
                ...container,
                livenessProbe: { grpc: { port: 70000, service: 'x' }, successThreshold: 2 },
                lifecycle: { preStop: { sleep: { seconds: -1 } }, postStart: {} },
              },
            ],
          },
        },
      ],
      [
        'invalid volumes',
        {
          spec: podSpec({
            volumes: [
              { name: 'a' },
              { name: 'a', emptyDir: {} },
              { name: 'B_', hostPath: { path: '', type: 'x' } },
              { name: 'c', emptyDir: {}, hostPath: { path: '/x' } },
              { name: 'd', secret: { secretName: '', defaultMode: 1000 } },
              { name: 'e', configMap: { name: '', items: [{ key: '', path: '../x' }] } },
              { name: 'f', projected: { sources: [{}, { serviceAccountToken: { path: '', expirationSeconds: 1 } }] } },
              { name: 'g', persistentVolumeClaim: { claimName: '' } },
              { name: 'h', downwardAPI: { items: [{ path: '/x', fieldRef: { fieldPath: 'spec.nodeName' } }] } },
              { name: 'i', nfs: { server: '', path: 'x' } },
            ],
          }),
        },
      ],
      [
        'invalid more volumes',
        {
          spec: podSpec({
            volumes: [
              { name: 'a', csi: { driver: '' } },
              { name: 'b', iscsi: { targetPortal: '', iqn: 'x', lun: 300 } },
              { name: 'c', ephemeral: {} },
              { name: 'd', image: { reference: '', pullPolicy: 'x' } },
              { name: 'e', fc: {} },
              { name: 'f', gitRepo: { repository: '', directory: '..' } },
              { name: 'g', glusterfs: {}, emptyDir: null },
              { name: 'h', emptyDir: { sizeLimit: '-1', medium: 'X' } },
            ],
          }),
        },
      ],
      [
        'invalid mounts',
        {
          spec: podSpec({
            volumes: [{ name: 'a', emptyDir: {} }],
            containers: [
              {
                ...container,
                volumeMounts: [
                  { name: 'a', mountPath: '' },
                  { name: 'b', mountPath: '/x' },
                  { name: 'a', mountPath: '/x', subPath: '../y', subPathExpr: 'z' },
                  { name: 'a', mountPath: '/y:z', mountPropagation: 'Never' },
                  { name: 'a', mountPath: '/ro', recursiveReadOnly: 'Enabled' },
                ],
                volumeDevices: [{ name: 'a', devicePath: 'x' }],
              },
            ],
          }),
        },
      ],
      [
        'invalid resources',
        {
          spec: {
            containers: [
              {
                ...container,
                resources: {
                  requests: { cpu: '2', memory: '-1', 'example.com/gpu': '1.5', nonsense: '1' },
                  limits: { cpu: '1', 'hugepages-2Mi': '3Mi' },
                },
              },
            ],
          },
        },
      ],
      [
        'extended resources that do not match',
        {
          spec: {
            containers: [
              { ...container, resources: { requests: { 'example.com/gpu': '1' }, limits: { 'example.com/gpu': '2' } } },
            ],
          },
        },
      ],
      [
        'claims that do not exist',
        {
          spec: {
            resourceClaims: [{ name: 'a' }, { name: 'a', resourceClaimName: 'x', resourceClaimTemplateName: 'y' }],
            containers: [{ ...container, resources: { claims: [{ name: 'z' }, { name: 'a' }, { name: 'a' }] } }],
          },
        },
      ],
      [
        'pod-level resources',
        { spec: { resources: { requests: { cpu: '1' }, limits: { cpu: '500m', 'example.com/gpu': '1' } } } },
      ],
      [
        'security that contradicts',
        {
          spec: {
            securityContext: {
              runAsNonRoot: true,
              runAsUser: -1,
              fsGroup: -1,
              sysctls: [
                { name: 'a b', value: 'x' },
                { name: 'kernel.x', value: '' },
              ],
              fsGroupChangePolicy: 'x',
              supplementalGroupsPolicy: 'y',
            },
          },
        },
      ],
      [
        'invalid seccomp',
        {
          spec: {
            securityContext: { seccompProfile: { type: 'Localhost' }, appArmorProfile: { type: 'X' } },
            containers: [
              {
                ...container,
                securityContext: {
                  seccompProfile: { type: 'Other', localhostProfile: 'x' },
                  procMount: 'x',
                  capabilities: { add: ['x'] },
                },
              },
            ],
          },
        },
      ],
      [
        'invalid affinity',
        {
          spec: {
            affinity: {
              nodeAffinity: {
                requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [] },
                preferredDuringSchedulingIgnoredDuringExecution: [
                  {
                    weight: 0,
                    preference: {
                      matchExpressions: [
                        { key: 'a', operator: 'In' },
                        { key: 'b', operator: 'Gt', values: ['x', 'y'] },
                        { key: 'c', operator: 'Huh' },
                      ],
                    },
                  },
                ],
              },
              podAffinity: {
                requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey: '', namespaces: ['A_'] }],
                preferredDuringSchedulingIgnoredDuringExecution: [
                  {
                    weight: 101,
                    podAffinityTerm: { topologyKey: 'a b', labelSelector: { matchLabels: { 'a b': 'c' } } },
                  },
                ],
              },
            },
          },
        },
      ],
      [
        'invalid match label keys',
        {
          spec: {
            affinity: {
              podAntiAffinity: {
                requiredDuringSchedulingIgnoredDuringExecution: [
                  { topologyKey: 'a', matchLabelKeys: ['x'] },
                  { topologyKey: 'a', labelSelector: {}, matchLabelKeys: ['x', 'a b'], mismatchLabelKeys: ['x'] },
                ],
              },
            },
          },
        },
      ],
      [
        'invalid spread',
        {
          spec: {
            topologySpreadConstraints: [
              { maxSkew: 0, topologyKey: '', whenUnsatisfiable: 'X' },
              { maxSkew: 1, topologyKey: 'a', whenUnsatisfiable: 'ScheduleAnyway', minDomains: 1 },
              {
                maxSkew: 1,
                topologyKey: 'a',
                whenUnsatisfiable: 'ScheduleAnyway',
                nodeAffinityPolicy: 'x',
                matchLabelKeys: ['a'],
              },
            ],
          },
        },
      ],
      [
        'invalid tolerations',
        {
          spec: {
            tolerations: [
              { key: '', operator: 'Equal' },
              { key: 'a', operator: 'Exists', value: 'x' },
              { key: 'a', operator: 'Maybe' },
              { key: 'a', effect: 'Never', tolerationSeconds: 5 },
              { key: 'a', effect: 'NoSchedule', tolerationSeconds: 5 },
            ],
          },
        },
      ],
      [
        'invalid names',
        {
          spec: {
            nodeName: 'A_',
            hostname: 'A_',
            subdomain: 'b_',
            serviceAccountName: 'C_',
            schedulerName: '',
            priorityClassName: 'no-such',
            runtimeClassName: 'E_',
            nodeSelector: { 'a b': 'c d' },
            imagePullSecrets: [{ name: '' }],
          },
        },
      ],
      ['its own priority', { spec: { priority: 5 } }],
      [
        'readiness and scheduling gates',
        {
          spec: {
            readinessGates: [{ conditionType: 'a b' }],
            schedulingGates: [{ name: 'a b' }, { name: 'a.b/c' }, { name: 'a.b/c' }],
          },
        },
      ],
      [
        'init containers',
        {
          spec: podSpec({
            initContainers: [
              { name: 'main', image: 'x' },
              { name: 'side', image: 'x', restartPolicy: 'Always', livenessProbe: { exec: { command: ['x'] } } },
              {
                name: 'bad',
                image: 'x',
                restartPolicy: 'Never',
                readinessProbe: { exec: { command: ['x'] } },
                lifecycle: { preStop: { exec: { command: ['x'] } } },
              },
            ],
          }),
        },
      ],
      ['ephemeral containers', { spec: podSpec({ ephemeralContainers: [{ name: 'debug', image: 'x' }] }) }],
      ['windows', { spec: { os: { name: 'windows' }, securityContext: { runAsUser: 1 }, hostPID: true } }],
      ['an unknown os', { spec: { os: { name: 'beos' } } }],
      [
        'host users and process namespaces',
        { spec: { hostUsers: false, hostNetwork: true, shareProcessNamespace: true, hostPID: true } },
      ],
      ['host aliases', { spec: { hostAliases: [{ ip: 'x', hostnames: ['A_'] }] } }],
      ['a status', { status: { phase: 'Running', podIP: '1.2.3.4' } }],
      ['overhead', { spec: { overhead: { cpu: '1' } } }],
      [
        'deprecated annotations',
        {
          metadata: {
            annotations: {
              'container.apparmor.security.beta.kubernetes.io/x': 'y',
              'seccomp.security.alpha.kubernetes.io/pod': 'x',
            },
          },
        },
      ],
    ],
    updates: [
      ['an image', { spec: { containers: [{ ...container, image: 'nginx:2' }] } }],
      ['no image', { spec: { containers: [{ ...container, image: '' }] } }],
      ['a label', { metadata: { labels: { x: 'y' } } }],
      ['another container', { spec: { containers: [container, { name: 'two', image: 'x' }] } }],
      ['a command', { spec: { containers: [{ ...container, command: ['x'] }] } }],
      ['the node', { spec: { nodeName: 'node-1' } }],
      ['resources', { spec: { containers: [{ ...container, resources: { requests: { cpu: '1' } } }] } }],
      ['a deadline', { spec: { activeDeadlineSeconds: 5 } }],
      ['a deadline below zero', { spec: { activeDeadlineSeconds: -5 } }],
      ['one more toleration', { spec: { tolerations: [{ key: 'x', operator: 'Exists' }] } }],
      ['grace', { spec: { terminationGracePeriodSeconds: 1 } }],
      ['a status through the main door', { status: { phase: 'Running' } }],
      ['scheduling gates', { spec: { schedulingGates: [{ name: 'a.b/c' }] } }],
    ],
    parts: [
      [
        'status',
        'phase and conditions',
        {
          status: {
            phase: 'Running',
            podIP: '10.1.2.3',
            podIPs: [{ ip: '10.1.2.3' }],
            conditions: [{ type: 'Ready', status: 'True' }],
          },
        },
      ],
      [
        'status',
        'a spec besides',
        { spec: { nodeName: 'x' }, status: { message: 'hello' }, metadata: { labels: { via: 'status' } } },
      ],
      ['status', 'invalid addresses', { status: { podIPs: [{ ip: 'x' }], hostIP: 'y' } }],
      ['status', 'an invalid nominated node', { status: { nominatedNodeName: 'A_' } }],
      ['status', 'the qos class', { status: { qosClass: 'Guaranteed' } }],
      [
        'status',
        'container states',
        {
          status: {
            containerStatuses: [
              {
                name: 'main',
                ready: true,
                restartCount: 0,
                image: 'x',
                imageID: 'y',
                state: { running: { startedAt: '2020-01-01T00:00:00Z' } },
              },
            ],
          },
        },
      ],
      [
        'status',
        'a terminated container that runs again',
        {
          status: {
            containerStatuses: [
              {
                name: 'main',
                ready: false,
                restartCount: 1,
                image: 'x',
                imageID: 'y',
                state: { terminated: { exitCode: 1 } },
              },
            ],
          },
        },
      ],
      [
        'status',
        'conditions twice',
        {
          status: {
            conditions: [
              { type: 'Ready', status: 'True' },
              { type: 'Ready', status: 'False' },
              { type: 'a b', status: 'x' },
            ],
          },
        },
      ],
      ['resize', 'cpu', { spec: { containers: [{ ...container, resources: { requests: { cpu: '1' } } }] } }],
      ['resize', 'an image', { spec: { containers: [{ ...container, image: 'other' }] } }],
      ['ephemeralcontainers', 'one', { spec: { ephemeralContainers: [{ name: 'debug', image: 'busybox' }] } }],
      ['ephemeralcontainers', 'changed', { spec: { ephemeralContainers: [{ name: 'debug', image: 'other' }] } }],
      ['ephemeralcontainers', 'gone', { spec: { ephemeralContainers: [] } }],
      [
        'ephemeralcontainers',
        'wrong',
        {
          spec: {
            ephemeralContainers: [
              { name: 'debug', image: 'busybox' },
              { name: 'main', image: 'x', ports: [{ containerPort: 1 }], targetContainerName: 'no' },
            ],
          },
        },
      ],
      ['ephemeralcontainers', 'a label', { metadata: { labels: { via: 'ephemeral' } } }],
    ],
  }),
  ...kindRows({
    object: {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: 'node-$ID', labels },
      spec: { podCIDR: '10.2.0.0/24' },
      status: {
        capacity: { cpu: '2' },
        addresses: [{ type: 'InternalIP', address: '10.9.0.1' }],
        conditions: [{ type: 'Ready', status: 'True' }],
      },
    },
    others: [
      ['no spec', { spec: null, status: null }],
      [
        'taints',
        {
          spec: {
            taints: [
              { key: 'a', effect: 'NoSchedule' },
              { key: 'a', effect: 'NoSchedule' },
              { key: 'b b', effect: 'X', value: '-' },
            ],
          },
        },
      ],
      ['podCIDRs', { spec: { podCIDRs: ['10.2.0.0/24', '10.3.0.0/24', 'x'] } }],
      ['configSource', { spec: { configSource: { configMap: {} } } }],
      [
        'an invalid status',
        {
          status: {
            capacity: { 'a b': '1', cpu: '-1' },
            addresses: [
              { type: 'x', address: 'y' },
              { type: 'x', address: 'y' },
            ],
          },
        },
      ],
      ['unschedulable', { spec: { unschedulable: true } }],
    ],
    updates: [
      ['unschedulable', { spec: { unschedulable: true } }],
      ['podCIDR', { spec: { podCIDR: '10.4.0.0/24', podCIDRs: ['10.4.0.0/24'] } }],
      ['providerID', { spec: { providerID: 'a://b' } }],
      ['a status through the main door', { status: { capacity: { cpu: '8' } } }],
      ['taints', { spec: { taints: [{ key: 'a', effect: 'NoExecute' }] } }],
      ['externalID', { spec: { externalID: 'x' } }],
    ],
    parts: [
      [
        'status',
        'capacity and conditions',
        {
          status: {
            capacity: { cpu: '4', memory: '8Gi' },
            allocatable: { cpu: '3900m' },
            conditions: [{ type: 'Ready', status: 'False', reason: 'R', message: 'M' }],
          },
        },
      ],
      [
        'status',
        'a spec besides',
        {
          spec: { unschedulable: true },
          metadata: { labels: { via: 'status' } },
          status: { nodeInfo: { kubeletVersion: 'v1.34.3' } },
        },
      ],
      ['status', 'invalid capacity', { status: { capacity: { cpu: '-1', 'a b': '1' } } }],
      [
        'status',
        'addresses twice',
        {
          status: {
            addresses: [
              { type: 'x', address: 'y' },
              { type: 'x', address: 'y' },
            ],
          },
        },
      ],
      [
        'status',
        'volumes in use and images',
        {
          status: {
            images: [{ names: ['a'], sizeBytes: 5 }],
            volumesInUse: ['x'],
            daemonEndpoints: { kubeletEndpoint: { Port: 10250 } },
          },
        },
      ],
    ],
  }),
  ...kindRows({
    object: { apiVersion: 'v1', kind: 'ConfigMap', metadata: meta(), data: { a: 'b' }, binaryData: { c: base64('x') } },
    others: [
      ['invalid keys', { data: { 'a b': 'x', '..': 'y', '': 'z' }, binaryData: { 'x/y': 'YQ==' } }],
      ['a key twice', { data: { c: 'x' } }],
      ['no base64', { binaryData: { c: '!' } }],
      ['a number', { data: { a: 1 } }],
      ['no data', { data: null, binaryData: null }],
      ['immutable', { immutable: true }],
    ],
    updates: [
      ['data', { data: { a: 'c', d: 'e' } }],
      ['immutable', { immutable: true, data: { a: 'changed' } }],
      ['another name', { metadata: { name: 'other' } }],
    ],
  }),
  ...kindRows(
    {
      object: {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: 'frozen-$ID' },
        data: { a: 'b' },
        immutable: true,
      },
      updates: [
        ['data', { data: { a: 'c' } }],
        ['not immutable', { immutable: null }],
        ['false', { immutable: false }],
        ['binaryData', { binaryData: { x: 'YQ==' } }],
        ['a label', { metadata: { labels } }],
      ],
    },
    'immutable',
  ),
  ...kindRows({
    object: { apiVersion: 'v1', kind: 'Secret', metadata: meta(), data: { a: base64('b') }, stringData: { c: 'd' } },
    others: [
      ['invalid keys', { data: { 'a b': 'eA==' } }],
      ['no base64', { data: { a: '!' } }],
      ['a token type without an account', { type: 'kubernetes.io/service-account-token' }],
      [
        'a token type with an unknown account',
        {
          type: 'kubernetes.io/service-account-token',
          metadata: { annotations: { 'kubernetes.io/service-account.name': 'nobody' } },
        },
      ],
      ['dockercfg', { type: 'kubernetes.io/dockercfg' }],
      ['dockercfg that is not JSON', { type: 'kubernetes.io/dockercfg', data: { '.dockercfg': base64('{"a":') } }],
      ['dockerconfigjson', { type: 'kubernetes.io/dockerconfigjson', data: { '.dockerconfigjson': base64('{}') } }],
      [
        'dockerconfigjson that is not JSON',
        { type: 'kubernetes.io/dockerconfigjson', data: { '.dockerconfigjson': base64('x') } },
      ],
      ['basic auth', { type: 'kubernetes.io/basic-auth' }],
      ['ssh auth', { type: 'kubernetes.io/ssh-auth' }],
      ['tls', { type: 'kubernetes.io/tls' }],
      ['tls with both', { type: 'kubernetes.io/tls', data: { 'tls.crt': base64('x'), 'tls.key': base64('y') } }],
      ['bootstrap token', { type: 'bootstrap.kubernetes.io/token' }],
      ['a custom type', { type: 'example.com/x' }],
    ],
    updates: [
      ['data', { data: { a: base64('z') } }],
      ['stringData', { stringData: { a: 'z' } }],
      ['the type', { type: 'example.com/other' }],
      ['immutable and data at once', { immutable: true, data: { a: base64('z') } }],
    ],
  }),
  ...kindRows(
    {
      object: {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name: 'frozen-$ID' },
        immutable: true,
        data: { a: 'YQ==' },
      },
      updates: [
        ['data', { data: { a: 'Yg==' } }],
        ['stringData', { stringData: { a: 'x' } }],
        ['not immutable', { immutable: false }],
      ],
    },
    'immutable',
  ),
  ...kindRows({
    object: {
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: meta(),
      secrets: [{ name: 'a' }],
      imagePullSecrets: [{ name: 'b' }],
      automountServiceAccountToken: false,
    },
    others: [
      ['an invalid name', { metadata: { name: 'A_' } }],
      ['secrets without names', { secrets: [{}], imagePullSecrets: [{ name: '' }] }],
    ],
    updates: [
      ['secrets', { secrets: [{ name: 'c' }] }],
      ['automount', { automountServiceAccountToken: true }],
    ],
  }),
  ...kindRows({
    object: {
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: { name: 'pv-$ID' },
      spec: {
        capacity: { storage: '1Gi' },
        accessModes: ['ReadWriteOnce'],
        hostPath: { path: '/x' },
        storageClassName: 'slow',
      },
    },
    others: [
      ['nothing', { spec: { capacity: null, accessModes: null, hostPath: null } }],
      ['unknown modes', { spec: { accessModes: ['X', 'ReadWriteOncePod', 'ReadWriteOnce'] } }],
      ['invalid capacity', { spec: { capacity: { storage: '0', cpu: '1' } } }],
      ['two sources', { spec: { nfs: { server: 'a', path: '/b' } } }],
      ['unknown policies', { spec: { persistentVolumeReclaimPolicy: 'X', volumeMode: 'Y' } }],
      ['recycling the root', { spec: { persistentVolumeReclaimPolicy: 'Recycle', hostPath: { path: '/' } } }],
      ['local without affinity', { spec: { hostPath: null, local: { path: '/x' } } }],
      ['an invalid class name', { spec: { storageClassName: 'A_' } }],
      ['csi', { spec: { hostPath: null, csi: { driver: 'a_b', volumeHandle: '' } } }],
      ['invalid affinity', { spec: { nodeAffinity: {} } }],
      ['an attributes class', { spec: { volumeAttributesClassName: '' } }],
      ['a claim', { spec: { claimRef: { name: '', namespace: '' } } }],
    ],
    updates: [
      ['the source', { spec: { hostPath: { path: '/y' } } }],
      ['capacity', { spec: { capacity: { storage: '2Gi' } } }],
      ['the mode', { spec: { volumeMode: 'Block' } }],
      ['the class', { spec: { storageClassName: 'fast' } }],
      [
        'affinity',
        {
          spec: {
            nodeAffinity: {
              required: { nodeSelectorTerms: [{ matchExpressions: [{ key: 'a', operator: 'Exists' }] }] },
            },
          },
        },
      ],
      ['policy', { spec: { persistentVolumeReclaimPolicy: 'Delete' } }],
    ],
    parts: [
      ['status', 'phase', { status: { phase: 'Released', reason: 'x' } }],
      ['status', 'an unknown phase', { status: { phase: 'Huh' } }],
    ],
  }),
  ...kindRows({
    object: {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: meta(),
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, storageClassName: 'slow' },
    },
    others: [
      ['nothing', { spec: null }],
      ['no modes and no size', { spec: { accessModes: [], resources: null } }],
      ['unknown modes', { spec: { accessModes: ['X'], volumeMode: 'Y' } }],
      ['size zero', { spec: { resources: { requests: { storage: '0' } } } }],
      ['limits below requests', { spec: { resources: { limits: { storage: '1Mi' } } } }],
      ['an invalid class name', { spec: { storageClassName: 'A_' } }],
      [
        'a data source',
        { spec: { dataSource: { kind: 'X', name: 'y' }, dataSourceRef: { apiGroup: 'a.b', kind: 'Z', name: '' } } },
      ],
      ['a data source of this group', { spec: { dataSource: { kind: 'PersistentVolumeClaim', name: 'y' } } }],
      ['an invalid selector', { spec: { selector: { matchExpressions: [{ key: 'a', operator: 'In' }] } } }],
      ['a status', { status: { phase: 'Bound' } }],
    ],
    updates: [
      ['more', { spec: { resources: { requests: { storage: '2Gi' } } } }],
      ['less', { spec: { resources: { requests: { storage: '1Mi' } } } }],
      ['the class', { spec: { storageClassName: 'fast' } }],
      ['the volume', { spec: { volumeName: 'pv' } }],
      ['the mode', { spec: { accessModes: ['ReadOnlyMany'] } }],
    ],
    parts: [
      ['status', 'bound', { status: { phase: 'Bound', capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'] } }],
      ['status', 'an invalid size', { status: { capacity: { storage: '-1' } } }],
      ['status', 'an unknown phase', { status: { phase: 'Huh' } }],
      ['status', 'conditions', { status: { conditions: [{ type: 'Resizing', status: 'True' }] } }],
    ],
  }),
  ...kindRows({
    object: {
      apiVersion: 'v1',
      kind: 'ReplicationController',
      metadata: meta(),
      spec: { replicas: 2, selector: labels, template: { metadata: { labels }, spec: podSpec() } },
    },
    others: [
      ['nothing', { spec: null }],
      ['no template', { spec: { template: null } }],
      ['a selector that does not match', { spec: { selector: { x: 'y' } } }],
      ['negative replicas', { spec: { replicas: -1, minReadySeconds: -1 } }],
      ['a restart policy', { spec: { template: { spec: { restartPolicy: 'Never', activeDeadlineSeconds: 5 } } } }],
      ['no selector', { spec: { selector: null } }],
    ],
    updates: [
      ['replicas', { spec: { replicas: 3 } }],
      ['the selector', { spec: { selector: { x: 'y' } } }],
      ['the image', { spec: { template: { spec: { containers: [{ name: 'main', image: 'x' }] } } } }],
    ],
    parts: [
      ['status', 'replicas', { status: { replicas: 1, readyReplicas: 1, observedGeneration: 1 } }],
      ['status', 'more ready than there are', { status: { replicas: 1, readyReplicas: 2, availableReplicas: 3 } }],
      ['status', 'negative', { status: { replicas: -1 } }],
      ['scale', 'up', { spec: { replicas: 5 } }],
    ],
  }),
  ...kindRows({
    object: {
      apiVersion: 'v1',
      kind: 'PodTemplate',
      metadata: meta(),
      template: { metadata: { labels }, spec: podSpec() },
    },
    others: [
      ['no containers', { template: { spec: { containers: [] } } }],
      ['no template', { template: null }],
    ],
    updates: [
      ['the image', { template: { spec: { containers: [{ name: 'main', image: 'x' }] } } }],
      ['a label', { metadata: { labels: { a: 'b' } } }],
    ],
  }),
  ...kindRows({
    object: {
      apiVersion: 'v1',
      kind: 'Endpoints',
      metadata: meta(),
      subsets: [{ addresses: [{ ip: '10.1.2.3' }], ports: [{ port: 80 }] }],
    },
    others: [
      ['nothing', { subsets: null }],
      [
        'invalid addresses',
        {
          subsets: [
            {
              addresses: [
                { ip: 'x' },
                { ip: '127.0.0.1' },
                { ip: '169.254.1.1' },
                { ip: '224.0.0.1' },
                { ip: '0.0.0.0' },
                { ip: '10.0.0.1', hostname: 'A_', nodeName: 'B_' },
              ],
              ports: [{ port: 0 }, { port: 1, name: 'A_', protocol: 'X', appProtocol: '/' }],
            },
          ],
        },
      ],
      ['an empty subset', { subsets: [{}] }],
      ['no ports', { subsets: [{ addresses: [{ ip: '10.1.2.3' }] }] }],
    ],
    updates: [['another address', { subsets: [{ addresses: [{ ip: '10.1.2.4' }] }] }]],
  }),
  ...kindRows({
    object: {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: meta(),
      involvedObject: { kind: 'Pod', namespace: '$NS', name: 'x' },
      reason: 'Why',
      message: 'Because',
      type: 'Normal',
      count: 1,
      firstTimestamp: '2020-01-01T00:00:00Z',
      lastTimestamp: '2020-01-01T00:00:00Z',
      source: { component: 'me' },
    },
    alsoAs: ['events.k8s.io/v1'],
    others: [
      ['another namespace', { involvedObject: { namespace: 'other' } }],
      ['no object', { involvedObject: null }],
      ['an eventTime', { eventTime: '2020-01-01T00:00:00.123456Z' }],
      [
        'a whole new one',
        { eventTime: '2020-01-01T00:00:00.123456Z', reportingComponent: 'a.b/c', reportingInstance: 'x', action: 'Do' },
      ],
      ['an unknown type', { type: 'Huh' }],
      ['a long message', { message: 'x'.repeat(1025) }],
    ],
    updates: [
      ['count', { count: 2 }],
      ['the reason', { reason: 'Other' }],
      ['a series', { series: { count: 2, lastObservedTime: '2020-01-01T00:00:00.000001Z' } }],
      ['a series with an invalid time', { series: { count: 2, lastObservedTime: '2020-01-01T00:00:00Z' } }],
      ['an eventTime', { eventTime: '2020-01-01T00:00:00.000001Z' }],
      ['the object', { involvedObject: { name: 'y' } }],
    ],
  }),
  ...kindRows({
    object: {
      apiVersion: 'v1',
      kind: 'LimitRange',
      metadata: meta(),
      spec: { limits: [{ type: 'Container', max: { cpu: '2' }, min: { cpu: '100m' }, default: { cpu: '1' } }] },
    },
    others: [
      ['nothing', { spec: null }],
      [
        'a minimum above the maximum',
        {
          spec: {
            limits: [
              {
                type: 'Container',
                max: { cpu: '1' },
                min: { cpu: '2' },
                default: { cpu: '3' },
                defaultRequest: { cpu: '4' },
                maxLimitRequestRatio: { cpu: '0.5' },
              },
            ],
          },
        },
      ],
      [
        'types',
        {
          spec: {
            limits: [
              { type: 'Pod', default: { cpu: '1' } },
              { type: 'Pod' },
              { type: 'Huh' },
              { type: '' },
              { type: 'PersistentVolumeClaim' },
            ],
          },
        },
      ],
      [
        'unknown resources',
        { spec: { limits: [{ type: 'Container', max: { nonsense: '1', 'a b': '2', cpu: 'x' } }] } },
      ],
      [
        'a ratio',
        {
          spec: {
            limits: [{ type: 'Container', max: { cpu: '2' }, min: { cpu: '1' }, maxLimitRequestRatio: { cpu: '3' } }],
          },
        },
      ],
    ],
    updates: [['max', { spec: { limits: [{ type: 'Container', max: { cpu: '5' } }] } }]],
  }),
  ...kindRows({
    object: {
      apiVersion: 'v1',
      kind: 'ResourceQuota',
      metadata: meta(),
      spec: { hard: { pods: '5', 'requests.cpu': '1500m', 'count/deployments.apps': '2' }, scopes: ['NotTerminating'] },
    },
    others: [
      ['nothing', { spec: null }],
      [
        'invalid values',
        {
          spec: {
            hard: {
              pods: '1.5',
              cpu: '-1',
              nonsense: '1',
              'a b': '1',
              'example.com/x': '1',
              'requests.example.com/x': '1.5',
            },
          },
        },
      ],
      ['scopes that conflict', { spec: { scopes: ['Terminating', 'NotTerminating', 'BestEffort'] } }],
      [
        'a scope selector',
        {
          spec: {
            scopes: null,
            scopeSelector: {
              matchExpressions: [
                { scopeName: 'PriorityClass', operator: 'In' },
                { scopeName: 'Huh', operator: 'Exists' },
                { scopeName: 'BestEffort', operator: 'In', values: ['x'] },
              ],
            },
          },
        },
      ],
      ['a scope that does not apply', { spec: { hard: { services: '1' }, scopes: ['BestEffort'] } }],
    ],
    updates: [
      ['hard', { spec: { hard: { pods: '6' } } }],
      ['scopes', { spec: { scopes: ['Terminating'] } }],
    ],
    parts: [
      ['status', 'used', { status: { hard: { pods: '5' }, used: { pods: '1' } } }],
      ['status', 'invalid used', { status: { used: { pods: '-1', nonsense: 'x' } } }],
      ['status', 'invalid more', { status: { used: { pods: '1.5', nonsense: '1' } } }],
    ],
  }),
  ...kindRows({
    object: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'other-$ID', labels } },
    others: [
      ['a name with a dot', { metadata: { name: 'a.b' } }],
      ['custom finalizers', { spec: { finalizers: ['a.b/c', 'x', 'a b'] } }],
      ['a status', { status: { phase: 'Terminating' } }],
    ],
    updates: [
      ['finalizers', { spec: { finalizers: [] } }],
      ['the name label', { metadata: { labels: { 'kubernetes.io/metadata.name': 'x' } } }],
      ['no labels', { metadata: { labels: null } }],
      ['phase', { status: { phase: 'Terminating' } }],
    ],
    parts: [
      ['status', 'phase', { status: { phase: 'Terminating' } }],
      ['status', 'an unknown phase', { status: { phase: 'Huh' } }],
      ['status', 'conditions', { status: { conditions: [{ type: 'A', status: 'True' }] } }],
      ['finalize', 'one more', { spec: { finalizers: ['kubernetes', 'a.b/c'] } }],
      ['finalize', 'wrong', { spec: { finalizers: ['kubernetes', 'x'] } }],
      [
        'finalize',
        'back',
        {
          spec: { finalizers: ['kubernetes'] },
          metadata: { labels: { via: 'finalize' } },
          status: { phase: 'Active' },
        },
      ],
    ],
  }),
]
