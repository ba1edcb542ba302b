// The Multi-Cluster Services API with real pods in two members: names of exported Services, and what they lead to.
import { expect } from 'chai'
import { join } from 'node:path'
import { installCrds } from '#test/clients/controllers/cluster-access.ts'
import { moduleFolders } from '#test/manifests/module-files.ts'
import { agnhostImage, kubectl, needsNodes, waitFor, type CommandResult } from '#test/support/index.ts'
import { deleteAll } from './delete-all.ts'
import { createLogicalCluster, installWithoutHost, type Installation } from './installation.ts'
import { endLabAfterAll, lab } from './lab.ts'

type Manifest = Record<string, unknown>

const apiVersion = 'multicluster.x-k8s.io/v1alpha1'
const unknown = 'unknown name'
const within = { deadlineMs: 60_000, intervalMs: 500 }

endLabAfterAll()

describe('Services that are exported to the members of a logical cluster', function () {
  this.timeout(180_000)
  const stack = new AsyncDisposableStack()
  let installation: Installation
  let alice = ''
  let bob = ''

  before(async function () {
    this.timeout(400_000)
    await needsNodes(this)
    const clusters = await lab()
    installation = stack.use(await installWithoutHost(clusters))
    await Promise.all([installation.join(clusters.east), installation.join(clusters.west)])
    const folder = join((await moduleFolders()).get('sigs.k8s.io/mcs-api')!, 'config/crd')
    const files = ['serviceexports', 'serviceimports'].map((name) => join(folder, `multicluster.x-k8s.io_${name}.yaml`))
    for (const [cluster, user] of [
      ['acme', 'alice'],
      ['globex', 'bob'],
    ] as const) {
      await createLogicalCluster(installation, cluster, user)
      const kubeconfig = await installation.tenant(cluster, user)
      if (user === 'alice') alice = kubeconfig
      else bob = kubeconfig
      await installCrds({ name: cluster, kubeconfig, kubectl: (args, more) => kubectl(kubeconfig, args, more) }, files)
      await kubectl(kubeconfig, ['create', 'namespace', 'shop'])
    }
    await apply(
      alice,
      deployment('web', 'east'),
      service('web'),
      deployment('asker', 'west'),
      deployment('near', 'east'),
    )
    await apply(alice, deployment('db', 'east', 'StatefulSet'), service('db', { clusterIP: 'None' }))
    await apply(bob, deployment('asker', 'west'))
    const all = ['deployment/web', 'deployment/asker', 'deployment/near', 'statefulset/db']
    for (const [kubeconfig, names] of [
      [alice, all],
      [bob, ['deployment/asker']],
    ] as const)
      for (const name of names) await kubectl(kubeconfig, ['rollout', 'status', '-n', 'shop', name, '--timeout=120s'])
  })
  after(async function () {
    this.timeout(120_000)
    await using _ = stack
    if (alice !== '') await deleteAll(installation.admin)
  })

  const read = async (kubeconfig: string, resource: string, name: string, path: string): Promise<string> =>
    (await kubectl(kubeconfig, ['get', resource, name, '-n', 'shop', '--ignore-not-found', '-o', `jsonpath=${path}`]))
      .stdout
  const podsOf = async (app: string): Promise<string[]> =>
    (
      await kubectl(alice, [
        'get',
        'pods',
        '-n',
        'shop',
        '-l',
        `app=${app}`,
        '-o',
        'jsonpath={.items[*].metadata.name}',
      ])
    ).stdout.split(' ')
  /** The pods that answered requests of a pod of `asker` to this name; or the error. */
  const ask = async (kubeconfig: string, asker: string, host: string): Promise<string[]> => {
    const pod = await kubectl(kubeconfig, [
      ...['get', 'pods', '-n', 'shop', '-l', `app=${asker}`, '-o', 'jsonpath={.items[0].metadata.name}'],
    ])
    const query = new URLSearchParams({ host, port: '8080', protocol: 'http', request: 'hostname', tries: '12' })
    const path = `/api/v1/namespaces/shop/pods/${pod.stdout}:8080/proxy/dial?${query.toString()}`
    const { stdout, code, stderr } = await kubectl(kubeconfig, ['get', '--raw', path], { expectCode: 'any' })
    // What the program answers for a name that it cannot resolve.
    if (code !== 0 && stderr.includes('(BadRequest)')) return [unknown]
    expect(code, stderr).to.equal(0)
    const { responses = [], errors = [] } = JSON.parse(stdout) as { responses?: string[]; errors?: string[] }
    return [...new Set([...responses, ...errors])].sort()
  }
  const untilAnswers = async (
    asker: string,
    host: string,
    expected: readonly string[],
    kubeconfig = alice,
  ): Promise<void> => {
    let last: string[] = []
    const isAsExpected = async (): Promise<boolean> => {
      last = await ask(kubeconfig, asker, host)
      return last.join() === [...expected].sort().join()
    }
    await waitFor(isAsExpected, { what: `${host} to lead ${asker} to ${expected.join()}`, ...within }).catch(
      (cause: unknown) => {
        throw new Error(`the last answers were ${last.join()}`, { cause })
      },
    )
  }
  const untilUnknown = (asker: string, host: string): Promise<unknown> =>
    waitFor(async () => (await ask(alice, asker, host)).includes(unknown), {
      what: `${host} to be unknown to ${asker}`,
      ...within,
    })

  it('have no name before the export', async () => {
    for (const name of ['web', 'db'])
      expect(await ask(alice, 'asker', `${name}.shop.svc.clusterset.local`)).to.deep.equal([unknown])
  })

  it('lead a pod in one member to pods in another', async () => {
    await apply(alice, ...['web', 'db'].map(exportOf))
    for (const name of ['web', 'db'])
      await kubectl(alice, [
        ...['wait', '-n', 'shop', `serviceexports/${name}`, '--for=condition=Ready', '--timeout=30s'],
      ])
    for (const asker of ['asker', 'near'])
      await untilAnswers(asker, 'web.shop.svc.clusterset.local', await podsOf('web'))
    await untilAnswers('asker', 'web.shop.svc.clusterset.local.', await podsOf('web'))
    await untilAnswers('asker', 'web.shop', await podsOf('web'))
    expect(
      await read(alice, 'serviceexport', 'web', '{range .status.conditions[*]}{.type}={.status} {.reason};{end}'),
    ).to.equal('Valid=True Valid;Conflict=False NoConflicts;Ready=True Exported;')
    expect(
      await read(alice, 'serviceimport', 'web', '{.spec.type} {.spec.ports[0].port} {.status.clusters[*].cluster}'),
    ).to.equal('ClusterSetIP 8080 east')
    expect(await read(alice, 'serviceimport', 'web', '{.spec.ips[0]}')).to.match(/^\d+\.\d+\.\d+\.\d+$/)
  })

  it('name the pods of a headless Service, with the member that they are in', async () => {
    expect(await read(alice, 'serviceimport', 'db', '{.spec.type}')).to.equal('Headless')
    await untilAnswers('asker', 'db.shop.svc.clusterset.local', ['db-0'])
    for (const asker of ['asker', 'near']) {
      await untilAnswers(asker, 'db-0.east.db.shop.svc.clusterset.local', ['db-0'])
      expect(await ask(alice, asker, 'db-0.west.db.shop.svc.clusterset.local')).to.deep.equal([unknown])
    }
  })

  it('lead to pods of all members', async () => {
    await kubectl(alice, ['annotate', '-n', 'shop', 'deployment/web', 'kcp.dev/clusters=east,west', '--overwrite'])
    await waitFor(async () => (await podsOf('web')).length === 2, { what: 'a pod in each member', ...within })
    for (const asker of ['asker', 'near'])
      await untilAnswers(asker, 'web.shop.svc.clusterset.local', await podsOf('web'))
    const clusters = (): Promise<string> => read(alice, 'serviceimport', 'web', '{.status.clusters[*].cluster}')
    await waitFor(async () => (await clusters()) === 'east west', { what: 'both members in the status', ...within })
    const slices = await kubectl(alice, [
      ...['get', 'endpointslices', '-n', 'shop', '-l', 'multicluster.kubernetes.io/service-name=web', '-o'],
      'jsonpath={range .items[*]}{.metadata.labels.multicluster\\.kubernetes\\.io/source-cluster} {end}',
    ])
    expect(slices.stdout.trim().split(' ').sort()).to.deep.equal(['east', 'west'])
  })

  it('are unknown to another tenant, who may export one of the same name', async () => {
    expect(await ask(bob, 'asker', 'web.shop.svc.clusterset.local')).to.deep.equal([unknown])
    expect(await ask(bob, 'asker', 'db-0.east.db.shop.svc.clusterset.local')).to.deep.equal([unknown])
    await apply(bob, service('web', { selector: { app: 'asker' } }), exportOf('web'))
    const own = await kubectl(bob, ['get', 'pods', '-n', 'shop', '-o', 'jsonpath={.items[*].metadata.name}'])
    await untilAnswers('asker', 'web.shop.svc.clusterset.local', [own.stdout], bob)
    await untilAnswers('asker', 'web.shop.svc.clusterset.local', await podsOf('web'))
  })

  it('lose their name with the export', async () => {
    await kubectl(alice, ['delete', '-n', 'shop', 'serviceexport', 'web', 'db'])
    for (const asker of ['asker', 'near'])
      for (const name of ['web', 'db']) await untilUnknown(asker, `${name}.shop.svc.clusterset.local`)
    await untilUnknown('asker', 'db-0.east.db.shop.svc.clusterset.local')
    for (const resource of ['serviceimports', 'services'])
      await waitFor(
        async () => {
          const { stdout } = await kubectl(alice, ['get', resource, '-n', 'shop', '-o', 'name'])
          return !stdout.includes('clusterset') && (resource === 'services' || stdout === '')
        },
        { what: `the ${resource} of the export to go`, ...within },
      )
    await untilAnswers('asker', 'web.shop', await podsOf('web'))
  })
})

const exportOf = (name: string): Manifest => ({
  ...{ apiVersion, kind: 'ServiceExport', metadata: { name, namespace: 'shop' } },
})

const service = (name: string, spec: Manifest = {}): Manifest => ({
  ...{ apiVersion: 'v1', kind: 'Service', metadata: { name, namespace: 'shop' } },
  spec: { selector: { app: name }, ports: [{ name: 'http', port: 8080 }], ...spec },
})

function deployment(name: string, member: string, kind = 'Deployment'): Manifest {
  const labels = { app: name }
  const container = {
    ...{ name: 'web', image: agnhostImage, args: ['netexec', '--http-port=8080'] },
    ports: [{ containerPort: 8080 }],
    readinessProbe: { httpGet: { path: '/healthz', port: 8080 }, periodSeconds: 1 },
  }
  const template = { metadata: { labels }, spec: { terminationGracePeriodSeconds: 0, containers: [container] } }
  return {
    ...{ apiVersion: 'apps/v1', kind },
    metadata: { name, namespace: 'shop', annotations: { 'kcp.dev/clusters': member } },
    spec: { ...(kind === 'StatefulSet' && { serviceName: name }), selector: { matchLabels: labels }, template },
  }
}

async function apply(kubeconfig: string, ...items: readonly Manifest[]): Promise<CommandResult> {
  return await kubectl(kubeconfig, ['apply', '-f', '-'], { input: { apiVersion: 'v1', kind: 'List', items } })
}
