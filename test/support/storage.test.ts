import { expect } from 'chai'
import { startCluster, type Cluster } from './cluster.ts'
import { describeInLongRun } from './long-run.ts'
import { needsLoopDevices, needsNodes } from './needs.ts'
import { acquireRun } from './run.ts'
import { leftovers } from './leftovers.ts'
import { importShell } from './shell-image.ts'
import { csiDriver, localPathClass, snapshotClass, startLocalPath, startStorage, storageClasses } from './storage.ts'
import { claim, runInPod, snapshot } from './storage-objects.ts'
import { waitFor } from './wait-for.ts'

describeInLongRun('storage of test clusters', function () {
  this.timeout(120_000)
  let cluster: Cluster
  const stack = new AsyncDisposableStack()

  before(async function () {
    await needsNodes(this)
    await needsLoopDevices(this)
    this.timeout(30 * 60_000) // a cold cache builds the programs first
    cluster = stack.use(await startCluster({ name: 'east', nodes: 1 }))
    await Promise.all([importShell(cluster), startStorage(cluster, { limit: 4 * 2 ** 30 }), startLocalPath(cluster)])
  })
  after(async function () {
    this.timeout(60_000)
    await stack.disposeAsync()
  })

  const apply = (...items: object[]): Promise<unknown> =>
    cluster.kubectl(['apply', '-f', '-'], { input: { apiVersion: 'v1', kind: 'List', items } })
  const read = async (...args: string[]): Promise<string> => (await cluster.kubectl(['get', ...args])).stdout

  it('binds a claim when a pod needs it, attaches the volume, and keeps what was written', async () => {
    await apply(claim('files', { class: storageClasses.late }))
    expect(await read('pvc', 'files', '-o', 'jsonpath={.status.phase}')).to.equal('Pending')
    await runInPod(cluster, { claims: ['files'], script: 'echo kept > /files/x; ln /files/x /files/y' })
    const volume = await read('pvc', 'files', '-o', 'jsonpath={.spec.volumeName}')
    expect(await read('pv', volume, '-o', 'jsonpath={.spec.csi.driver} {.spec.nodeAffinity.required}')).to.match(
      new RegExp(`^${csiDriver} .*east-node`),
    )
    expect(await runInPod(cluster, { claims: ['files'], script: 'cat /files/y; stat -c %h /files/x' })).to.equal(
      'kept\n2\n',
    )
    await waitFor(async () => (await read('volumeattachments', '-o', 'name')) === '', {
      what: 'the volume to be detached once no pod uses it',
      deadlineMs: 30_000,
    })
  })

  it('makes a volume at once, expands it, and restores a snapshot of it', async () => {
    await apply(claim('now', { class: storageClasses.immediate, storage: '64Mi' }))
    await cluster.kubectl(['wait', '--for=jsonpath={.status.phase}=Bound', 'pvc/now', '--timeout=30s'])
    await runInPod(cluster, { claims: ['now'], script: 'echo first > /now/x' })
    await apply(snapshot('first', 'now'))
    await cluster.kubectl(['wait', '--for=jsonpath={.status.readyToUse}=true', 'volumesnapshot/first', '--timeout=30s'])
    await runInPod(cluster, { claims: ['now'], script: 'echo second > /now/x' })
    await apply(claim('before', { class: storageClasses.immediate, storage: '64Mi', snapshot: 'first' }))
    expect(await runInPod(cluster, { claims: ['before', 'now'], script: 'cat /before/x /now/x' })).to.equal(
      'first\nsecond\n',
    )
    await cluster.kubectl(['patch', 'pvc', 'now', '-p', '{"spec":{"resources":{"requests":{"storage":"128Mi"}}}}'])
    await cluster.kubectl(['wait', '--for=jsonpath={.status.capacity.storage}=128Mi', 'pvc/now', '--timeout=60s'])
    expect(await read('volumesnapshotclass', '-o', 'jsonpath={.items[*].metadata.name}')).to.equal(snapshotClass)
  })

  it('has volumes that become full, and block volumes', async () => {
    await apply(
      claim('small', { class: storageClasses.limited, storage: '16Mi' }),
      claim('raw', { class: storageClasses.late, storage: '8Mi', block: true, accessMode: 'ReadWriteOncePod' }),
    )
    const full = await runInPod(cluster, {
      claims: ['small'],
      script: 'dd if=/dev/zero of=/small/x bs=1M count=64 2>&1 | grep -o "No space.*"',
    })
    expect(full).to.equal('No space left on device\n')
    await runInPod(cluster, { devices: ['raw'], script: 'printf block | dd of=/dev/raw bs=1 seek=4096 conv=fsync' })
    const script = 'dd if=/dev/raw bs=1 skip=4096 count=5 2>/dev/null; dd if=/dev/raw bs=1M 2>/dev/null | wc -c'
    expect(await runInPod(cluster, { devices: ['raw'], script })).to.equal(`block${8 << 20}\n`)
  })

  it('has volumes of a node, from a provisioner without CSI', async () => {
    await apply(claim('local', { class: localPathClass }))
    await runInPod(cluster, { claims: ['local'], script: 'echo kept > /local/x' })
    expect(await runInPod(cluster, { claims: ['local'], script: 'cat /local/x' })).to.equal('kept\n')
  })

  it('leaves nothing behind, though pods use volumes of each kind when the cluster ends', async () => {
    const { run, release } = await acquireRun()
    try {
      await apply(
        claim('ends-folder', { class: storageClasses.late }),
        claim('ends-image', { class: storageClasses.limited }),
        claim('ends-block', { class: storageClasses.late, block: true }),
        claim('ends-local', { class: localPathClass }),
      )
      const claims = ['ends-folder', 'ends-image', 'ends-local']
      await runInPod(cluster, { claims, devices: ['ends-block'], script: 'sleep 600', wait: false })
      await cluster.stop()
      const left = leftovers(run.id).filter((name) => /^(mount|loop device|process) /.test(name))
      expect(left).to.deep.equal([])
    } finally {
      await release()
    }
  })
})
