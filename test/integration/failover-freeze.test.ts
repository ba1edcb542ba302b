// Many members lost at once, with a real API server: their workloads stay where they are until most members answer
// again.
import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { sharedInformers, type KubeClient } from '#client/index.ts'
import { kcpCrds, logicalClusters, memberClusters, placedOn, placedOnAnnotation } from '#crds/index.ts'
import { ensureCrds } from '#operator/index.ts'
import { enqueueChanges } from '#operator/placement/enqueue.ts'
import { observe } from '#operator/placement/observe.ts'
import { PlacementInputs } from '#operator/placement/placement-inputs.ts'
import { plan, type Plan } from '#operator/placement/plan.ts'
import { parseWorkloadKey } from '#operator/placement/workload-key.ts'
import { silentLogger } from '#telemetry/index.ts'
import { startCluster, waitFor } from '#test/support/index.ts'
import { asWildcard, clientOf } from './syncer/ordinary-upstream.ts'

const deployments = { group: 'apps', version: 'v1', resource: 'deployments' }
const names = ['a', 'b', 'c', 'd', 'e'] as const
type Name = (typeof names)[number]
const key = (name: Name): string => `deployments acme|default/in-${name}`

describe('failover while members are lost', function () {
  this.timeout(60_000)
  const stack = new AsyncDisposableStack()
  const life = new AbortController()
  const { signal } = life
  const reconciled = new Set<string>()
  let client: KubeClient
  let inputs: PlacementInputs

  before(async function () {
    this.timeout(300_000)
    const flags = { 'kube-apiserver': ['--disable-admission-plugins=ServiceAccount'] }
    client = await clientOf(stack.use(await startCluster({ name: 'host', flags })).kubeconfig, stack)
    stack.defer(() => life.abort())
    await ensureCrds(client, { crds: kcpCrds(), signal })
    const kcp = 'kcp.dev/v1alpha1'
    await client.create(
      logicalClusters,
      { apiVersion: kcp, kind: 'LogicalCluster', metadata: { name: 'acme' } },
      { signal },
    )
    for (const name of names) {
      await client.create(memberClusters, { apiVersion: kcp, kind: 'MemberCluster', metadata: { name } }, { signal })
      await response(name, true)
      await client.create(deployments, deployment(name), { signal })
    }
    const options = { log: silentLogger, signal }
    inputs = stack.use(
      new PlacementInputs({
        informers: sharedInformers(client, options),
        tenantInformers: sharedInformers(asWildcard(client, 'acme'), { ...options, allClusters: true }),
      }),
    )
    await inputs.synced(signal)
    stack.defer(enqueueChanges(inputs, (one) => reconciled.add(one)))
  })
  after(async function () {
    this.timeout(60_000)
    await stack.disposeAsync()
  })

  /** Writes the status of a member as the operator does: it answers, or has not answered for ten minutes. */
  const response = async (name: Name, isUp: boolean): Promise<void> => {
    const lastTransitionTime = new Date(Date.now() - 600_000).toISOString()
    const condition = (type: string, status: string): object => ({
      ...{ type, status, lastTransitionTime },
      ...{ reason: isUp ? 'Answers' : 'Unreachable', message: '' },
    })
    const conditions = [
      condition('Reachable', isUp ? 'True' : 'False'),
      condition('Ready', isUp ? 'True' : 'Unknown'),
      condition('Schedulable', isUp ? 'True' : 'False'),
    ]
    await client.patch(memberClusters, { name }, 'merge', { status: { conditions } }, { subresource: 'status', signal })
  }
  /** The next decision about the workload in this member, with what is known now. */
  const next = (name: Name): Plan => {
    const ref = parseWorkloadKey(key(name))
    const workload = ref && inputs.workload(ref)
    const observed = ref && workload && observe(ref, workload, inputs, Date.now())
    if (observed === undefined) throw new Error(`the workload in ${name} is not known`)
    return plan(observed, { nowMs: Date.now(), drainSeconds: 10, soakSeconds: 2 })
  }
  const membersOf = (name: Name): string[] => Object.keys(next(name).placedOn).sort()
  const known = (isUp: (name: Name) => boolean): Promise<unknown> =>
    waitFor(() => names.every((name) => inputs.unreachable.includes(name) !== isUp(name)) || undefined, {
      what: 'the members to be known as they are',
      deadlineMs: 20_000,
      intervalMs: 20,
    })

  it('stops when three of five are lost, and goes on when one of them answers', async () => {
    for (const name of ['a', 'b', 'c'] as const) await response(name, false)
    await known((name) => name > 'c')
    for (const name of ['a', 'b', 'c'] as const) expect(membersOf(name), 'frozen').to.deep.equal([name])
    reconciled.clear()
    await response('c', true)
    await known((name) => name > 'b')
    expect([...reconciled], 'those of the members that are still lost').to.include.members([key('a'), key('b')])
    for (const name of ['a', 'b'] as const) {
      const started = membersOf(name).filter((member) => member !== name)
      expect(started, `where ${name} is replaced`).to.have.length(1)
      expect(['c', 'd', 'e']).to.include.members(started)
    }
    expect(membersOf('c')).to.deep.equal(['c'])
  })

  const deployment = (name: Name): KubeObject => {
    const placed = { [name]: { state: 'Serving', since: new Date(Date.now() - 900_000).toISOString() } }
    const labels = { app: `in-${name}` }
    const object = {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: {
        name: `in-${name}`,
        namespace: 'default',
        annotations: { [placedOnAnnotation]: JSON.stringify(placed) },
      },
      spec: {
        replicas: 1,
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: { containers: [{ name: 'c', image: 'example/c:1' }] } },
      },
    }
    expect(placedOn(object)).to.have.property(name)
    return object
  }
})
