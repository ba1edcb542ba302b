// An unmodified metrics-server in a cluster with a node, as its own manifests run it: the numbers are those of the
// kubelet.

import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { cacheDir } from './cache-dir.ts'
import { type Cluster } from './cluster.ts'
import { writeImageArchive } from './image-archive.ts'
import { ensurePrograms } from './programs.ts'

const image = 'registry.k8s.io/metrics-server/metrics-server:v0.9.0'
const name = 'metrics-server'
const namespace = 'kube-system'
const labels = { 'k8s-app': name }
const rbac = 'rbac.authorization.k8s.io'

/** Installs it and resolves when the cluster serves metrics.k8s.io. The first build takes minutes. */
export async function installMetricsServer(cluster: Pick<Cluster, 'kubectl' | 'node' | 'name'>): Promise<void> {
  if (cluster.node === undefined) throw new Error(`${cluster.name} has no node to measure`)
  await cluster.node.importImages(await archive())
  await cluster.kubectl(['apply', '-f', '-'], { input: { apiVersion: 'v1', kind: 'List', items: manifests() } })
  await cluster.kubectl(['-n', namespace, 'rollout', 'status', `deployment/${name}`, '--timeout=180s'])
  await cluster.kubectl(['wait', '--for=condition=Available', 'apiservice/v1beta1.metrics.k8s.io', '--timeout=60s'])
}

async function archive(): Promise<string> {
  const programs = await ensurePrograms([name])
  const version = createHash('sha256').update(programs[name]).digest('hex').slice(0, 16)
  const file = join(cacheDir(), 'images', `${name}-${version}.tar`)
  if (existsSync(file)) return file
  await writeImageArchive(file, [
    {
      tags: [image],
      layers: [
        [
          { path: 'tmp', directory: true, mode: 0o1777 },
          { path: name, file: programs[name], mode: 0o755 },
        ],
      ],
      entrypoint: [`/${name}`],
      user: '65534',
    },
  ])
  return file
}

/**
 * manifests/base of v0.9.0; kubelets are checked by the authority that signed their certificates, which every pod has.
 */
function manifests(): object[] {
  const metadata = { name, namespace, labels }
  const subjects = [{ kind: 'ServiceAccount', name, namespace }]
  const bind = (role: string): object => ({
    apiVersion: `${rbac}/v1`,
    kind: 'ClusterRoleBinding',
    metadata: { name: `${name}:${role}`, labels },
    roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: role },
    subjects,
  })
  // More patient than its own manifests, for machines that are busy with other tests.
  const probe = (path: string): object => ({
    httpGet: { path, port: 'https', scheme: 'HTTPS' },
    ...{ periodSeconds: 2, timeoutSeconds: 20, failureThreshold: 10 },
  })
  const container = {
    name,
    image,
    args: [
      '--cert-dir=/tmp',
      '--secure-port=10250',
      '--kubelet-preferred-address-types=InternalIP',
      '--kubelet-use-node-status-port',
      '--kubelet-certificate-authority=/var/run/secrets/kubernetes.io/serviceaccount/ca.crt',
      '--metric-resolution=15s',
    ],
    ports: [{ name: 'https', containerPort: 10250 }],
    readinessProbe: probe('/readyz'),
    livenessProbe: probe('/livez'),
    resources: { requests: { cpu: '100m', memory: '200Mi' } },
    securityContext: { readOnlyRootFilesystem: true, runAsNonRoot: true, runAsUser: 1000 },
    volumeMounts: [{ name: 'tmp', mountPath: '/tmp' }],
  }
  return [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata },
    {
      apiVersion: `${rbac}/v1`,
      kind: 'ClusterRole',
      metadata: { name: `system:${name}`, labels },
      rules: [
        { apiGroups: [''], resources: ['nodes/metrics'], verbs: ['get'] },
        { apiGroups: [''], resources: ['pods', 'nodes'], verbs: ['get', 'list', 'watch'] },
      ],
    },
    bind(`system:${name}`),
    bind('system:auth-delegator'),
    {
      apiVersion: `${rbac}/v1`,
      kind: 'RoleBinding',
      metadata: { ...metadata, name: `${name}-auth-reader` },
      roleRef: { apiGroup: rbac, kind: 'Role', name: 'extension-apiserver-authentication-reader' },
      subjects,
    },
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata,
      spec: { selector: labels, ports: [{ name: 'https', port: 443, targetPort: 'https', appProtocol: 'https' }] },
    },
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata,
      spec: {
        selector: { matchLabels: labels },
        template: {
          metadata: { labels },
          spec: {
            serviceAccountName: name,
            priorityClassName: 'system-cluster-critical',
            containers: [container],
            volumes: [{ name: 'tmp', emptyDir: {} }],
          },
        },
      },
    },
    {
      apiVersion: 'apiregistration.k8s.io/v1',
      kind: 'APIService',
      metadata: { name: 'v1beta1.metrics.k8s.io', labels },
      spec: {
        service: { name, namespace },
        group: 'metrics.k8s.io',
        version: 'v1beta1',
        insecureSkipTLSVerify: true,
        groupPriorityMinimum: 100,
        versionPriority: 100,
      },
    },
  ]
}
