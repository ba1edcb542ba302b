// Applications that move with their volumes between two real members, while a tenant with stock kubectl looks on.
import { expect } from 'chai'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  itInLongRun,
  kubectl,
  needsNodes,
  runKcp,
  shellImage,
  storageClasses,
  waitFor,
  type Cluster,
} from '#test/support/index.ts'
import { deleteAll } from './delete-all.ts'
import { createLogicalCluster, idOf, installWithoutHost, type Installation } from './installation.ts'
import { importKcp, kcpImage } from './kcp-image.ts'
import { endLabAfterAll, lab, storageOfLab, type Lab } from './lab.ts'

interface Object {
  readonly metadata: {
    readonly name: string
    readonly uid: string
    readonly annotations?: Readonly<Record<string, string>>
  }
  readonly spec: Readonly<Record<string, unknown>>
  readonly status?: Readonly<Record<string, unknown>>
}

endLabAfterAll()

describe('applications that move with their volumes', function () {
  this.timeout(180_000)
  const stack = new AsyncDisposableStack()
  let clusters: Lab
  let installation: Installation
  let [alice, id] = ['', '']

  before(async function () {
    this.timeout(30 * 60_000) // a cold cache builds the programs of the storage first
    await needsNodes(this)
    clusters = await lab()
    const { east, west } = clusters
    await storageOfLab()
    for (const member of [east, west]) await importKcp(member)
    const folder = await mkdtemp(join(tmpdir(), 'kcp-snapshots-'))
    stack.defer(() => rm(folder, { recursive: true, force: true }))
    const flags = ['--gateway-image', kcpImage, '--volume-moves', '1', '--snapshot-directory', folder]
    installation = stack.use(await installWithoutHost(clusters, flags))
    for (const member of [east, west]) await installation.join(member)
    await kubectl(installation.admin, ['wait', '--for=condition=Ready', 'memberclusters', '--all', '--timeout=60s'])
    await createLogicalCluster(installation, 'acme', 'alice')
    id = await idOf(installation, 'acme')
    alice = await installation.tenant('acme', 'alice')
    const volumes = {
      default: 'Copy',
      retainSeconds: 5,
      classes: [{ storageClass: storageClasses.immediate, moves: 'Shared' }],
    }
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

  const as = async (space: string, ...args: string[]): Promise<string> =>
    (await kubectl(alice, ['-n', space, ...args])).stdout
  const get = async (space: string, kind: string, name: string): Promise<Object> =>
    JSON.parse(await as(space, 'get', kind, name, '-o', 'json')) as Object
  const apply = (space: string, input: object): Promise<unknown> =>
    kubectl(alice, ['-n', space, 'apply', '-f', '-'], { input })
  const begin = (space: string, cluster: string): Promise<unknown> =>
    kubectl(alice, ['apply', '-f', '-'], {
      input: {
        ...{ apiVersion: 'v1', kind: 'Namespace' },
        metadata: { name: space, annotations: { 'kcp.dev/clusters': cluster } },
      },
    })
  const move = (space: string, cluster: string): Promise<unknown> =>
    kubectl(alice, ['annotate', '--overwrite', 'namespace', space, `kcp.dev/clusters=${cluster}`])
  const moves = async (): Promise<Object[]> =>
    (
      JSON.parse((await kubectl(installation.admin, ['get', 'volumemoves', '-o', 'json'])).stdout) as {
        items: Object[]
      }
    ).items
  const claimsBelow = async (member: Cluster, space: string): Promise<string> =>
    (await member.kubectl(['get', 'pvc', '-n', `${id}-${space}`, '-o', 'name'])).stdout
  /** Resolves when the pod is ready in the member. */
  const runs = (space: string, pod: string, cluster: string, deadlineMs = 60_000): Promise<unknown> =>
    waitFor(
      async () => {
        const found = JSON.parse(await as(space, 'get', 'pods', '-l', `app=${pod}`, '-o', 'json')) as {
          items: Object[]
        }
        const [only] = found.items
        const ready = (only?.status?.['containerStatuses'] as { ready?: boolean }[] | undefined)?.[0]?.ready
        if (found.items.length === 1 && only?.metadata.annotations?.['kcp.dev/member'] === cluster && ready === true)
          return true
        throw new Error(
          `${JSON.stringify((await moves()).map(({ status }) => status))}\n${await as(space, 'get', 'all,pvc,events', '-o', 'wide')}`,
        )
      },
      {
        what: `the pod of "${pod}" to run in ${cluster}`,
        deadlineMs,
      },
    )
  /** Lines with numbers, each flushed; a pod that starts goes on with the next number, and says so in another file. */
  const script = [
    'cd /data; touch log; n=$(tail -n 1 log); [ -n "$n" ] || n=0',
    'echo "began at $n" >> starts',
    'while true; do n=$((n+1)); echo $n >> log; sync -d log; sleep 0.05; done',
  ].join('\n')
  const container = {
    ...{ name: 'main', image: shellImage, command: ['sh', '-c', script] },
    volumeMounts: [{ name: 'data', mountPath: '/data' }],
    readinessProbe: { exec: { command: ['sh', '-c', 'test -s /data/log'] }, periodSeconds: 1 },
  }
  const read = (space: string, workload: string, command: string): Promise<string> =>
    as(space, 'exec', workload, '--', 'sh', '-c', command)
  const isWhole = async (space: string, workload: string): Promise<void> => {
    const lines = (await read(space, workload, 'head -n -1 /data/log')).trimEnd().split('\n')
    expect(lines.length).to.be.greaterThan(10)
    const wrong = lines.findIndex((line, index) => Number(line) !== index + 1)
    expect(wrong, `the number in line ${wrong + 1} is ${lines[wrong]}`).to.equal(-1)
  }

  it('a StatefulSet goes on with its data, and the claim of its tenant is the same object', async () => {
    await begin('db', 'east')
    await apply('db', {
      ...{ apiVersion: 'apps/v1', kind: 'StatefulSet', metadata: { name: 'writer' } },
      spec: {
        ...{ serviceName: 'writer', replicas: 1, selector: { matchLabels: { app: 'writer' } } },
        persistentVolumeClaimRetentionPolicy: { whenDeleted: 'Delete' },
        template: {
          metadata: { labels: { app: 'writer' } },
          spec: { terminationGracePeriodSeconds: 1, containers: [container] },
        },
        volumeClaimTemplates: [
          {
            metadata: { name: 'data' },
            spec: {
              ...{ accessModes: ['ReadWriteOnce'], storageClassName: storageClasses.late },
              resources: { requests: { storage: '64Mi' } },
            },
          },
        ],
      },
    })
    await runs('db', 'writer', 'east')
    const before = await get('db', 'pvc', 'data-writer-0')
    await move('db', 'west')
    await runs('db', 'writer', 'west')
    const after = await get('db', 'pvc', 'data-writer-0')
    expect(after.metadata.uid).to.equal(before.metadata.uid)
    expect(after.metadata.annotations).to.include({ 'kcp.dev/volume-in': 'west' })
    expect(after.spec['volumeName']).to.be.a('string').and.not.equal(before.spec['volumeName'])
    expect(after.status?.['phase']).to.equal('Bound')
    await isWhole('db', 'writer-0')
    expect((await read('db', 'writer-0', 'cat /data/starts')).split('\n')).to.have.length(3)
    const [moved] = (await moves()).filter(({ spec }) => spec['claim'] === 'data-writer-0')
    if (moved !== undefined) expect(moved.status).to.include({ phase: 'Moved' }).and.have.property('digest')
    await waitFor(async () => !(await claimsBelow(clusters.east, 'db')).includes('data-writer-0'), {
      what: 'the old volume to be deleted after its time',
      deadlineMs: 60_000,
    })
    await waitFor(async () => (await moves()).length === 0, { what: 'the VolumeMove to be over', deadlineMs: 30_000 })
  })

  /** A Deployment with a claim that its tenant made. */
  const writerWithClaim = async (
    space: string,
    storageClassName: string,
    accessMode = 'ReadWriteOnce',
  ): Promise<void> => {
    await apply(space, {
      ...{ apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name: 'data' } },
      spec: { accessModes: [accessMode], storageClassName, resources: { requests: { storage: '64Mi' } } },
    })
    await apply(space, {
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
    })
    await runs(space, 'writer', 'east')
  }
  it('a snapshot of a logical cluster has its volumes, and another one begins with them', async () => {
    const { admin, flags } = installation
    const { east } = clusters
    const kept = async (): Promise<string> =>
      (await east.kubectl(['get', 'volumesnapshotcontents', '-l', 'kcp.dev/volume-snapshot', '-o', 'name'])).stdout
    await begin('saved', 'east')
    // One claim is made by the member, the other one by the tenant.
    const asked = {
      ...{ accessModes: ['ReadWriteOnce'], storageClassName: storageClasses.late },
      resources: { requests: { storage: '64Mi' } },
    }
    await apply('saved', { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name: 'notes' }, spec: asked })
    const mounts = [...container.volumeMounts, { name: 'notes', mountPath: '/notes' }]
    const template = {
      metadata: { labels: { app: 'writer' } },
      spec: {
        ...{ terminationGracePeriodSeconds: 1, containers: [{ ...container, volumeMounts: mounts }] },
        volumes: [{ name: 'notes', persistentVolumeClaim: { claimName: 'notes' } }],
      },
    }
    await apply('saved', {
      ...{ apiVersion: 'apps/v1', kind: 'StatefulSet', metadata: { name: 'writer' } },
      spec: {
        ...{ serviceName: 'writer', replicas: 1, selector: { matchLabels: { app: 'writer' } }, template },
        volumeClaimTemplates: [{ metadata: { name: 'data' }, spec: asked }],
      },
    })
    await runs('saved', 'writer', 'east')
    await read('saved', 'writer-0', 'echo remembered > /notes/text; sync')
    await apply('saved', {
      ...{ apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name: 'unused' } },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '64Mi' } } },
    })
    await kubectl(admin, ['apply', '-f', '-'], {
      input: {
        ...{ apiVersion: 'kcp.dev/v1alpha1', kind: 'SnapshotStore', metadata: { name: 'main' } },
        spec: { file: { path: 'main' } },
      },
    })
    const created = await runKcp([
      ...['snapshot', 'create', 'acme', '--store', 'main', '--volumes', '--name', 'monday', ...flags],
    ])
    expect(created.stdout).to.match(/saved\/unused: NotBound/)
    const { status } = JSON.parse((await kubectl(admin, ['get', 'lcs', 'monday', '-o', 'json'])).stdout) as Object
    const volumes = status?.['volumes'] as { claim: string; namespace: string; state: string; handle?: string }[]
    for (const name of ['data-writer-0', 'notes']) {
      const volume = volumes.find(({ claim, namespace }) => claim === name && namespace === 'saved')
      expect(volume, name)
        .to.include({ state: 'Included', member: 'east' })
        .and.have.property('handle')
        .that.is.a('string')
    }
    expect(await kept()).to.not.equal('')
    expect((await east.kubectl(['get', 'volumesnapshots', '-n', `${id}-saved`, '-o', 'name'])).stdout).to.equal('')

    // What is written later is not in the copy, and the copy does not need the first one.
    const atMost = Number((await read('saved', 'writer-0', 'tail -n 2 /data/log | head -n 1')).trim())
    await runKcp(['create', 'acme-2', '--snapshot', 'monday', ...flags])
    const bob = await installation.tenant('acme-2', 'bob')
    const inCopy = async (...args: string[]): Promise<string> => (await kubectl(bob, ['-n', 'saved', ...args])).stdout
    const starts = await waitFor(
      async () => {
        const args = ['exec', 'writer-0', '--', 'cat', '/data/starts']
        return await inCopy(...args).catch(async (error: unknown) => {
          throw new Error(`${String(error)}\n${await inCopy('get', 'all,pvc,events', '-o', 'wide')}`)
        })
      },
      { what: 'the copy to run on its volume', deadlineMs: 120_000 },
    )
    const [first, second, ...rest] = starts.trim().split('\n')
    expect([first, rest]).to.deep.equal(['began at 0', []])
    expect(Number(second?.replace('began at ', ''))).to.be.within(1, atMost)
    expect(await inCopy('exec', 'writer-0', '--', 'cat', '/notes/text')).to.equal('remembered\n')
    for (const name of ['data-writer-0', 'notes']) {
      const claim = JSON.parse(await inCopy('get', 'pvc', name, '-o', 'json')) as Object
      expect(claim.metadata.annotations).to.include({ 'kcp.dev/volume-in': 'east' })
      expect(claim.metadata.annotations).to.not.have.any.keys('kcp.dev/volume-source', 'kcp.dev/volume-lock')
    }
    await isWhole('saved', 'writer-0')
    await waitFor(async () => (await moves()).every(({ spec }) => spec['way'] !== 'Restore'), {
      what: 'the VolumeMove of the restored claim to be over',
      deadlineMs: 30_000,
    })

    await kubectl(admin, ['delete', 'lcs', 'monday', '--timeout=60s'])
    expect(await kept()).to.equal('')
    expect(await inCopy('exec', 'writer-0', '--', 'cat', '/data/starts')).to.equal(starts)
  })

  const setVolumes = (volumes: object): Promise<unknown> =>
    kubectl(installation.admin, [
      ...['patch', 'placement', 'volumes', '--type=merge', '-p', JSON.stringify({ spec: { volumes } })],
    ])
  const moveOf = async (space: string): Promise<Object | undefined> =>
    (await moves()).find(({ spec }) => spec['namespace'] === space)

  itInLongRun('a Deployment goes with the claim of its tenant when the tenant agrees, and back', async () => {
    await begin('files', 'east')
    await apply('files', {
      ...{ apiVersion: 'kcp.dev/v1alpha1', kind: 'Placement', metadata: { name: 'careful' } },
      spec: { volumes: { requireConsent: true } },
    })
    await writerWithClaim('files', storageClasses.late)
    await move('files', 'west')
    const waiting = await waitFor(
      async () => {
        const found = await moveOf('files')
        const conditions = found?.status?.['conditions'] as { type: string; reason: string; message: string }[]
        return conditions.find(({ reason }) => reason === 'ConsentRequired')
      },
      { what: 'the move to wait for consent', deadlineMs: 90_000 },
    )
    expect(waiting.message).to.match(/the application would be stopped for about \d+ s; to agree: kubectl annotate/)
    await isWhole('files', 'deployment/writer')
    await as('files', 'annotate', 'pvc', 'data', 'kcp.dev/volume-consent=west')
    await runs('files', 'writer', 'west')
    await isWhole('files', 'deployment/writer')
    await as('files', 'delete', 'placement', 'careful')
    await move('files', 'east')
    await runs('files', 'writer', 'east')
    await isWhole('files', 'deployment/writer')
    expect((await read('files', 'deployment/writer', 'cat /data/starts')).trim().split('\n')).to.have.length(3)
    const events = await as('files', 'get', 'events', '--field-selector', 'involvedObject.name=data', '-o', 'name')
    expect(events).to.not.equal('')
  })

  itInLongRun(
    'a StatefulSet with more claims than may be copied at a time moves, and its claims tell that they wait',
    async () => {
      await begin('queue', 'east')
      const claim = (name: string): object => ({
        metadata: { name },
        spec: {
          ...{ accessModes: ['ReadWriteOnce'], storageClassName: storageClasses.late },
          resources: { requests: { storage: '64Mi' } },
        },
      })
      const more = ['more', 'most']
      await apply('queue', {
        ...{ apiVersion: 'apps/v1', kind: 'StatefulSet', metadata: { name: 'writer' } },
        spec: {
          ...{ serviceName: 'writer', replicas: 1, selector: { matchLabels: { app: 'writer' } } },
          template: {
            metadata: { labels: { app: 'writer' } },
            spec: {
              terminationGracePeriodSeconds: 1,
              containers: [
                {
                  ...container,
                  volumeMounts: [...container.volumeMounts, ...more.map((name) => ({ name, mountPath: `/${name}` }))],
                },
              ],
            },
          },
          volumeClaimTemplates: ['data', ...more].map(claim),
        },
      })
      await runs('queue', 'writer', 'east')
      await move('queue', 'west')
      await runs('queue', 'writer', 'west', 120_000)
      await isWhole('queue', 'statefulset/writer')
      const waits = await as(
        'queue',
        'get',
        'events',
        '--field-selector',
        'reason=Queued',
        '-o',
        'jsonpath={.items[*].message}',
      )
      expect(waits).to.match(/waits for (one move|2 moves) before it, since 2\S+: one volume is copied at a time/)
    },
  )

  it('nothing is left of a move that is cancelled, and the application has not noticed', async () => {
    await begin('undone', 'east')
    await writerWithClaim('undone', storageClasses.late)
    await read('undone', 'deployment/writer', 'dd if=/dev/urandom of=/data/large bs=1M count=24 2>/dev/null')
    await setVolumes({ bandwidth: '256Ki' })
    try {
      await move('undone', 'west')
      await waitFor(async () => (await moveOf('undone'))?.status?.['phase'] === 'Copying', {
        what: 'the copy to begin',
        deadlineMs: 90_000,
      })
      const placed = async (): Promise<string> =>
        (await get('undone', 'deployment', 'writer')).metadata.annotations?.['kcp.dev/placed-on'] ?? ''
      await waitFor(async () => (await placed()).includes('VolumesCopied'), {
        what: 'the workload to tell what it waits for',
        deadlineMs: 30_000,
      })
      await move('undone', 'east')
      await waitFor(async () => (await moveOf('undone')) === undefined, {
        what: 'the move to be undone',
        deadlineMs: 60_000,
      })
    } finally {
      await setVolumes({ bandwidth: null })
    }
    for (const member of [clusters.east, clusters.west]) {
      const args = ['get', 'pods,secrets,pvc', '-A', '-l', 'kcp.dev/volume-move', '-o', 'name']
      expect((await member.kubectl(args)).stdout).to.equal('')
    }
    await runs('undone', 'writer', 'east')
    expect((await read('undone', 'deployment/writer', 'cat /data/starts')).trim().split('\n')).to.have.length(1)
    await isWhole('undone', 'deployment/writer')
  })

  itInLongRun('a claim that grows while its data are copied is bound to a volume of its new size', async () => {
    await begin('growing', 'east')
    await writerWithClaim('growing', storageClasses.late)
    await read('growing', 'deployment/writer', 'dd if=/dev/urandom of=/data/large bs=1M count=8 2>/dev/null')
    await setVolumes({ bandwidth: '256Ki' })
    try {
      await move('growing', 'west')
      await waitFor(async () => (await moveOf('growing'))?.status?.['phase'] === 'Copying', {
        what: 'the copy to begin',
        deadlineMs: 90_000,
      })
      const larger = JSON.stringify({ spec: { resources: { requests: { storage: '128Mi' } } } })
      await as('growing', 'patch', 'pvc', 'data', '--type=merge', '-p', larger)
    } finally {
      await setVolumes({ bandwidth: null })
    }
    await runs('growing', 'writer', 'west', 150_000)
    await isWhole('growing', 'deployment/writer')
    const { status } = await get('growing', 'pvc', 'data')
    expect(status?.['capacity']).to.deep.equal({ storage: '128Mi' })
  })

  itInLongRun('a volume of a storage that both members have goes without a copy', async () => {
    await begin('common', 'east')
    await writerWithClaim('common', storageClasses.immediate, 'ReadWriteMany')
    await move('common', 'west')
    await runs('common', 'writer', 'west')
    await isWhole('common', 'deployment/writer')
    await waitFor(async () => (await moveOf('common')) === undefined, {
      what: 'the old member to forget the volume',
      deadlineMs: 60_000,
    })
    await isWhole('common', 'deployment/writer')
    await as('common', 'delete', 'deployment/writer', 'pvc/data')
    await waitFor(
      async () => {
        const jsonpath = 'jsonpath={.items[*].spec.claimRef.namespace}'
        return !(await clusters.west.kubectl(['get', 'pv', '-o', jsonpath])).stdout.includes(`${id}-common`)
      },
      { what: 'the new member to delete the volume with its claim', deadlineMs: 60_000 },
    )
  })

  itInLongRun('a volume is made from a snapshot of the old one where both members have the storage', async () => {
    await begin('photo', 'east')
    await writerWithClaim('photo', storageClasses.late)
    await setVolumes({ default: 'Snapshot' })
    try {
      await move('photo', 'west')
      await runs('photo', 'writer', 'west')
    } finally {
      await setVolumes({ default: 'Copy' })
    }
    await isWhole('photo', 'deployment/writer')
    for (const member of [clusters.east, clusters.west]) {
      const args = ['get', 'volumesnapshots', '-A', '-l', 'kcp.dev/volume-move', '-o', 'name']
      expect((await member.kubectl(args)).stdout).to.equal('')
    }
  })
})
