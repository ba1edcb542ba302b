// The life of a LogicalCluster on `kcp start`, with kubectl.
import { expect } from 'chai'
import { waitFor } from '#test/support/index.ts'
import { startInstance, type KcpInstance } from './kcp-instance.ts'

interface Seen {
  metadata: { finalizers?: string[] }
  status?: {
    id?: string
    url?: string
    conditions?: { type: string; status: string; reason: string; message: string }[]
  }
}

describe('a LogicalCluster', function () {
  this.timeout(60_000)
  let kcp: KcpInstance
  before(async () => {
    kcp = await startInstance()
  })
  after(async () => {
    await kcp[Symbol.asyncDispose]()
  })

  const manifest = (name: string): object => ({
    apiVersion: 'kcp.dev/v1alpha1',
    kind: 'LogicalCluster',
    metadata: { name },
  })
  async function seen(name: string): Promise<Seen | undefined> {
    const { stdout } = await kcp.admin.kubectl(['get', 'lc', name, '-o', 'json', '--ignore-not-found'])
    return stdout === '' ? undefined : (JSON.parse(stdout) as Seen)
  }
  const condition = (object: Seen | undefined, type: string) =>
    object?.status?.conditions?.find((candidate) => candidate.type === type)

  it('becomes Ready with id and address, and is empty with another id when its name is used again', async () => {
    const first = await kcp.tenant('twice')
    const before = await seen('twice')
    expect(before?.metadata.finalizers).to.include('kcp.dev/content')
    expect(before?.status?.url).to.match(/\/clusters\/twice$/)
    await first.kubectl(['create', 'configmap', 'left-behind'])
    await kcp.admin.kubectl(['delete', 'lc', 'twice', '--timeout=20s'])
    const second = await kcp.tenant('twice')
    const after = await seen('twice')
    expect(after?.status?.id).to.be.a('string').that.does.not.equal(before?.status?.id)
    const { stdout } = await second.kubectl(['get', 'configmaps', '-n', 'default', '-o', 'name'])
    expect(stdout).not.to.contain('left-behind')
  })

  /** As the installation, which alone writes finalizers of syncers. */
  const asSyncer = (name: string) => ['--server', `https://127.0.0.1:${kcp.port}/clusters/${name}`]
  const copied = (finalizer: string): object => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'copied', namespace: 'default', finalizers: [finalizer] },
  })

  it('is not kept by finalizers of members that do not exist', async () => {
    await kcp.tenant('haunted')
    await kcp.admin.kubectl(['create', '-f', '-'], {
      input: { apiVersion: 'kcp.dev/v1alpha1', kind: 'MemberCluster', metadata: { name: 'there' } },
    })
    await kcp.admin.kubectl([...asSyncer('haunted'), 'create', '-f', '-'], { input: copied('syncer.kcp.dev/ghost') })
    await kcp.admin.kubectl(['delete', 'lc', 'haunted', '--timeout=20s'])
    await kcp.admin.kubectl(['delete', 'mc', 'there', '--timeout=20s'])
  })

  it('is kept while members hold copies, and its status says what remains', async () => {
    const tenant = await kcp.tenant('held')
    await kcp.admin.kubectl(['create', '-f', '-'], {
      input: { apiVersion: 'kcp.dev/v1alpha1', kind: 'MemberCluster', metadata: { name: 'away' } },
    })
    await kcp.admin.kubectl([...asSyncer('held'), 'create', '-f', '-'], { input: copied('syncer.kcp.dev/away') })
    await kcp.admin.kubectl(['delete', 'lc', 'held', '--wait=false'])
    const told = async (): Promise<string | undefined> => condition(await seen('held'), 'ContentDeleted')?.message
    const message = await waitFor(told, { what: 'ContentDeleted to tell', deadlineMs: 20_000 })
    expect(message).to.equal('1 objects are left: 1 configmaps held by finalizer "syncer.kcp.dev/away"')
    expect(condition(await seen('held'), 'Ready')).to.include({ status: 'False', reason: 'Deleting' })
    const { stdout } = await tenant.kubectl([
      'get',
      'cm',
      'copied',
      '-n',
      'default',
      '-o',
      'jsonpath={.metadata.deletionTimestamp}',
    ])
    expect(stdout).not.to.equal('')
    // As the syncer does once the copy is gone.
    await kcp.admin.kubectl([
      ...asSyncer('held'),
      'patch',
      'cm',
      'copied',
      '-n',
      'default',
      '--type=merge',
      '-p',
      '{"metadata":{"finalizers":null}}',
    ])
    const gone = async (): Promise<boolean> => (await seen('held')) === undefined
    await waitFor(gone, { what: 'the logical cluster to go', deadlineMs: 20_000 })
    await kcp.admin.kubectl(['delete', 'mc', 'away', '--timeout=20s'])
  })

  it('is refused under a reserved name, with a condition that says so', async () => {
    const { stderr } = await kcp.admin.kubectl(['create', '-f', '-'], { input: manifest('root'), expectCode: 'any' })
    if (stderr.includes('reserved')) return
    const told = async () => condition(await seen('root'), 'Ready')
    const ready = await waitFor(told, { what: 'a condition', deadlineMs: 10_000 })
    expect(ready).to.include({ status: 'False', reason: 'NameNotAllowed' })
    await kcp.admin.kubectl(['delete', 'lc', 'root', '--timeout=20s'])
  })
})
