// Manifests of all kinds of workloads for the e2e suites.
import { agnhostImage } from '#test/support/index.ts'
import { documents, type Manifest } from './manifests.ts'

export { namespace } from './manifests.ts'

const storageClassName = 'kept-by-hand'
const claimSpec = { accessModes: ['ReadWriteOnce'], storageClassName, resources: { requests: { storage: '1Mi' } } }

function podSpec(args: readonly string[], more: Manifest = {}, ofPod: Manifest = {}): Manifest {
  return {
    terminationGracePeriodSeconds: 1,
    containers: [{ name: 'main', image: agnhostImage, args, ...more }],
    ...ofPod,
  }
}

function template(app: string, spec: Manifest): Manifest {
  return { metadata: { labels: { app } }, spec }
}

const serving = ['netexec', '--http-port=8080']
const readinessProbe = { httpGet: { path: '/healthz', port: 8080 }, periodSeconds: 1 }

/** A volume of a member that claims can bind, as `input` of kubectl. */
export function staticVolume(name: string): { input: object } {
  const spec = {
    capacity: { storage: '1Mi' },
    accessModes: ['ReadWriteOnce'],
    storageClassName,
    persistentVolumeReclaimPolicy: 'Retain',
    hostPath: { path: `/tmp/kcp-e2e-${name}`, type: 'DirectoryOrCreate' },
  }
  return { input: { apiVersion: 'v1', kind: 'PersistentVolume', metadata: { name }, spec } }
}

/** StatefulSet `db` with two pods and a headless Service. */
export function database({ withClaims = true }: { withClaims?: boolean } = {}): string {
  const selector = { app: 'db' }
  const mounts = withClaims ? { volumeMounts: [{ name: 'data', mountPath: '/data' }] } : {}
  return documents([
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'db' },
      spec: { clusterIP: 'None', selector, ports: [{ name: 'http', port: 8080 }] },
    },
    {
      apiVersion: 'apps/v1',
      kind: 'StatefulSet',
      metadata: { name: 'db' },
      spec: {
        serviceName: 'db',
        replicas: 2,
        selector: { matchLabels: selector },
        template: template('db', podSpec(serving, { readinessProbe, ...mounts })),
        ...(withClaims && { volumeClaimTemplates: [{ metadata: { name: 'data' }, spec: claimSpec }] }),
      },
    },
  ])
}

/** A DaemonSet `agent`, a ReplicaSet `crowd` and a pod `bare`. */
export function bareObjects(): string {
  const workload = (kind: string, name: string, spec: Manifest): Manifest => ({
    apiVersion: 'apps/v1',
    kind,
    metadata: { name },
    spec: { ...spec, selector: { matchLabels: { app: name } }, template: template(name, podSpec(['pause'])) },
  })
  return documents([
    workload('DaemonSet', 'agent', {}),
    workload('ReplicaSet', 'crowd', { replicas: 2 }),
    { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'bare', labels: { app: 'bare' } }, spec: podSpec(serving) },
  ])
}

/** A Job `once` that prints something and ends. */
export function runOnce({ ttlSeconds }: { ttlSeconds: number }): string {
  const spec = {
    ttlSecondsAfterFinished: ttlSeconds,
    template: { spec: podSpec(['help'], {}, { restartPolicy: 'Never' }) },
  }
  return documents([{ apiVersion: 'batch/v1', kind: 'Job', metadata: { name: 'once' }, spec }])
}

/** A CronJob `tick` that runs every minute. */
export function runPeriodically(): string {
  const job = { template: { spec: podSpec(['help'], {}, { restartPolicy: 'Never' }) } }
  const spec = { schedule: '* * * * *', jobTemplate: { spec: job } }
  return documents([{ apiVersion: 'batch/v1', kind: 'CronJob', metadata: { name: 'tick' }, spec }])
}

/** A Deployment `web` with a claim, and what usually stands beside one. */
export function webWithNeighbours(): string {
  const metadata = { name: 'web' }
  const scaleTargetRef = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' }
  const backend = { service: { name: 'web', port: { number: 80 } } }
  const rules = [{ host: 'web.example', http: { paths: [{ path: '/', pathType: 'Prefix', backend }] } }]
  const tls = [{ hosts: ['web.example'], secretName: 'certificate' }]
  const volumes = [{ name: 'files', persistentVolumeClaim: { claimName: 'files' } }]
  const mounts = { volumeMounts: [{ name: 'files', mountPath: '/files' }] }
  const selector = { matchLabels: { app: 'web' } }
  const utilization = { name: 'cpu', target: { type: 'Utilization', averageUtilization: 50 } }
  return documents([
    { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name: 'files' }, spec: claimSpec },
    { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'certificate' }, stringData: { 'tls.key': 'k' } },
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata,
      spec: { selector: { app: 'web' }, ports: [{ port: 80, targetPort: 8080 }] },
    },
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata,
      spec: { selector, template: template('web', podSpec(serving, { readinessProbe, ...mounts }, { volumes })) },
    },
    { apiVersion: 'networking.k8s.io/v1', kind: 'Ingress', metadata, spec: { tls, rules } },
    {
      apiVersion: 'networking.k8s.io/v1',
      kind: 'NetworkPolicy',
      metadata,
      spec: { podSelector: selector, ingress: [{ from: [{ namespaceSelector: {} }] }] },
    },
    {
      apiVersion: 'autoscaling/v2',
      kind: 'HorizontalPodAutoscaler',
      metadata,
      spec: { scaleTargetRef, minReplicas: 2, maxReplicas: 3, metrics: [{ type: 'Resource', resource: utilization }] },
    },
    { apiVersion: 'policy/v1', kind: 'PodDisruptionBudget', metadata, spec: { minAvailable: 1, selector } },
  ])
}
