// Gatekeeper beside a real kube-apiserver and logical clusters: templates in Rego and CEL, webhooks that come back to
// this machine, the policies that it generates, mutation and audit.
import { expect } from 'chai'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  applyAll,
  installManifest,
  readManifest,
  read,
  untilGone,
  untilObject,
  type ClusterAccess,
  type Seen,
} from '#test/clients/controllers/cluster-access.ts'
import { expectNoUnexplainedErrors, type Explained } from '#test/clients/controllers/logged-errors.ts'
import { moduleFolders } from '#test/manifests/module-files.ts'
import {
  CertificateAuthority,
  ensurePrograms,
  freePort,
  startProcess,
  type ManagedProcess,
} from '#test/support/index.ts'
import { besideClusters } from './beside-clusters.ts'
import { tryCreate, untilCreated, untilRefused } from './policy-checks.ts'

const system = 'gatekeeper-system'
const podName = 'gatekeeper-0'

describe('Gatekeeper', () => {
  let dir: string
  before(() => {
    dir = mkdtempSync(join(tmpdir(), 'kcp-gatekeeper-'))
  })
  after(() => rmSync(dir, { recursive: true, force: true }))

  besideClusters('gatekeeper', (cluster) => live(cluster, join(dir, cluster.name)), {
    kcpArgs: ['--egress-allow', '127.0.0.0/8'],
    many: 3,
  })
})

const explained: Explained = [
  [/"logger":"webhook-tls-checker"/, 'its readiness is asked before its webhook server listens'],
  [/the object has been modified/, 'several of its controllers write a status, and try again'],
  [/no matches for kind \\"(RequiredLabels|ShortValues)\\"/, 'it asks for the kind of a template before it is served'],
]
/** The garbage collector deletes what belongs to a template, its kind and policy, in no certain order. */
const explainedByRemoval: Explained = [
  [
    /ConstraintTemplate\.templates\.gatekeeper\.sh \\"\w+\\" not found/,
    'a constraint outlives its template for a moment',
  ],
  [/error while listing constraints.*could not find the requested resource/, 'an audit lists a kind that is gone'],
]

async function live(cluster: ClusterAccess, dir: string): Promise<void> {
  // The audit wants its folder to exist.
  mkdirSync(join(dir, 'audit'), { recursive: true })
  const port = await freePort()
  const authority = await CertificateAuthority.create('authority of Gatekeeper')
  const { certificate, key } = await authority.issue({ commonName: 'gatekeeper', hosts: ['127.0.0.1'] })
  writeFileSync(join(dir, 'tls.crt'), certificate)
  writeFileSync(join(dir, 'tls.key'), key, { mode: 0o600 })
  const webhooks = await install(cluster)
  await using gatekeeper = await startGatekeeper(cluster, port, dir)
  const caBundle = Buffer.from(authority.certificate).toString('base64')
  await applyAll(
    cluster,
    webhooks.map((one) => calledAt(one, `https://127.0.0.1:${port}`, caBundle)),
  )
  await enforceRego(cluster)
  await enforceCel(cluster)
  await mutate(cluster)
  expectNoUnexplainedErrors(gatekeeper.log(), explained, cluster.name)
  await remove(cluster)
  expectNoUnexplainedErrors(gatekeeper.log(), [...explained, ...explainedByRemoval], cluster.name)
}

type WebhookConfiguration = Seen & {
  webhooks: { clientConfig: { service: { path: string } }; timeoutSeconds: number }[]
}

/** Applies the release's manifest except the webhooks; resolves with these. */
async function install(cluster: ClusterAccess): Promise<readonly WebhookConfiguration[]> {
  const folder = (await moduleFolders()).get('github.com/open-policy-agent/gatekeeper/v3')!
  const isWebhook = ({ kind }: Seen): boolean => kind.endsWith('WebhookConfiguration')
  const objects = readManifest(join(folder, 'deploy/gatekeeper.yaml'))
  await installManifest(
    cluster,
    objects.filter((one) => !isWebhook(one)),
  )
  // Gatekeeper's status objects belong to its pod; without it the garbage collector would delete them.
  const securityContext = {
    ...{ allowPrivilegeEscalation: false, runAsNonRoot: true, capabilities: { drop: ['ALL'] } },
    seccompProfile: { type: 'RuntimeDefault' },
  }
  const containers = [{ name: 'manager', image: 'gatekeeper', securityContext }]
  await untilCreated(cluster, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: podName, namespace: system },
    spec: { containers },
  })
  return objects.filter(isWebhook) as WebhookConfiguration[]
}

/** The configuration with URLs instead of a Service, and with time for a busy machine. */
function calledAt(configuration: WebhookConfiguration, url: string, caBundle: string): object {
  const webhooks = configuration.webhooks.map(({ clientConfig, ...webhook }) => ({
    ...webhook,
    timeoutSeconds: 30,
    clientConfig: { url: `${url}${clientConfig.service.path}`, caBundle },
  }))
  return { ...configuration, webhooks }
}

async function startGatekeeper(
  { name, kubeconfig }: ClusterAccess,
  port: number,
  dir: string,
): Promise<ManagedProcess> {
  const programs = await ensurePrograms(['gatekeeper'])
  const health = `127.0.0.1:${await freePort()}`
  return startProcess({
    name: `gatekeeper-${name}`,
    command: programs.gatekeeper,
    args: [
      ...['webhook', 'mutation-webhook', 'audit', 'status', 'mutation-status', 'generate'].map(
        (one) => `--operation=${one}`,
      ),
      ...['--disable-cert-rotation', `--cert-dir=${dir}`, '--host=127.0.0.1', `--port=${port}`],
      ...[`--health-addr=${health}`, `--prometheus-port=${await freePort()}`, `--api-cache-dir=${join(dir, 'audit')}`],
      ...['--audit-interval=5', '--default-wait-for-vapb-generation=1', `--exempt-namespace=${system}`],
      ...['--shutdown-delay=0', `--kubeconfig=${kubeconfig}`],
    ],
    env: { POD_NAMESPACE: system, POD_NAME: podName, KUBECONFIG: undefined },
    ready: async (signal) => (await fetch(`http://${health}/readyz`, { signal })).ok,
    readyDeadlineMs: 300_000,
  })
}

const template = (kind: string, code: readonly object[], properties: object) => ({
  apiVersion: 'templates.gatekeeper.sh/v1',
  kind: 'ConstraintTemplate',
  metadata: { name: kind.toLowerCase() },
  spec: {
    crd: { spec: { names: { kind }, validation: { openAPIV3Schema: { type: 'object', properties } } } },
    targets: [{ target: 'admission.k8s.gatekeeper.sh', code }],
  },
})
/** Rego v1, with the keywords `contains` and `if`. */
const rego = `package requiredlabels
violation contains {"msg": msg} if {
  missing := {label | label := input.parameters.labels[_]} - {label | input.review.object.metadata.labels[label]}
  count(missing) > 0
  msg := sprintf("labels are missing: %v", [missing])
}`
const constraint = (kind: string, name: string, kinds: string, parameters: object) => ({
  apiVersion: 'constraints.gatekeeper.sh/v1beta1',
  kind,
  metadata: { name },
  spec: { match: { kinds: [{ apiGroups: [''], kinds: [kinds] }], excludedNamespaces: ['kube-*', system] }, parameters },
})
const configMap = (name: string, namespace: string, labels: object, data: object = {}) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace, labels },
  data,
})

async function enforceRego(cluster: ClusterAccess): Promise<void> {
  const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } }
  await applyAll(cluster, [namespace])
  await applyAll(cluster, [configMap('before', 'shop', {})])
  const parameters = { labels: { type: 'array', items: { type: 'string' } } }
  await applyAll(cluster, [
    template('RequiredLabels', [{ engine: 'Rego', source: { version: 'v1', rego } }], parameters),
  ])
  await untilObject(cluster, ['constrainttemplates/requiredlabels'], ({ status }) => status?.['created'] === true)
  await untilObject(cluster, ['customresourcedefinitions/requiredlabels.constraints.gatekeeper.sh'], ({ status }) =>
    Boolean(status?.conditions?.some(({ type, status: is }) => type === 'Established' && is === 'True')),
  )
  await applyAll(cluster, [constraint('RequiredLabels', 'owned', 'ConfigMap', { labels: ['owner'] })])
  await untilRefused(
    cluster,
    configMap('refused', 'shop', {}),
    'admission webhook "validation.gatekeeper.sh" denied the request: [owned] labels are missing: {"owner"}',
  )
  expect(await tryCreate(cluster, configMap('allowed', 'shop', { owner: 'a' }))).to.equal(undefined)
  // The audit finds what was there before the constraint.
  await untilObject(cluster, ['requiredlabels/owned'], ({ status }) => {
    const violations = (status?.['violations'] ?? []) as { name: string }[]
    return violations.some(({ name }) => name === 'before')
  })
}

async function enforceCel(cluster: ClusterAccess): Promise<void> {
  const source = {
    generateVAP: true,
    validations: [
      {
        expression: '!has(object.data) || object.data.all(key, size(object.data[key]) <= variables.params.most)',
        messageExpression: '"values have more than " + string(variables.params.most) + " characters"',
      },
    ],
  }
  const code = [{ engine: 'K8sNativeValidation', source }]
  await applyAll(cluster, [template('ShortValues', code, { most: { type: 'integer' } })])
  await untilObject(cluster, ['constrainttemplates/shortvalues'], ({ status }) => status?.['created'] === true)
  await untilObject(cluster, ['validatingadmissionpolicies/gatekeeper-shortvalues'], () => true)
  await applyAll(cluster, [constraint('ShortValues', 'short', 'ConfigMap', { most: 3 })])
  await untilObject(cluster, ['validatingadmissionpolicybindings/gatekeeper-shortvalues-short'], () => true)
  const long = configMap('long', 'shop', { owner: 'a' }, { key: 'long' })
  await untilRefused(cluster, long, "ValidatingAdmissionPolicy 'gatekeeper-shortvalues'")
  expect(await tryCreate(cluster, configMap('short', 'shop', { owner: 'a' }, { key: 'abc' }))).to.equal(undefined)
}

async function mutate(cluster: ClusterAccess): Promise<void> {
  await applyAll(cluster, [
    {
      apiVersion: 'mutations.gatekeeper.sh/v1',
      kind: 'AssignMetadata',
      metadata: { name: 'owner' },
      spec: {
        match: { scope: 'Namespaced', kinds: [{ apiGroups: [''], kinds: ['ConfigMap'] }] },
        location: 'metadata.labels.owner',
        parameters: { assign: { value: 'nobody' } },
      },
    },
  ])
  // The label that the mutation adds is what a constraint asks for.
  await untilCreated(cluster, configMap('mutated', 'shop', {}))
  expect((await read(cluster, ['configmaps/mutated', 'shop'])).metadata.labels).to.deep.equal({ owner: 'nobody' })
}

async function remove(cluster: ClusterAccess): Promise<void> {
  await cluster.kubectl([
    'delete',
    'assignmetadata/owner',
    'constrainttemplate/requiredlabels',
    'constrainttemplate/shortvalues',
  ])
  await untilGone(cluster, ['customresourcedefinitions/requiredlabels.constraints.gatekeeper.sh'])
  await untilGone(cluster, ['validatingadmissionpolicies/gatekeeper-shortvalues'])
  await untilCreated(cluster, configMap('free', 'shop', {}, { key: 'long' }))
}
