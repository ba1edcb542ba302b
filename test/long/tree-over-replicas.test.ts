// A tree of logical clusters over two replicas before a real host: parents and children have different owners, and the
// host itself checks nothing when a LogicalCluster is written there.
import { expect } from 'chai'
import type { LogicalCluster } from '#crds/index.ts'
import { startReplicas, type ReplicaSet, type RunningReplica } from '#test/integration/replicas.ts'
import { kubectl, waitFor } from '#test/support/index.ts'

const within = { deadlineMs: 60_000, intervalMs: 200 }

describe('a tree of logical clusters over replicas', function () {
  this.timeout(300_000)
  let set: ReplicaSet
  let parent: string
  let child: string
  before(async () => {
    set = await startReplicas(2, { name: 'tree' })
    // Of five names, two have different owners, or all are with one replica by chance.
    const owners = new Map<RunningReplica, string>()
    for (const name of ['n-a', 'n-b', 'n-c', 'n-d', 'n-e']) {
      await set.create(name)
      await waitFor(async () => (await set.ownerOf(name).catch(() => undefined)) !== undefined, {
        what: `an owner of ${name}`,
        ...within,
      })
      owners.set(await set.ownerOf(name), name)
    }
    const [first = 'n-a', second = 'n-b'] = owners.values()
    ;[parent, child] = [first, second]
    await host('patch', 'lc', child, '--type=merge', '-p', JSON.stringify({ spec: { parentRef: { name: parent } } }))
  })
  after(() => set[Symbol.asyncDispose]())

  const host = async (...args: string[]): Promise<string> =>
    (await kubectl(set.host.kubeconfig, args, { expectCode: 'any' })).stdout
  /** kubectl with the admin of `who`, in `place`, through a replica. */
  const as = async (who: string, place: string, args: string[], input?: object) => {
    const [through] = set.replicas
    if (through === undefined) throw new Error('no replica runs')
    const kubeconfig = await set.kubeconfig(who, through)
    return kubectl(kubeconfig, ['--server', `${through.url}/clusters/${place}`, ...args], {
      expectCode: 'any',
      ...(input && { input }),
    })
  }

  it('lets an inherited role hold in a child of another replica, and ends it there', async () => {
    const allowed = async (): Promise<boolean> => (await as(parent, child, ['get', 'configmaps'])).code === 0
    await waitFor(async () => (await as(parent, child, ['auth', 'whoami'])).stdout.includes(`cluster:${parent}:`), {
      what: 'the child knows its parent',
      ...within,
    })
    expect(await allowed()).to.equal(false)
    const binding = ['clusterrolebinding', 'below']
    await as(parent, parent, ['create', ...binding, '--clusterrole=view', '--group=system:masters'])
    await as(parent, parent, ['label', ...binding, 'kcp.dev/inherit=true'])
    await waitFor(allowed, { what: 'the role below', ...within })
    await as(parent, parent, ['delete', ...binding])
    await waitFor(async () => !(await allowed()), { what: 'the end of the role below', ...within })
  })

  it('lets tenants create children, which the server writes in the host', async () => {
    await host('patch', 'lc', parent, '--type=merge', '-p', '{"spec":{"limits":{"children":3}}}')
    const made = { apiVersion: 'kcp.dev/v1alpha1', kind: 'LogicalCluster', metadata: { name: 'own' } }
    await waitFor(async () => (await as(parent, parent, ['apply', '-f', '-'], made)).code === 0, {
      what: 'a child by its tenant',
      ...within,
    })
    const ready = await as(parent, parent, ['wait', '--for=condition=Ready', 'lc/own', '--timeout=60s'])
    expect(ready.code, ready.stderr).to.equal(0)
    expect((await as(parent, parent, ['delete', 'lc', 'own', '--timeout=60s'])).code).to.equal(0)
  })

  it('bounds a subtree whose logical clusters have different owners', async () => {
    await host('patch', 'lc', parent, '--type=merge', '-p', '{"spec":{"limits":{"objects":8}}}')
    let made = 0
    await waitFor(
      async () => {
        const place = made % 2 === 0 ? parent : child
        const { code, stderr } = await as(place, place, ['create', 'configmap', `c-${String(made)}`])
        if (code !== 0) expect(stderr).to.contain('exceeded quota: objects of logical cluster')
        else made++
        return code !== 0
      },
      { what: 'the limit', deadlineMs: 60_000, intervalMs: 600 },
    )
    expect(made).to.be.within(1, 8)
    await host('patch', 'lc', parent, '--type=merge', '-p', '{"spec":{"limits":{"objects":null}}}')
  })

  it('takes no writes while parents form a cycle in the host, and says so in a condition', async () => {
    await host('patch', 'lc', parent, '--type=merge', '-p', JSON.stringify({ spec: { parentRef: { name: child } } }))
    await waitFor(
      async () => {
        const { status } = JSON.parse(await host('get', 'lc', child, '-o', 'json')) as LogicalCluster
        return status?.conditions?.find(({ type }) => type === 'ParentValid')?.reason === 'ParentsInvalid'
      },
      { what: 'condition ParentValid False', ...within },
    )
    const refused = await as(child, child, ['create', 'configmap', 'x'])
    expect(refused.stderr).to.contain('takes no writes: its parents form a cycle')
    await host('patch', 'lc', parent, '--type=merge', '-p', '{"spec":{"parentRef":null}}')
    await waitFor(async () => (await as(child, child, ['create', 'configmap', 'x'])).code === 0, {
      what: 'writes again',
      ...within,
    })
  })

  it('keeps a deleted parent until its children are gone', async () => {
    await host('delete', 'lc', parent, '--wait=false')
    await waitFor(async () => (await host('get', 'lc', parent, '-o', 'json')).includes('ChildrenRemain'), {
      what: 'the reason ChildrenRemain',
      ...within,
    })
    await host('delete', 'lc', child, '--timeout=60s')
    await waitFor(async () => (await host('get', 'lc', parent, '--ignore-not-found', '-o', 'name')) === '', {
      what: 'the end of the parent',
      ...within,
    })
  })
})
