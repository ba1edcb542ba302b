// Two clusters that share a storage backend, with stock kubectl objects: what moves of way Snapshot and Shared rest on.
import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import {
  acquireRun,
  claim,
  csiDriver,
  ensurePrograms,
  importShell,
  needsLoopDevices,
  needsNodes,
  runCommand,
  runInPod,
  sharedBackend,
  snapshot,
  snapshotClass,
  startCluster,
  startProcess,
  startStorage,
  storageClasses,
  type Cluster,
} from '#test/support/index.ts'

describe('storage that two clusters share', function () {
  this.timeout(180_000)
  const stack = new AsyncDisposableStack()
  let east: Cluster
  let west: Cluster

  before(async function () {
    await needsNodes(this)
    await needsLoopDevices(this)
    this.timeout(30 * 60_000) // a cold cache builds the programs first
    const { run, release } = await acquireRun()
    stack.defer(release)
    const backend = sharedBackend(run)
    const boot = async (name: string): Promise<Cluster> => {
      const cluster = stack.use(await startCluster({ name, nodes: 1, run }))
      await Promise.all([importShell(cluster), startStorage(cluster, { backend })])
      return cluster
    }
    ;[east, west] = await Promise.all([boot('east'), boot('west')])
  })
  after(async function () {
    this.timeout(120_000)
    await stack.disposeAsync()
  })

  const apply = (cluster: Cluster, ...items: object[]): Promise<unknown> =>
    cluster.kubectl(['apply', '-f', '-'], { input: { apiVersion: 'v1', kind: 'List', items } })
  const read = async (cluster: Cluster, ...args: string[]): Promise<string> =>
    (await cluster.kubectl(['get', ...args])).stdout
  const bound = (cluster: Cluster, name: string): Promise<unknown> =>
    cluster.kubectl(['wait', '--for=jsonpath={.status.phase}=Bound', `pvc/${name}`, '--timeout=30s'])
  const handleOf = async (cluster: Cluster, name: string): Promise<string> => {
    const volume = await read(cluster, 'pvc', name, '-o', 'jsonpath={.spec.volumeName}')
    return await read(cluster, 'pv', volume, '-o', 'jsonpath={.spec.csi.volumeHandle}')
  }
  /** A volume that exists in the backend, for a claim of the cluster. */
  const known = (name: string, volumeHandle: string, accessMode: string): object => ({
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name },
    spec: {
      capacity: { storage: '64Mi' },
      accessModes: [accessMode],
      storageClassName: storageClasses.immediate,
      persistentVolumeReclaimPolicy: 'Retain',
      claimRef: { namespace: 'default', name },
      csi: { driver: csiDriver, volumeHandle, volumeAttributes: { kind: 'folder' } },
    },
  })

  it('pods of both write to one volume at the same time', async () => {
    await apply(east, claim('both', { class: storageClasses.immediate, accessMode: 'ReadWriteMany' }))
    await bound(east, 'both')
    const handle = await handleOf(east, 'both')
    await apply(west, known('both', handle, 'ReadWriteMany'))
    await apply(west, claim('both', { class: storageClasses.immediate, accessMode: 'ReadWriteMany', volume: 'both' }))
    const script = (own: string, other: string): string =>
      `echo ${own} > /both/${own}; for i in $(seq 400); do [ -s /both/${other} ] && break; sleep 0.1; done; cat /both/${other}`
    const [seenInEast, seenInWest] = await Promise.all([
      runInPod(east, { claims: ['both'], script: script('east', 'west') }),
      runInPod(west, { claims: ['both'], script: script('west', 'east') }),
    ])
    expect([seenInEast, seenInWest]).to.deep.equal(['west\n', 'east\n'])
  })

  it('a volume for one node is not attached in the one while the other has it', async () => {
    await apply(east, claim('single', { class: storageClasses.immediate }))
    await bound(east, 'single')
    await runInPod(east, { claims: ['single'], script: 'sleep 600', wait: false })
    await apply(west, known('single', await handleOf(east, 'single'), 'ReadWriteOnce'))
    await apply(west, claim('single', { class: storageClasses.immediate, volume: 'single' }))
    const waiting = runInPod(west, { claims: ['single'], script: 'echo attached' })
    waiting.catch(() => undefined)
    const error = ['volumeattachments', '-o', 'jsonpath={.items[*].status.attachError.message}']
    for (let tries = 0; tries < 60 && !(await read(west, ...error)).includes('east-node'); tries++)
      await new Promise((resolve) => setTimeout(resolve, 500))
    expect(await read(west, ...error)).to.contain('is attached to node east-node')
    await east.kubectl(['delete', 'pods', '--all', '--wait=true'])
    expect(await waiting).to.equal('attached\n')
  })

  it('a snapshot of the one is restored in the other, by its handle', async () => {
    await apply(east, claim('source', { class: storageClasses.late }))
    await runInPod(east, { claims: ['source'], script: 'echo kept > /source/x; mkfifo /source/pipe' })
    await apply(east, snapshot('taken', 'source'))
    await east.kubectl(['wait', '--for=jsonpath={.status.readyToUse}=true', 'volumesnapshot/taken', '--timeout=30s'])
    const content = await read(
      east,
      'volumesnapshot',
      'taken',
      '-o',
      'jsonpath={.status.boundVolumeSnapshotContentName}',
    )
    const handle = await read(east, 'volumesnapshotcontent', content, '-o', 'jsonpath={.status.snapshotHandle}')
    const named = { apiVersion: 'snapshot.storage.k8s.io/v1', metadata: { name: 'taken' } }
    await apply(
      west,
      {
        ...named,
        kind: 'VolumeSnapshotContent',
        spec: {
          driver: csiDriver,
          deletionPolicy: 'Retain',
          volumeSnapshotClassName: snapshotClass,
          source: { snapshotHandle: handle },
          volumeSnapshotRef: { namespace: 'default', name: 'taken' },
        },
      },
      {
        ...named,
        kind: 'VolumeSnapshot',
        spec: { volumeSnapshotClassName: snapshotClass, source: { volumeSnapshotContentName: 'taken' } },
      },
      claim('restored', { class: storageClasses.late, snapshot: 'taken' }),
    )
    const script = 'cat /restored/x; stat -c %F /restored/pipe'
    expect(await runInPod(west, { claims: ['restored'], script })).to.equal('kept\nfifo\n')
  })

  it('claims of a group are taken at one moment', async () => {
    for (const name of ['one', 'two']) {
      const labelled = claim(name, { class: storageClasses.immediate }) as { metadata: object }
      await apply(east, { ...labelled, metadata: { ...labelled.metadata, labels: { group: 'g' } } })
      await bound(east, name)
    }
    await runInPod(east, { claims: ['one', 'two'], script: 'echo 1 > /one/x; echo 2 > /two/x' })
    await apply(east, {
      apiVersion: 'groupsnapshot.storage.k8s.io/v1',
      kind: 'VolumeGroupSnapshot',
      metadata: { name: 'g' },
      spec: { volumeGroupSnapshotClassName: snapshotClass, source: { selector: { matchLabels: { group: 'g' } } } },
    })
    await east.kubectl(['wait', '--for=jsonpath={.status.readyToUse}=true', 'volumegroupsnapshot/g', '--timeout=60s'])
    const members = await read(east, 'volumesnapshots', '-o', 'jsonpath={.items[*].status.volumeGroupSnapshotName}')
    expect(members.split(' ').filter((name) => name === 'g')).to.have.length(2)
  })
})

describe('the CSI driver of the tests', function () {
  it('keeps to the specification of CSI', async function () {
    await needsNodes(this)
    await needsLoopDevices(this)
    this.timeout(30 * 60_000)
    const programs = await ensurePrograms(['csi-driver', 'csi-sanity'])
    const { run, release } = await acquireRun()
    const dir = await mkdtemp(join('/tmp', 'kcp-csi-'))
    const entry = { type: 'directory', path: dir, scope: 'csi' } as const
    run.add(entry)
    try {
      const endpoint = join(dir, 'csi.sock')
      const args = ['--node', 'here', '--endpoint', endpoint, '--dir', join(dir, 'volumes')]
      await using _ = await startProcess({ name: 'csi-driver', command: programs['csi-driver'], args }, { run })
      const paths = ['--csi.mountdir', join(dir, 'mounts'), '--csi.stagingdir', join(dir, 'staging')]
      const { stdout } = await runCommand(programs['csi-sanity'], [
        '--ginkgo.no-color',
        '--csi.endpoint',
        endpoint,
        ...paths,
      ])
      expect(stdout).to.match(/SUCCESS! -- \d\d Passed \| 0 Failed/)
    } finally {
      await run.undo('csi')
      await rm(dir, { recursive: true, force: true })
      await release()
    }
  })
})
