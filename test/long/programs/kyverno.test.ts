// Kyverno beside a real kube-apiserver and logical clusters: its webhooks come back to this machine, where they
// validate and mutate by its own kinds of policies and by CEL, and its background controller generates objects.
import { expect } from 'chai'
import { join } from 'node:path'
import {
  applyAll,
  installManifest,
  read,
  readManifest,
  readyOf,
  untilObject,
  type ClusterAccess,
  type Seen,
} from '#test/clients/controllers/cluster-access.ts'
import { expectNoUnexplainedErrors, type Explained } from '#test/clients/controllers/logged-errors.ts'
import { moduleFolders } from '#test/manifests/module-files.ts'
import { ensurePrograms, freePort, startProcess, type ManagedProcess } from '#test/support/index.ts'
import { besideClusters } from './beside-clusters.ts'
import { tryCreate, untilCreated, untilRefused } from './policy-checks.ts'

const system = 'kyverno'

describe('Kyverno', () => {
  besideClusters('kyverno', live, { kcpArgs: ['--egress-allow', '127.0.0.0/8'], many: 3 })
})

// All of them are logged beside a real kube-apiserver too.
const explained: Explained = [
  [/lease\.coordination\.k8s\.io \\"kyverno-health\\" not found/, 'it creates the Lease after it has looked for it'],
  [/clusterpolicy\.kyverno\.io .*not found.*failed to create the UR/, 'a policy is deleted before what it generated'],
  [/only one of pattern.*"logger":"webhooks\/policy\/validate"/, 'this test writes a wrong policy'],
  [
    /the object has been modified.*failed to update (validating|cluster) policy status/,
    'two of its controllers write the status',
  ],
]

async function live(cluster: ClusterAccess): Promise<void> {
  const folder = (await moduleFolders()).get('github.com/kyverno/kyverno')!
  await installManifest(cluster, readManifest(join(folder, 'config/install-latest-testing.yaml')))
  await using kyverno = await startAdmission(cluster)
  await using background = await startBackground(cluster)
  await applyAll(cluster, [{ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } }])
  await validate(cluster)
  await mutate(cluster)
  await generate(cluster)
  await refusePolicy(cluster)
  await validateByCel(cluster)
  await remove(cluster)
  for (const program of [kyverno, background]) expectNoUnexplainedErrors(program.log(), explained, cluster.name)
}

/** Starts the admission controller as the release's Deployment does, outside of the cluster. */
async function startAdmission(cluster: ClusterAccess): Promise<ManagedProcess> {
  const { kyverno } = await ensurePrograms(['kyverno'])
  const port = await freePort()
  const secrets = [
    '--caSecretName=kyverno-svc.kyverno.svc.kyverno-tls-ca',
    '--tlsSecretName=kyverno-svc.kyverno.svc.kyverno-tls-pair',
  ]
  const address = [`--serverIP=127.0.0.1:${port}`, `--webhookServerPort=${port}`, '--webhookServerHost=127.0.0.1']
  const accounts = ['background', 'reports'].map(
    (one) => `--${one}ServiceAccountName=system:serviceaccount:kyverno:kyverno-${one}-controller`,
  )
  return startController(cluster, kyverno, 'admission', [...secrets, ...address, ...accounts, '--webhookTimeout=30'])
}

/** Starts the controller that generates objects. */
async function startBackground(cluster: ClusterAccess): Promise<ManagedProcess> {
  const programs = await ensurePrograms(['kyverno-background'])
  return startController(cluster, programs['kyverno-background'], 'background', [])
}

async function startController(
  { name, kubeconfig }: ClusterAccess,
  command: string,
  which: 'admission' | 'background',
  args: readonly string[],
): Promise<ManagedProcess> {
  const metrics = await freePort()
  const logging = ['--loggingFormat=json', '--v=2']
  const ports = ['--metricsHost=127.0.0.1', `--metricsPort=${metrics}`, '--controllerRuntimeMetricsAddress=0']
  return startProcess({
    name: `kyverno-${which}-${name}`,
    command,
    args: [...args, ...logging, ...ports, `--kubeconfig=${kubeconfig}`],
    env: {
      ...{ INIT_CONFIG: 'kyverno', METRICS_CONFIG: 'kyverno-metrics', KYVERNO_NAMESPACE: system },
      ...{ KYVERNO_POD_NAME: `kyverno-${which}-0`, KYVERNO_SERVICEACCOUNT_NAME: `kyverno-${which}-controller` },
      ...{ KYVERNO_ROLE_NAME: `kyverno:${which}-controller`, KYVERNO_SVC: 'kyverno-svc', TUF_ROOT: '/tmp' },
      ...{ KYVERNO_DEPLOYMENT: `kyverno-${which}-controller`, KUBECONFIG: undefined },
    },
    ready: async (signal) => (await fetch(`http://127.0.0.1:${metrics}/metrics`, { signal })).ok,
  })
}

const policy = (name: string, rule: object) => ({
  apiVersion: 'kyverno.io/v1',
  kind: 'ClusterPolicy',
  metadata: { name },
  spec: { background: false, rules: [{ name, match: { any: [{ resources: { kinds: ['ConfigMap'] } }] }, ...rule }] },
})
const configMap = (name: string, labels: object, data: object = {}) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace: 'shop', labels },
  data,
})
const untilReady = (cluster: ClusterAccess, name: string) =>
  untilObject(cluster, [`clusterpolicies/${name}`], (seen) => readyOf(seen)?.status === 'True')

async function validate(cluster: ClusterAccess): Promise<void> {
  const pattern = { metadata: { labels: { owner: '?*' } } }
  const rule = { validate: { failureAction: 'Enforce', message: 'an owner is needed', pattern } }
  await untilCreated(cluster, policy('owner-needed', rule))
  await untilReady(cluster, 'owner-needed')
  await untilRefused(
    cluster,
    configMap('refused', {}),
    'resource ConfigMap/shop/refused was blocked due to the following policies',
  )
  expect(await tryCreate(cluster, configMap('allowed', { owner: 'a' }))).to.equal(undefined)
}

async function mutate(cluster: ClusterAccess): Promise<void> {
  const patch = { metadata: { labels: { '+(owner)': 'nobody' } } }
  await untilCreated(cluster, policy('default-owner', { mutate: { patchStrategicMerge: patch } }))
  await untilReady(cluster, 'default-owner')
  await untilCreated(cluster, configMap('mutated', {}))
  expect((await read(cluster, ['configmaps/mutated', 'shop'])).metadata.labels).to.deep.equal({ owner: 'nobody' })
}

/** A policy makes a ConfigMap for each new Namespace, and makes it again when somebody deletes it. */
async function generate(cluster: ClusterAccess): Promise<void> {
  const made = { apiVersion: 'v1', kind: 'ConfigMap', name: 'made', namespace: '{{request.object.metadata.name}}' }
  const rule = {
    match: { any: [{ resources: { kinds: ['Namespace'], names: ['made-*'] } }] },
    generate: { ...made, synchronize: true, data: { data: { by: 'kyverno' } } },
  }
  await untilCreated(cluster, policy('made', rule))
  await untilReady(cluster, 'made')
  await untilCreated(cluster, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'made-first' } })
  const isMade = (seen: Seen): boolean => (seen as Seen & { data?: { by?: string } }).data?.by === 'kyverno'
  const { metadata } = await untilObject(cluster, ['configmaps/made', 'made-first'], isMade)
  expect(metadata.labels?.['app.kubernetes.io/managed-by']).to.equal('kyverno')
  await cluster.kubectl(['-n', 'made-first', 'delete', 'cm/made'])
  await untilObject(cluster, ['configmaps/made', 'made-first'], (seen) => seen.metadata.uid !== metadata.uid)
}

/** Kyverno validates its own kinds by a webhook. */
async function refusePolicy(cluster: ClusterAccess): Promise<void> {
  const rule = { validate: { failureAction: 'Enforce', message: 'x', pattern: { spec: { 'a{{b': 1 } }, deny: {} } }
  expect(await tryCreate(cluster, policy('wrong', rule))).to.match(
    /admission webhook "validate-policy.kyverno.svc" denied the request/,
  )
}

async function validateByCel(cluster: ClusterAccess): Promise<void> {
  const rules = [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE', 'UPDATE'], resources: ['configmaps'] }]
  const validations = [
    { expression: 'object.?data.orValue({}).all(key, size(object.data[key]) <= 3)', message: 'a value is too long' },
  ]
  const metadata = { name: 'short-values' }
  const spec = { validationActions: ['Deny'], matchConstraints: { resourceRules: rules }, validations }
  await untilCreated(cluster, { apiVersion: 'policies.kyverno.io/v1', kind: 'ValidatingPolicy', metadata, spec })
  await untilRefused(cluster, configMap('long', { owner: 'a' }, { key: 'long' }), 'a value is too long')
  expect(await tryCreate(cluster, configMap('short', { owner: 'a' }, { key: 'abc' }))).to.equal(undefined)
}

async function remove(cluster: ClusterAccess): Promise<void> {
  await cluster.kubectl(['delete', 'clusterpolicy', '--all'])
  await cluster.kubectl(['delete', 'validatingpolicies.policies.kyverno.io', '--all'])
  await untilCreated(cluster, configMap('free', {}, { key: 'long' }))
}
