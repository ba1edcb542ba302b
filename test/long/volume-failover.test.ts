// The loss of a member whose volumes are replicated: nothing starts elsewhere by itself, the tenant is told what would be
// lost, and the member that returns keeps its old volume, which nothing mounts.
import { expect } from 'chai'
import { deleteAll } from '#test/e2e/delete-all.ts'
import { createLogicalCluster, idOf, installWithoutHost, type Installation } from '#test/e2e/installation.ts'
import { importKcp, kcpImage } from '#test/e2e/kcp-image.ts'
import { endLabAfterAll, lab, storageOfLab, type Lab } from '#test/e2e/lab.ts'
import { kubectl, needsNodes, runKcp, shellImage, storageClasses, waitFor } from '#test/support/index.ts'
import { Way } from './stateful/way.ts'

interface Object {
  readonly metadata: { readonly name: string; readonly annotations?: Readonly<Record<string, string>> }
  readonly spec: Readonly<Record<string, unknown>>
  readonly status?: Readonly<Record<string, unknown>>
}

endLabAfterAll()

describe('the loss of a member with replicated volumes', function () {
  this.timeout(400_000)
  const stack = new AsyncDisposableStack()
  let clusters: Lab
  let installation: Installation
  let way: Way
  let [alice, id] = ['', '']

  before(async function () {
    this.timeout(30 * 60_000)
    await needsNodes(this)
    clusters = await lab()
    const { east, west } = clusters
    await storageOfLab()
    for (const member of [east, west]) await importKcp(member)
    installation = stack.use(await installWithoutHost(clusters, ['--gateway-image', kcpImage]))
    way = stack.use(await Way.to(east))
    const args = ['member', 'join', 'east', '--kubeconfig', way.kubeconfig, '--service-network', 'Flat']
    await runKcp([...args, ...installation.flags])
    await installation.join(west)
    await kubectl(installation.admin, ['wait', '--for=condition=Ready', 'memberclusters', '--all', '--timeout=60s'])
    await createLogicalCluster(installation, 'acme', 'alice')
    id = await idOf(installation, 'acme')
    alice = await installation.tenant('acme', 'alice')
    const volumes = { default: 'Replicate', standbys: ['west'], everySeconds: 5, retainSeconds: 20 }
    await kubectl(installation.admin, ['apply', '-f', '-'], {
      input: {
        ...{ apiVersion: 'kcp.dev/v1alpha1', kind: 'Placement', metadata: { name: 'volumes' } },
        spec: { volumes, move: { drainSeconds: 5, soakSeconds: 0, forwardSeconds: 0 } },
      },
    })
  })
  after(async function () {
    this.timeout(120_000)
    await using _ = stack
    if (alice !== '') await deleteAll(installation.admin)
  })

  const as = async (...args: string[]): Promise<string> => (await kubectl(alice, ['-n', 'db', ...args])).stdout
  const move = async (): Promise<Object | undefined> =>
    (
      JSON.parse((await kubectl(installation.admin, ['get', 'volumemoves', '-o', 'json'])).stdout) as {
        items: Object[]
      }
    ).items.find(({ spec }) => spec['namespace'] === 'db' && spec['to'] === 'west')
  const workload = async (): Promise<Object> =>
    JSON.parse(await as('get', 'deployment', 'writer', '-o', 'json')) as Object
  const held = async (text: RegExp): Promise<string | undefined> => {
    const message = (await workload()).metadata.annotations?.['kcp.dev/held'] ?? ''
    return text.test(message) ? message : undefined
  }
  const until = <T>(what: string, attempt: () => Promise<T | undefined | false>): Promise<T> =>
    waitFor(async () => (await attempt()) || undefined, { what, deadlineMs: 100_000 })

  it('goes on with the copy of the time that the tenant has accepted, and the member that returns keeps its volume', async () => {
    const script =
      'cd /data; touch log; n=$(tail -n 1 log); [ -n "$n" ] || n=0; while true; do n=$((n+1)); echo $n >> log; sync -d log; sleep 0.05; done'
    const container = {
      ...{ name: 'main', image: shellImage, command: ['sh', '-c', script] },
      volumeMounts: [{ name: 'data', mountPath: '/data' }],
    }
    const objects = [
      {
        ...{ apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name: 'data' } },
        spec: {
          ...{ accessModes: ['ReadWriteOnce'], storageClassName: storageClasses.late },
          resources: { requests: { storage: '64Mi' } },
        },
      },
      {
        ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'writer' } },
        spec: {
          selector: { matchLabels: { app: 'writer' } },
          template: {
            metadata: { labels: { app: 'writer' } },
            spec: {
              ...{ terminationGracePeriodSeconds: 1, containers: [container] },
              volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }],
            },
          },
        },
      },
    ]
    const space = {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: 'db', annotations: { 'kcp.dev/clusters': 'east' } },
    }
    await kubectl(alice, ['apply', '-f', '-'], { input: space })
    await kubectl(alice, ['-n', 'db', 'apply', '-f', '-'], {
      input: { apiVersion: 'v1', kind: 'List', items: objects },
    })
    await until('a copy in west', async () => (((await move())?.status?.['rounds'] as number | undefined) ?? 0) >= 3)
    expect((await as('exec', 'deployment/writer', '--', 'wc', '-l', '/data/log')).trim()).to.not.equal('')

    way.cut()
    await kubectl(alice, ['annotate', '--overwrite', 'namespace', 'db', 'kcp.dev/clusters=west'])
    const told = await until('the tenant to be told of the copy', () =>
      held(/which does not answer: .* kcp fence east/),
    )
    expect(told).to.match(/member cluster "west" has a copy of \d{4}-.*Z; what was written later would be lost/)
    await runKcp(['fence', 'east', ...installation.flags])
    const command = await until('the command to accept the loss', () =>
      held(/kubectl annotate persistentvolumeclaims data/),
    )
    const consent = /kcp\.dev\/volume-consent=[\w@:.-]+/.exec(command)?.[0] ?? ''
    const asOf = consent.split('@')[1] ?? ''
    await as('annotate', 'pvc', 'data', consent)
    await until('the pod in west', async () => {
      const { items } = JSON.parse(await as('get', 'pods', '-l', 'app=writer', '-o', 'json')) as { items: Object[] }
      const isThere = items.some(
        ({ metadata, status }) =>
          metadata.annotations?.['kcp.dev/member'] === 'west' && status?.['phase'] === 'Running',
      )
      if (isThere) return true
      throw new Error(`${JSON.stringify((await workload()).metadata.annotations)} ${JSON.stringify(await move())}`)
    })
    const found = await move()
    expect(found?.status).to.include({ lostAfter: asOf })
    const { stdout } = await clusters.west.kubectl([
      '-n',
      `${id}-db`,
      'exec',
      'deployment/writer',
      '--',
      'cat',
      '/data/log',
    ])
    const lines = stdout.trimEnd().split('\n').slice(0, -1)
    expect(lines.length).to.be.greaterThan(10)
    expect(lines.findIndex((line, index) => Number(line) !== index + 1)).to.equal(-1)

    way.mend()
    const kept = await until('the returned member to keep the old claim', async () => {
      const args = ['-n', `${id}-db`, 'get', 'pvc', 'data', '-o', 'json']
      const claim = JSON.parse((await clusters.east.kubectl(args)).stdout) as Object
      return claim.metadata.annotations?.['kcp.dev/kept-until']
    })
    expect(Date.parse(kept)).to.be.greaterThan(Date.now() - 60_000)
    await runKcp(['fence', 'east', '--undo', ...installation.flags])
    await until('the old pods to end', async () => {
      const args = ['-n', `${id}-db`, 'get', 'pods', '-l', 'app=writer', '-o', 'name']
      return (await clusters.east.kubectl(args)).stdout === ''
    })
    await until('the old volume to be deleted after its time', async () => {
      const args = ['-n', `${id}-db`, 'get', 'pvc', '-o', 'name', '--ignore-not-found']
      return (await clusters.east.kubectl(args)).stdout === ''
    })
  })
})
