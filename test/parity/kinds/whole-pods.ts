// Pods that use most fields of a pod.
import type { JsonObject } from '#apimachinery/meta/index.ts'

const expression = { key: 'a', operator: 'In', values: ['b'] }
const labelSelector = { matchLabels: { app: 'web' }, matchExpressions: [{ key: 'b', operator: 'Exists' }] }

const volumes: readonly JsonObject[] = [
  { name: 'empty', emptyDir: { medium: 'Memory', sizeLimit: '1Gi' } },
  { name: 'huge', emptyDir: { medium: 'HugePages-2Mi' } },
  { name: 'host', hostPath: { path: '/var/x', type: 'DirectoryOrCreate' } },
  { name: 'secret', secret: { secretName: 'a', defaultMode: 0o400, items: [{ key: 'a', path: 'b/c', mode: 0o600 }] } },
  { name: 'config', configMap: { name: 'a', optional: true, items: [{ key: 'a', path: '.a' }] } },
  { name: 'claim', persistentVolumeClaim: { claimName: 'a', readOnly: true } },
  { name: 'csi', csi: { driver: 'a.example.com', readOnly: true, nodePublishSecretRef: { name: 'a' } } },
  { name: 'nfs', nfs: { server: 'a', path: '/b' } },
  { name: 'image', image: { reference: 'a/b:c', pullPolicy: 'Always' } },
  {
    name: 'down',
    downwardAPI: {
      items: [
        { path: 'labels', fieldRef: { fieldPath: 'metadata.labels' } },
        { path: 'one', fieldRef: { fieldPath: "metadata.labels['example.com/a']" } },
        { path: 'cpu', resourceFieldRef: { containerName: 'main', resource: 'limits.cpu', divisor: '1m' } },
      ],
    },
  },
  {
    name: 'many',
    projected: {
      sources: [
        { secret: { name: 'a', items: [{ key: 'a', path: 's' }] } },
        { configMap: { name: 'a' } },
        { serviceAccountToken: { path: 'token', audience: 'x', expirationSeconds: 600 } },
        { downwardAPI: { items: [{ path: 'd', fieldRef: { fieldPath: 'metadata.name' } }] } },
      ],
    },
  },
  {
    name: 'own',
    ephemeral: {
      volumeClaimTemplate: {
        metadata: { labels: { a: 'b' } },
        spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
      },
    },
  },
]

const main: JsonObject = {
  name: 'main',
  image: 'nginx:1.27',
  ports: [
    { name: 'http', containerPort: 80 },
    { name: 'dns', containerPort: 53, protocol: 'UDP', hostPort: 53, hostIP: '10.0.0.1' },
  ],
  env: [
    { name: 'A', value: '$(B)' },
    { name: 'with.dots-and_more', value: '' },
    { name: 'FIELD', valueFrom: { fieldRef: { fieldPath: "metadata.annotations['a']" } } },
    { name: 'IPS', valueFrom: { fieldRef: { fieldPath: 'status.podIPs' } } },
    { name: 'CPU', valueFrom: { resourceFieldRef: { resource: 'requests.cpu', divisor: '1m' } } },
    { name: 'MEM', valueFrom: { resourceFieldRef: { resource: 'limits.memory', divisor: '1Mi' } } },
    { name: 'KEY', valueFrom: { secretKeyRef: { name: 'a', key: 'a.b', optional: true } } },
  ],
  envFrom: [{ prefix: 'X_', configMapRef: { name: 'a' } }, { secretRef: { name: 'b', optional: true } }],
  resources: {
    requests: { cpu: '500m', memory: '1Gi', 'hugepages-2Mi': '2Mi', 'example.com/gpu': '1' },
    limits: { cpu: '1', memory: '2Gi', 'hugepages-2Mi': '2Mi', 'example.com/gpu': '1', 'ephemeral-storage': '1Gi' },
  },
  resizePolicy: [{ resourceName: 'cpu', restartPolicy: 'RestartContainer' }],
  volumeMounts: [
    { name: 'empty', mountPath: '/empty', subPath: 'a/b' },
    { name: 'huge', mountPath: '/huge' },
    { name: 'host', mountPath: '/host', mountPropagation: 'HostToContainer' },
    { name: 'secret', mountPath: '/secret', readOnly: true, recursiveReadOnly: 'IfPossible' },
    { name: 'config', mountPath: '/config', subPathExpr: '$(A)' },
    { name: 'image', mountPath: '/image', readOnly: true },
    { name: 'many', mountPath: 'C:\\many' },
  ],
  startupProbe: {
    httpGet: { path: '/', port: 'http', httpHeaders: [{ name: 'X-A', value: 'b' }] },
    failureThreshold: 30,
  },
  livenessProbe: { exec: { command: ['true'] }, terminationGracePeriodSeconds: 5 },
  readinessProbe: { grpc: { port: 80 }, successThreshold: 2 },
  lifecycle: { preStop: { sleep: { seconds: 5 } }, postStart: { tcpSocket: { port: 80 } } },
  securityContext: {
    capabilities: { add: ['NET_ADMIN'], drop: ['ALL'] },
    allowPrivilegeEscalation: true,
    procMount: 'Default',
    seccompProfile: { type: 'Localhost', localhostProfile: 'a/b.json' },
    appArmorProfile: { type: 'RuntimeDefault' },
    runAsUser: 0,
  },
}

export const wholePod: JsonObject = {
  serviceAccountName: 'default',
  hostname: 'a',
  subdomain: 'b',
  setHostnameAsFQDN: true,
  activeDeadlineSeconds: 100,
  shareProcessNamespace: true,
  os: { name: 'linux' },
  schedulingGates: [{ name: 'example.com/gate' }],
  readinessGates: [{ conditionType: 'example.com/ready' }],
  imagePullSecrets: [{ name: 'a' }],
  hostAliases: [{ ip: '10.0.0.1', hostnames: ['a.example.com', 'b'] }],
  dnsPolicy: 'None',
  dnsConfig: { nameservers: ['1.1.1.1'], searches: ['a.example.com.', '.'], options: [{ name: 'ndots', value: '2' }] },
  nodeSelector: { a: 'b' },
  tolerations: [
    { operator: 'Exists' },
    { key: 'a', value: 'b', effect: 'NoExecute', tolerationSeconds: -1 },
    { key: 'c', operator: 'Exists', effect: 'PreferNoSchedule' },
  ],
  affinity: {
    nodeAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: {
        nodeSelectorTerms: [
          {
            matchExpressions: [expression, { key: 'n', operator: 'Gt', values: ['1'] }],
            matchFields: [{ key: 'metadata.name', operator: 'In', values: ['node'] }],
          },
        ],
      },
      preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 1, preference: { matchExpressions: [expression] } }],
    },
    podAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: [
        { topologyKey: 'zone', labelSelector, matchLabelKeys: ['version'], namespaces: ['a'], namespaceSelector: {} },
      ],
    },
    podAntiAffinity: {
      preferredDuringSchedulingIgnoredDuringExecution: [
        { weight: 100, podAffinityTerm: { topologyKey: 'zone', labelSelector, mismatchLabelKeys: ['team'] } },
      ],
    },
  },
  topologySpreadConstraints: [
    {
      maxSkew: 1,
      topologyKey: 'zone',
      whenUnsatisfiable: 'DoNotSchedule',
      labelSelector,
      minDomains: 2,
      matchLabelKeys: ['version'],
      nodeAffinityPolicy: 'Ignore',
      nodeTaintsPolicy: 'Honor',
    },
  ],
  securityContext: {
    fsGroup: 1,
    fsGroupChangePolicy: 'OnRootMismatch',
    supplementalGroups: [1, 2],
    supplementalGroupsPolicy: 'Strict',
    sysctls: [
      { name: 'net.ipv4.ip_unprivileged_port_start', value: '0' },
      { name: 'net/core/somaxconn', value: '1' },
    ],
    seccompProfile: { type: 'RuntimeDefault' },
    seLinuxOptions: { level: 's0:c1,c2' },
  },
  initContainers: [
    { name: 'first', image: 'a' },
    { name: 'beside', image: 'a', restartPolicy: 'Always', startupProbe: { tcpSocket: { port: 1 } } },
  ],
  containers: [main, { name: 'other', image: 'a', workingDir: '/x', stdin: true, stdinOnce: true, tty: true }],
  volumes: [...volumes],
}

export const windowsPod: JsonObject = {
  serviceAccountName: 'default',
  os: { name: 'windows' },
  securityContext: {
    windowsOptions: { hostProcess: true, runAsUserName: 'NT AUTHORITY\\SYSTEM', gmsaCredentialSpecName: 'a' },
  },
  hostNetwork: true,
  containers: [{ name: 'main', image: 'a', securityContext: { windowsOptions: { runAsUserName: 'user' } } }],
}
