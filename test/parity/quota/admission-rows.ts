// The effect of the admission plugins that kube-apiserver runs by default on pods, claims, ingresses and classes.
import type { JsonObject } from '#apimachinery/meta/index.ts'
import { row, type Row } from '#test/parity/support/compare-rows.ts'
import { pathOf, type Manifest, type Session } from '#test/parity/support/session.ts'

const quiet = { quiet: true }

function object(apiVersion: string, kind: string, metadata: JsonObject, rest: JsonObject = {}): Manifest {
  return { apiVersion, kind, metadata, ...rest }
}

function pod(name: string, spec: JsonObject = {}, container: JsonObject = {}, namespace = '$NS'): Manifest {
  const containers = [{ name: 'main', image: 'registry.example/app:1', ...container }]
  return object('v1', 'Pod', { name, namespace }, { spec: { containers, ...spec } })
}

const account = (name: string, rest: JsonObject = {}): Manifest => object('v1', 'ServiceAccount', { name }, rest)
const claim = (name: string, spec: JsonObject = {}): Manifest =>
  object(
    'v1',
    'PersistentVolumeClaim',
    { name },
    {
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, ...spec },
    },
  )

async function inLabelled(session: Session, name: string, labels: JsonObject): Promise<void> {
  const prefixed = Object.fromEntries(
    Object.entries(labels).map(([label, value]) => [`pod-security.kubernetes.io/${label}`, value]),
  )
  await session.create(object('v1', 'Namespace', { name, labels: prefixed }))
  await session.create({ ...account('default'), metadata: { name: 'default', namespace: name } }, quiet)
}

export const admissionRows: readonly Row[] = [
  row('the token volume of pods', async (session) => {
    await session.create(
      account('quiet', { automountServiceAccountToken: false, imagePullSecrets: [{ name: 'pull' }] }),
    )
    await session.create(pod('token-plain'))
    await session.create(pod('token-off', { automountServiceAccountToken: false }))
    await session.create(pod('token-quiet', { serviceAccountName: 'quiet' }))
    await session.create(pod('token-asked', { serviceAccountName: 'quiet', automountServiceAccountToken: true }))
    await session.create(pod('token-missing', { serviceAccountName: 'missing' }))
    const mounts = [{ name: 'own', mountPath: '/var/run/secrets/kubernetes.io/serviceaccount' }]
    const volumes = [{ name: 'own', emptyDir: {} }]
    await session.create(pod('token-own', { volumes, imagePullSecrets: [{ name: 'other' }] }, { volumeMounts: mounts }))
    const initContainers = [{ name: 'init', image: 'i' }]
    await session.create(pod('token-init', { volumes, initContainers }, { volumeMounts: mounts }))
    await session.create(pod('token-named', { volumes: [{ name: 'kube-api-access-own', emptyDir: {} }] }))
  }),
  row('secrets that a ServiceAccount allows', async (session) => {
    const annotations = { 'kubernetes.io/enforce-mountable-secrets': 'true' }
    const metadata = { name: 'strict', annotations }
    await session.create(object('v1', 'ServiceAccount', metadata, { secrets: [{ name: 'own' }] }))
    const strict = { serviceAccountName: 'strict' }
    const ref = (name: string): JsonObject => ({ name: 'V', valueFrom: { secretKeyRef: { name, key: 'k' } } })
    await session.create(pod('secret-own', strict, { env: [ref('own')] }))
    await session.create(pod('secret-env', strict, { env: [ref('other')] }))
    await session.create(pod('secret-from', strict, { envFrom: [{ secretRef: { name: 'other' } }] }))
    await session.create(pod('secret-pull', { ...strict, imagePullSecrets: [{ name: 'other' }] }))
    await session.create(pod('secret-volume', { ...strict, volumes: [{ name: 'v', secret: { secretName: 'other' } }] }))
  }),
  row('priority classes', async (session) => {
    const priority = (name: string, rest: JsonObject): Manifest =>
      object('scheduling.k8s.io/v1', 'PriorityClass', { name }, { value: 5, ...rest })
    await session.create(priority('never-$ID', { preemptionPolicy: 'Never' }))
    await session.create(pod('priority-class', { priorityClassName: 'never-$ID' }))
    await session.create(
      pod('priority-policy', { priorityClassName: 'never-$ID', preemptionPolicy: 'PreemptLowerPriority' }),
    )
    await session.create(pod('priority-value', { priorityClassName: 'never-$ID', priority: 6 }))
    await session.create(pod('priority-none', { priorityClassName: 'none-$ID' }))
  }),
  row('default classes', async (session) => {
    const annotations = { 'storageclass.kubernetes.io/is-default-class': 'true' }
    const standard = object(
      'storage.k8s.io/v1',
      'StorageClass',
      { name: 'std-$ID', annotations },
      { provisioner: 'p.io/p' },
    )
    await session.create(standard)
    await session.create(claim('class-none'))
    await session.create(claim('class-empty', { storageClassName: '' }))
    await session.change('/api/v1/namespaces/$NS/persistentvolumeclaims/class-none', ({ spec }) => {
      Object.assign(spec as JsonObject, { resources: { requests: { storage: '2Gi' } } })
    })
    const bound = { status: { phase: 'Bound', capacity: { storage: '1Gi' } } }
    const path = '/api/v1/namespaces/$NS/persistentvolumeclaims/class-none'
    await session.patch(`${path}/status`, bound, 'merge', quiet)
    await session.patch(path, { spec: { resources: { requests: { storage: '2Gi' } } } })
    await session.patch(pathOf(standard), { allowVolumeExpansion: true }, 'merge', quiet)
    await session.patch(path, { spec: { resources: { requests: { storage: '3Gi' } } } })
    await session.delete(pathOf(standard), undefined, quiet)
    const mark = { 'ingressclass.kubernetes.io/is-default-class': 'true' }
    const ingressClass = object(
      ...(['networking.k8s.io/v1', 'IngressClass', { name: 'web-$ID', annotations: mark }] as const),
      { spec: { controller: 'example.com/web' } },
    )
    await session.create(ingressClass)
    const spec = { defaultBackend: { service: { name: 'web', port: { number: 80 } } } }
    await session.create(object('networking.k8s.io/v1', 'Ingress', { name: 'plain' }, { spec }))
    const named = { 'kubernetes.io/ingress.class': 'other' }
    await session.create(object('networking.k8s.io/v1', 'Ingress', { name: 'named', annotations: named }, { spec }))
    await session.delete(pathOf(ingressClass), undefined, quiet)
  }),
  row('pod security labels', async (session) => {
    const space = 'sec-$ID'
    await inLabelled(session, space, { enforce: 'baseline', warn: 'restricted', audit: 'restricted' })
    await session.create(pod('host', { hostNetwork: true }, {}, space))
    await session.create(pod('warned', {}, {}, space))
    await session.create(pod('privileged', {}, { securityContext: { privileged: true } }, space), {
      query: '?dryRun=All',
    })
    const labels = { app: 'a' }
    const template = { metadata: { labels }, spec: { hostPID: true, containers: [{ name: 'a', image: 'a' }] } }
    const deployment = { selector: { matchLabels: labels }, template, replicas: 0 }
    await session.create(object('apps/v1', 'Deployment', { name: 'd', namespace: space }, { spec: deployment }), {
      query: '?dryRun=All',
    })
    await session.patch(`/api/v1/namespaces/${space}/pods/warned`, { metadata: { labels } })
    await session.patch(`/api/v1/namespaces/${space}`, {
      metadata: { labels: { 'pod-security.kubernetes.io/enforce': 'restricted' } },
    })
    await session.patch(`/api/v1/namespaces/${space}`, {
      metadata: { labels: { 'pod-security.kubernetes.io/enforce': 'tight' } },
    })
    await session.delete(`/api/v1/namespaces/${space}`, undefined, quiet)
    await inLabelled(session, 'old-$ID', { enforce: 'restricted', 'enforce-version': 'v1.18' })
    await session.create(pod('versioned', {}, {}, 'old-$ID'))
    await session.delete('/api/v1/namespaces/old-$ID', undefined, quiet)
    await inLabelled(session, 'bad-$ID', { enforce: 'x', 'warn-version': '1.2' })
  }),
]
