// A tree of logical clusters in the whole program: Placements and labels of a parent bound workloads below, and conditions
// tell the story.
import { expect } from 'chai'
import { startInstance, type KcpInstance, type Tenant } from '#test/integration/kcp-instance.ts'
import { startKcp, waitFor, type ManagedProcess } from '#test/support/index.ts'

const within = { deadlineMs: 60_000, intervalMs: 200 }

describe('a tree of teams with members', function () {
  this.timeout(300_000)
  let kcp: KcpInstance
  let parent: Tenant
  let child: Tenant
  const members: ManagedProcess[] = []

  before(async () => {
    kcp = await startInstance()
    for (const [name, region] of [
      ['paris', 'eu'],
      ['tokyo', 'ap'],
    ] as const)
      members.push(
        await startKcp(['member', 'simulate', name, '--region', region, '--root-dir', kcp.rootDir], {
          name,
          ready: async () => (await admin('get', 'mc', name, '-o', 'jsonpath={.status.conditions}')).includes('Ready'),
        }),
      )
    parent = await kcp.tenant('parent')
    child = await kcp.tenant('child')
    await admin('patch', 'lc', 'child', '--type=merge', '-p', '{"spec":{"parentRef":{"name":"parent"}}}')
  })
  after(async () => {
    for (const member of members) await member.stop()
    await kcp[Symbol.asyncDispose]()
  })
  const admin = async (...args: string[]): Promise<string> =>
    (await kcp.admin.kubectl(args, { expectCode: 'any' })).stdout
  const placedOn = async (name: string): Promise<string> => {
    const path = 'jsonpath={.metadata.annotations.kcp\\.dev/placed-on}'
    return (await child.kubectl(['get', 'deployment', name, '-o', path])).stdout
  }
  const untilPlaced = (name: string, member: string) =>
    waitFor(async () => (await placedOn(name)).startsWith(`{"${member}":`), { what: `${name} in ${member}`, ...within })

  it('places workloads below as a marked Placement of the parent says, and moves them when admins label the parent', async () => {
    const placement = (name: string, more: object, clusters: string[]) => ({
      apiVersion: 'kcp.dev/v1alpha1',
      kind: 'Placement',
      metadata: { name, labels: { 'kcp.dev/inherit': 'true' } },
      spec: { clusters, ...more },
    })
    await parent.kubectl(['apply', '-f', '-'], { input: placement('tokyo-only', {}, ['tokyo']) })
    const names = ['a', 'b', 'c', 'd']
    for (const name of names) await child.kubectl(['create', 'deployment', name, '--image=demo/web'])
    for (const name of names) await untilPlaced(name, 'tokyo')
    await parent.kubectl(['label', 'placement', 'tokyo-only', 'kcp.dev/inherit-'])
    const selector = { logicalClusterSelector: { matchLabels: { tier: 'gold' } } }
    await kcp.admin.kubectl(['apply', '-f', '-'], { input: placement('gold', selector, ['paris']) })
    await kcp.admin.kubectl(['label', 'lc', 'parent', 'tier=gold'])
    for (const name of names) await untilPlaced(name, 'paris')
  })

  it('tells path and children in conditions, and keeps a parent until its children are gone', async () => {
    const valid = 'jsonpath={.status.conditions[?(@.type=="ParentValid")].message}'
    await waitFor(async () => (await admin('get', 'lc', 'child', '-o', valid)) === 'its path is parent:child', {
      what: 'condition ParentValid',
      ...within,
    })
    const refused = await kcp.admin.kubectl(['delete', 'lc', 'parent'], { expectCode: 1 })
    expect(refused.stderr).to.contain('it has children: child; delete them, or give them another parent, first')
    await admin('patch', 'lc', 'child', '--type=merge', '-p', '{"spec":{"parentRef":null}}')
    await waitFor(async () => (await admin('get', 'lc', 'child', '-o', valid)) === '', {
      what: 'no condition',
      ...within,
    })
    await kcp.admin.kubectl(['delete', 'lc', 'parent', '--timeout=60s'])
  })
})
