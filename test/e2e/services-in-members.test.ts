// Calls by a logical cluster to Services whose pods run in a member: admission webhooks, conversion webhooks, and
// proxies of pods and Services. The pods run the programs of Kubernetes' own tests. And an operator that runs in a
// member.
import { expect } from 'chai'
import { startArtifactServer } from '#test/clients/controllers/artifact-server.ts'
import type { ClusterAccess } from '#test/clients/controllers/cluster-access.ts'
import {
  announce,
  applyKustomization,
  fluxNamespace,
  installFlux,
  untilApplied,
} from '#test/clients/controllers/flux.ts'
import { agnhostImage, kubectl, needsNodes, waitFor, type CommandResult } from '#test/support/index.ts'
import { deleteAll } from './delete-all.ts'
import { CertificateAuthority } from '#test/support/certificates.ts'
import { createLogicalCluster, installWithoutHost, type Installation } from './installation.ts'
import { endLabAfterAll, lab } from './lab.ts'
import { importKustomizeController, kustomizeControllerImage } from './operator-image.ts'

type Manifest = Record<string, unknown>

endLabAfterAll()

describe('a Service whose pods run in a member', function () {
  this.timeout(90_000)
  const stack = new AsyncDisposableStack()
  let installation: Installation
  let alice = ''
  let caBundle = ''

  before(async function () {
    this.timeout(300_000)
    await needsNodes(this)
    const clusters = await lab()
    installation = stack.use(await installWithoutHost(clusters))
    await installation.join(clusters.east)
    await createLogicalCluster(installation, 'acme', 'alice')
    alice = await installation.tenant('acme', 'alice')
    const authority = await CertificateAuthority.create('authority of hooks')
    caBundle = Buffer.from(authority.certificate).toString('base64')
    await apply(...hooks(await authority.issue({ commonName: 'hook', hosts: ['hook.default.svc'] })))
    await kubectl(alice, ['rollout', 'status', 'deployment/hook', '--timeout=120s'])
    await waitFor(
      () => raw('/api/v1/namespaces/default/services/hook:web/proxy/hostname').then(({ code }) => code === 0),
      {
        what: 'the endpoints of the Service',
        deadlineMs: 30_000,
      },
    )
  })
  after(async function () {
    this.timeout(120_000)
    await using _ = stack
    if (alice !== '') await deleteAll(installation.admin)
  })

  const apply = (...objects: readonly Manifest[]): Promise<CommandResult> =>
    kubectl(alice, ['apply', '-f', '-'], { input: { apiVersion: 'v1', kind: 'List', items: objects } })
  const raw = (path: string): Promise<CommandResult> => kubectl(alice, ['get', '--raw', path], { expectCode: 'any' })

  it('serves an admission webhook, with a certificate for its own name', async () => {
    const webhook = {
      ...{ name: 'deny.example.com', sideEffects: 'None', admissionReviewVersions: ['v1'] },
      clientConfig: { caBundle, service: { namespace: 'default', name: 'hook', path: '/configmaps' } },
      rules: [{ operations: ['CREATE'], apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'] }],
      objectSelector: { matchLabels: { judged: 'yes' } },
    }
    const type = { apiVersion: 'admissionregistration.k8s.io/v1', kind: 'ValidatingWebhookConfiguration' }
    await apply({ ...type, metadata: { name: 'deny' }, webhooks: [webhook] })
    const configMap = (name: string, data: Manifest): Manifest => ({
      ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, labels: { judged: 'yes' } }, data },
    })
    await apply(configMap('good', { a: 'b' }))
    const input = configMap('bad', { 'webhook-e2e-test': 'webhook-disallow' })
    const { stderr } = await kubectl(alice, ['create', '-f', '-'], { input, expectCode: 1 })
    expect(stderr).to.contain(
      'admission webhook "deny.example.com" denied the request: the configmap contains unwanted key and value',
    )
    const wrong = { ...webhook, clientConfig: { ...webhook.clientConfig, caBundle: undefined } }
    await apply({ ...type, metadata: { name: 'deny' }, webhooks: [wrong] })
    const refused = await kubectl(alice, ['create', '-f', '-'], { input, expectCode: 1 })
    expect(refused.stderr).to.contain('x509: certificate signed by unknown authority')
    await kubectl(alice, ['delete', 'validatingwebhookconfiguration', 'deny'])
  })
  it('serves a conversion webhook', async () => {
    const schema = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } }
    const version = (name: string, storage: boolean): Manifest => ({ name, served: true, storage, schema })
    const service = { namespace: 'default', name: 'hook', port: 9443, path: '/crdconvert' }
    await apply({
      ...{ apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition' },
      metadata: { name: 'tabs.stable.example.com' },
      spec: {
        ...{ group: 'stable.example.com', scope: 'Namespaced', names: { plural: 'tabs', kind: 'Tab' } },
        versions: [version('v1', true), version('v2', false)],
        conversion: {
          strategy: 'Webhook',
          webhook: { clientConfig: { caBundle, service }, conversionReviewVersions: ['v1'] },
        },
      },
    })
    await apply({
      ...{ apiVersion: 'stable.example.com/v1', kind: 'Tab', metadata: { name: 'a', namespace: 'default' } },
      hostPort: 'localhost:8080',
    })
    const { stdout } = await kubectl(alice, [
      'get',
      'tabs.v2.stable.example.com',
      'a',
      '-o',
      'jsonpath={.host}/{.port}',
    ])
    expect(stdout).to.equal('localhost/8080')
  })
  it('is reached through services/proxy and pods/proxy', async () => {
    const { stdout: names } = await kubectl(alice, [
      'get',
      'pods',
      '-l',
      'app=hook',
      '-o',
      'jsonpath={.items[0].metadata.name}',
    ])
    const pods = '/api/v1/namespaces/default/pods'
    const services = '/api/v1/namespaces/default/services'
    for (const path of [
      `${services}/hook:web/proxy/hostname`,
      `${services}/hook:8080/proxy/hostname`,
      `${services}/http:hook:web/proxy/hostname`,
      `${pods}/${names}/proxy/hostname`,
      `${pods}/${names}:8080/proxy/hostname`,
      `${pods}/http:${names}:8080/proxy/hostname`,
    ]) {
      const { stdout, stderr } = await raw(path)
      expect(stdout, stderr).to.equal(names)
    }
    expect((await raw(`${services}/https:hook:hook/proxy/readyz`)).stdout).to.equal('ok')
    expect((await raw(`${services}/hook:web/proxy/echo?msg=a%20b`)).stdout).to.equal('a b')
    // kubectl follows the redirect to the path with its slash.
    for (const path of [`${services}/hook:web/proxy`, `${pods}/${names}/proxy`])
      expect((await raw(path)).stdout, path).to.match(/^NOW: /)
    expect((await raw(`${services}/hook:none/proxy/`)).stderr).to.contain(
      'no endpoints available for service "hook:none"',
    )
    expect((await raw(`${services}/hook:81/proxy/`)).stderr).to.contain('no service port 81 found for service "hook"')
    expect((await raw(`${pods}/${names}:1/proxy/`)).stderr).to.contain('ServiceUnavailable')
    expect((await raw(`${pods}/none/proxy/`)).stderr).to.contain('pods "none" not found')
  })

  it('is where an unchanged operator runs, which manages custom resources of the logical cluster', async function () {
    this.timeout(30 * 60_000) // the first build
    const { east } = await lab()
    await importKustomizeController(east)
    await using artifacts = await startArtifactServer({ host: east.hostAddress })
    const acme: ClusterAccess = { name: 'acme', kubeconfig: alice, kubectl: (args, more) => kubectl(alice, args, more) }
    await installFlux(acme)
    await apply(...operator())
    const flux = ['-n', fluxNamespace]
    await kubectl(alice, [...flux, 'rollout', 'status', 'deployment/kustomize-controller', '--timeout=60s'])
    const app = await artifacts.publish('one', { 'app/web.yaml': JSON.stringify(managedApplication()) })
    await announce(acme, app)
    // It waits until what it has created is available.
    await applyKustomization(acme, 'app', { path: './app', wait: true })
    await untilApplied(acme, 'app', app)
    const pods = await kubectl(alice, ['get', 'pods', '-l', 'app=managed', '-o', 'jsonpath={.items[*].status.phase}'])
    expect(pods.stdout).to.equal('Running')
    await kubectl(alice, [...flux, 'delete', 'kustomization/app', '--timeout=60s'])
    await kubectl(alice, ['wait', '--for=delete', 'deployment/managed', '--timeout=60s'])
  })
})

/** A pod with three servers: admission webhook, conversion webhook, and a web server. */
function hooks({ certificate, key }: { certificate: string; key: string }): Manifest[] {
  const metadata = { name: 'hook', namespace: 'default' }
  const labels = { app: 'hook' }
  const tls = ['--tls-cert-file=/certs/tls.crt', '--tls-private-key-file=/certs/tls.key']
  const container = (name: string, port: number, args: readonly string[], scheme = 'HTTPS'): Manifest => ({
    ...{ name, image: agnhostImage, args, volumeMounts: [{ name: 'certs', mountPath: '/certs' }] },
    ports: [{ containerPort: port }],
    readinessProbe: { httpGet: { path: scheme === 'HTTPS' ? '/readyz' : '/healthz', port, scheme }, periodSeconds: 1 },
  })
  const containers = [
    container('web', 8080, ['netexec', '--http-port=8080'], 'HTTP'),
    container('hook', 8443, ['webhook', '--port=8443', ...tls]),
    container('convert', 9443, ['crd-conversion-webhook', '--port=9443', ...tls]),
  ]
  const volumes = [{ name: 'certs', secret: { secretName: 'hook' } }]
  const spec = { terminationGracePeriodSeconds: 0, containers, volumes }
  const ports = [
    { name: 'hook', port: 443, targetPort: 8443 },
    { name: 'convert', port: 9443 },
    { name: 'web', port: 8080 },
  ]
  return [
    { apiVersion: 'v1', kind: 'Secret', metadata, stringData: { 'tls.crt': certificate, 'tls.key': key } },
    { apiVersion: 'v1', kind: 'Service', metadata, spec: { selector: labels, ports } },
    {
      ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata },
      spec: { selector: { matchLabels: labels }, template: { metadata: { labels }, spec } },
    },
  ]
}

/** What Flux's own manifests say, without limits. */
function operator(): Manifest[] {
  const metadata = { name: 'kustomize-controller', namespace: fluxNamespace }
  const labels = { app: 'kustomize-controller' }
  const container = {
    ...{ name: 'manager', image: kustomizeControllerImage },
    args: ['--watch-all-namespaces', '--log-level=info', '--enable-leader-election', '--min-retry-delay=200ms'],
    env: [{ name: 'RUNTIME_NAMESPACE', valueFrom: { fieldRef: { fieldPath: 'metadata.namespace' } } }],
    readinessProbe: { httpGet: { path: '/readyz', port: 9440 }, periodSeconds: 1 },
    volumeMounts: [{ name: 'temp', mountPath: '/tmp' }],
  }
  const spec = {
    ...{ serviceAccountName: metadata.name, terminationGracePeriodSeconds: 0, containers: [container] },
    volumes: [{ name: 'temp', emptyDir: {} }],
  }
  const rbac = 'rbac.authorization.k8s.io'
  return [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata },
    {
      apiVersion: `${rbac}/v1`,
      kind: 'ClusterRoleBinding',
      metadata: { name: metadata.name },
      roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: 'cluster-admin' },
      subjects: [{ kind: 'ServiceAccount', ...metadata }],
    },
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata,
      spec: { selector: { matchLabels: labels }, template: { metadata: { labels }, spec } },
    },
  ]
}

function managedApplication(): Manifest {
  const labels = { app: 'managed' }
  const containers = [{ name: 'web', image: agnhostImage, args: ['pause'] }]
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'managed', namespace: 'default' },
    spec: {
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { terminationGracePeriodSeconds: 0, containers } },
    },
  }
}
