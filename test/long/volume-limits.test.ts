// Volumes that move while the network is cut, and to or from storage that has no room: each move goes on by itself or says
// why it cannot, the application runs on meanwhile, and no write is lost.
import { expect } from 'chai'
import { setTimeout as sleep } from 'node:timers/promises'
import { needsLoopDevices, needsNodes, shellImage, storageClasses, waitFor, type Cluster } from '#test/support/index.ts'
import { deleteAll } from '#test/e2e/delete-all.ts'
import { endLabAfterAll } from '#test/e2e/lab.ts'
import { Writers, writer } from './stateful/writers.ts'

const volumes = { default: 'Copy', retainSeconds: 5 }

endLabAfterAll()

describe('volumes that move where something is missing', function () {
  this.timeout(900_000)
  const stack = new AsyncDisposableStack()
  let writers: Writers

  before(async function () {
    this.timeout(30 * 60_000)
    await needsNodes(this)
    await needsLoopDevices(this)
    writers = stack.use(await Writers.make(volumes))
    stack.defer(() => deleteAll(writers.installation.admin))
    await writers.tenant('acme')
  })
  after(async function () {
    this.timeout(180_000)
    await stack.disposeAsync()
  })
  afterEach(async () => {
    for (const way of Object.values(writers.ways)) way.mend()
    await writers.setVolumes(volumes)
  })

  const begin = async (space: string, storageClass?: string): Promise<string> => {
    const place = `acme/${space}`
    await writers.begin(place, 'east')
    await writers.apply(place, [writer('w', { ...(storageClass && { storageClass }) })])
    await writers.runs(place, 'w', 'east')
    return place
  }
  const fill = (place: string, mebibytes: number): Promise<string> =>
    writers.as(
      ...([place, 'exec', 'statefulset/w', '--'] as const),
      ...['sh', '-c', `dd if=/dev/urandom of=/data/large bs=1M count=${mebibytes} 2>/dev/null; sync`],
    )
  const move = (place: string): Promise<string> =>
    writers.as(place, 'annotate', '--overwrite', 'statefulset/w', 'kcp.dev/clusters=west')
  const arrives = async (place: string): Promise<void> => {
    await writers.runs(place, 'w', 'west', 300_000)
    expect(await writers.check(place, 'statefulset/w')).to.equal(2)
  }
  const untilPhase = (space: string, phase: string): Promise<unknown> =>
    waitFor(async () => (await writers.moves(space)).some(({ status }) => status?.phase === phase), {
      ...{ what: `the move in "${space}" to be ${phase}`, deadlineMs: 180_000, intervalMs: 100 },
    })

  for (const member of ['east', 'west'])
    for (const phase of ['Copying', 'Finishing', 'Binding'])
      it(`goes on after the network of ${member} was cut for 30 s in phase ${phase}`, async () => {
        const space = `cut-${member}-${phase.toLowerCase()}`
        const place = await begin(space)
        await fill(place, 48)
        await writers.setVolumes({ ...volumes, bandwidth: '4Mi' })
        await move(place)
        await untilPhase(space, phase)
        writers.ways[member]?.cut()
        await sleep(30_000)
        writers.ways[member]?.mend()
        await writers.setVolumes(volumes)
        await arrives(place)
      })

  it('says that the new volume is full, while the application runs on, and goes on once there is less', async () => {
    const place = await begin('full')
    await fill(place, 100)
    const classes = [{ storageClass: storageClasses.late, moves: 'Copy', target: storageClasses.limited }]
    await writers.setVolumes({ ...volumes, classes })
    await move(place)
    const { message } = await writers.obstacle('full', /NoSpace|Full/)
    process.stdout.write(`      ${message}\n`)
    expect(await writers.check(place, 'statefulset/w'), 'starts').to.equal(1)
    await writers.as(place, 'exec', 'statefulset/w', '--', 'rm', '/data/large')
    await arrives(place)
  })

  it('moves a volume that is full', async () => {
    const place = await begin('source', storageClasses.limited)
    await writers.as(
      ...([place, 'exec', 'statefulset/w', '--'] as const),
      ...[
        'sh',
        '-c',
        'dd if=/dev/urandom of=/data/large bs=64k 2>/dev/null; rm /data/large; dd if=/dev/urandom of=/data/large bs=1M count=40 2>/dev/null; true',
      ],
    )
    await move(place)
    await arrives(place)
  })

  const quota = (namespace: string): object => ({
    ...{ apiVersion: 'v1', kind: 'ResourceQuota', metadata: { name: 'none', namespace } },
    spec: { hard: { persistentvolumeclaims: '0' } },
  })
  const withQuota = async (west: Cluster, namespace: string): Promise<() => Promise<unknown>> => {
    await west.kubectl(['apply', '-f', '-'], { input: quota(namespace) })
    await sleep(2000) // the quota counts once its controller has seen it
    return () => west.kubectl(['delete', 'resourcequota', 'none', '-n', namespace])
  }

  it('says that a quota refuses the new volume, while the application runs on, and goes on without the quota', async () => {
    const place = await begin('quota')
    const lift = await withQuota(writers.lab.west, 'kcp-system')
    try {
      await move(place)
      const { message } = await writers.obstacle('quota', /Forbidden|Quota/)
      expect(message).to.include('exceeded quota')
      expect(await writers.check(place, 'statefulset/w'), 'starts').to.equal(1)
    } finally {
      await lift()
    }
    await arrives(place)
  })

  /** Begins a move whose claim the new namespace refuses, in phase Binding. Resolves with the way to allow it. */
  const refusedThere = async (
    space: string,
  ): Promise<{ place: string; namespace: string; lift: () => Promise<unknown> }> => {
    const place = await begin(space)
    const namespace = await writers.namespaceBelow('acme', space)
    const { west } = writers.lab
    // With it, the namespace is in west, too.
    await writers.apply(place, [
      {
        ...{ apiVersion: 'apps/v1', kind: 'Deployment' },
        metadata: { name: 'other', annotations: { 'kcp.dev/clusters': 'west' } },
        spec: {
          ...{ replicas: 0, selector: { matchLabels: { app: 'other' } } },
          template: {
            metadata: { labels: { app: 'other' } },
            spec: { containers: [{ name: 'main', image: shellImage, command: ['sleep', '1000'] }] },
          },
        },
      },
    ])
    await waitFor(
      async () => (await west.kubectl(['get', 'namespace', namespace, '--ignore-not-found', '-o', 'name'])).stdout,
      {
        ...{ what: 'the namespace to be in west', deadlineMs: 60_000 },
      },
    )
    const lift = await withQuota(west, namespace)
    await move(place)
    await untilPhase(space, 'Binding')
    return { place, namespace, lift }
  }

  it('says that a quota refuses the claim in its new namespace, and goes on without the quota', async () => {
    const { place, lift } = await refusedThere('quota-there')
    try {
      await waitFor(
        async () =>
          (await writers.as(place, 'get', 'events', '-o', 'jsonpath={.items[*].message}')).includes('exceeded quota'),
        { what: 'the tenant to be told of the quota', deadlineMs: 60_000 },
      )
    } finally {
      await lift()
    }
    await arrives(place)
  })

  it('leaves no volume of a claim that its tenant deletes in phase Binding', async () => {
    const { place, namespace, lift } = await refusedThere('deleted')
    await writers.as(place, 'delete', 'statefulset/w', 'pvc/data-w-0', '--wait=false')
    await waitFor(async () => (await writers.moves('deleted')).length === 0, {
      ...{ what: 'the move to end', deadlineMs: 120_000 },
    })
    await lift()
    const { east, west } = writers.lab
    for (const member of [east, west])
      await waitFor(
        async () => {
          const { stdout } = await member.kubectl(['get', 'pv', '-o', 'json'])
          const { items } = JSON.parse(stdout) as { items: { spec: { claimRef?: { namespace?: string } } }[] }
          const left = items.filter(({ spec }) => spec.claimRef?.namespace === namespace)
          if (left.length === 0) return true
          throw new Error(JSON.stringify(left))
        },
        { what: `the volumes of the claim to be deleted in "${member.name}"`, deadlineMs: 120_000 },
      )
  })
})
