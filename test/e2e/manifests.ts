// The manifests that tenants apply in the e2e suites: ordinary objects with a single annotation of ours.
import { agnhostImage } from '#test/support/index.ts'
import { kubectlImage } from './lab.ts'

export type Manifest = Record<string, unknown>

/** A namespace; `clusters` sets the annotation that places its workloads. */
export function namespace(name: string, clusters?: string): Manifest {
  const annotations = clusters === undefined ? {} : { 'kcp.dev/clusters': clusters }
  return { apiVersion: 'v1', kind: 'Namespace', metadata: { name, annotations } }
}

/** Shortens the moves of a logical cluster: the old copy drains for 5 s, not 10. */
export const quickMoves: Manifest = {
  apiVersion: 'kcp.dev/v1alpha1',
  kind: 'Placement',
  metadata: { name: 'quick' },
  spec: { move: { drainSeconds: 5 } },
}

/**
 * The template of pods that answer with their names, and take two seconds to end as servers with requests under way do.
 */
export function answeringPods(labels: Readonly<Record<string, string>>): Manifest {
  const container = {
    name: 'main',
    image: agnhostImage,
    args: ['netexec', '--http-port=8080', '--delay-shutdown=2'],
    readinessProbe: { httpGet: { path: '/healthz', port: 8080 }, periodSeconds: 1 },
  }
  return { metadata: { labels }, spec: { terminationGracePeriodSeconds: 10, containers: [container] } }
}

/** A web application: Deployment, Service and ConfigMap named `web`, answering with its pod's name. */
export function webApplication(inNamespace: string, { replicas = 2, greeting = 'hello' } = {}): string {
  const metadata = { name: 'web', namespace: inNamespace }
  const labels = { app: 'web' }
  const container = {
    name: 'web',
    image: agnhostImage,
    args: ['netexec', '--http-port=8080', '--delay-shutdown=2'],
    ports: [{ containerPort: 8080 }],
    env: [{ name: 'GREETING', valueFrom: { configMapKeyRef: { name: 'web', key: 'greeting' } } }],
    readinessProbe: { httpGet: { path: '/healthz', port: 8080 }, periodSeconds: 1 },
    terminationMessagePolicy: 'FallbackToLogsOnError',
  }
  const template = { metadata: { labels }, spec: { terminationGracePeriodSeconds: 10, containers: [container] } }
  return documents([
    { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { greeting } },
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata,
      spec: { selector: labels, ports: [{ port: 80, targetPort: 8080 }] },
    },
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata,
      spec: { replicas, selector: { matchLabels: labels }, template },
    },
  ])
}

/** A pod that reads ConfigMaps of its namespace in a loop, with nothing but in-cluster configuration. */
export function apiClient(inNamespace: string): string {
  const metadata = { name: 'asker', namespace: inNamespace }
  const labels = { app: 'asker' }
  const container = { name: 'asker', image: kubectlImage, args: ['get', 'configmaps', '--watch', '--output=name'] }
  const subjects = [{ kind: 'ServiceAccount', name: 'asker', namespace: inNamespace }]
  const template = { metadata: { labels }, spec: { serviceAccountName: 'asker', containers: [container] } }
  return documents([
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata },
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'RoleBinding',
      metadata,
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'view' },
      subjects,
    },
    { apiVersion: 'apps/v1', kind: 'Deployment', metadata, spec: { selector: { matchLabels: labels }, template } },
  ])
}

/**
 * A pod for kubectl exec and logs: `web` answers on 8080 and logs every request, `tool` has kubectl, which reads
 * standard input.
 */
export function toolbox(inNamespace: string): Manifest {
  const labels = { app: 'toolbox' }
  const web = { name: 'web', image: agnhostImage, args: ['netexec', '--http-port=8080'] }
  const tool = { name: 'tool', image: kubectlImage, args: ['proxy', '--port=8001'] }
  const spec = { terminationGracePeriodSeconds: 0, containers: [web, tool] }
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'toolbox', namespace: inNamespace },
    spec: { selector: { matchLabels: labels }, template: { metadata: { labels }, spec } },
  }
}

/** Several objects as one stream of YAML documents. */
export function documents(objects: readonly Manifest[]): string {
  return objects.map((object) => JSON.stringify(object)).join('\n---\n')
}

/** A headless Service and a StatefulSet with one pod, whose domain name is its hostname. */
export function namedPods(
  inNamespace: string,
  { name, domain }: { readonly name: string; readonly domain: string },
): object {
  const labels = { app: name }
  const container = {
    name: 'main',
    image: agnhostImage,
    args: ['netexec', '--http-port=8080', '--delay-shutdown=0'],
    readinessProbe: { httpGet: { path: '/healthz', port: 8080 }, periodSeconds: 1 },
  }
  const spec = { setHostnameAsFQDN: true, terminationGracePeriodSeconds: 1, containers: [container] }
  const metadata = { namespace: inNamespace }
  return {
    apiVersion: 'v1',
    kind: 'List',
    items: [
      {
        ...{ apiVersion: 'v1', kind: 'Service', metadata: { ...metadata, name: domain } },
        spec: { clusterIP: 'None', selector: labels, ports: [{ port: 8080 }] },
      },
      {
        ...{ apiVersion: 'apps/v1', kind: 'StatefulSet', metadata: { ...metadata, name } },
        spec: { serviceName: domain, selector: { matchLabels: labels }, template: { metadata: { labels }, spec } },
      },
    ],
  }
}
