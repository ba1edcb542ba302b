// Limits of a logical cluster and all below it, under 32 clients at the same time: never one too many, and never a refusal
// while room is left.
import { expect } from 'chai'
import type { IncomingMessage } from 'node:http'
import { startInstance, type KcpInstance, type Tenant } from './kcp-instance.ts'
import { isConditionTrue, placedOn } from '#crds/index.ts'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { startKcp, waitFor } from '#test/support/index.ts'

const clients = 32

interface Refusal {
  readonly kind: string
  readonly reason: string
  readonly message: string
  readonly code: number
  readonly details?: { readonly retryAfterSeconds?: number }
}

interface Outcome {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  readonly text: string
}

describe('limits of a logical cluster', function () {
  this.timeout(120_000)
  let instance: KcpInstance
  let team: Tenant
  let below: Tenant
  let other: Tenant

  before(async () => {
    instance = await startInstance()
    ;[team, below, other] = [
      await instance.tenant('team'),
      await instance.tenant('below'),
      await instance.tenant('other'),
    ]
    await change('below', { parentRef: { name: 'team' } })
  })
  after(async () => {
    await instance[Symbol.asyncDispose]()
  })

  const change = async (name: string, spec: object): Promise<void> => {
    const path = `/clusters/root/apis/kcp.dev/v1alpha1/logicalclusters/${name}`
    const { status, text } = await instance.admin.http.request('PATCH', path, {
      body: { spec },
      headers: ['content-type', 'application/merge-patch+json'],
    })
    expect(status, text).to.equal(200)
  }
  const refusalOf = ({ text }: Outcome): Refusal => JSON.parse(text) as Refusal
  const post = (tenant: Tenant, path: string, body: object): Promise<Outcome> =>
    tenant.http.request('POST', `${tenant.base}${path}`, { body })
  /** Each client does this again and again until it is refused; the number of successes and the refusals. */
  const untilRefused = async (
    act: (client: number, round: number) => Promise<Outcome>,
  ): Promise<{ done: number; refusals: Outcome[] }> => {
    let done = 0
    const refusals: Outcome[] = []
    const run = async (client: number): Promise<void> => {
      for (let round = 0; round < 100; round++) {
        const outcome = await act(client, round)
        if (outcome.status !== 201) {
          refusals.push(outcome)
          return
        }
        done++
      }
      throw new Error('no limit was enforced')
    }
    await Promise.all(Array.from({ length: clients }, (_, client) => run(client)))
    return { done, refusals }
  }
  const crdPath = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
  const crd = (plural: string): object => ({
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.example.com` },
    spec: {
      group: 'example.com',
      scope: 'Namespaced',
      names: { plural, kind: plural.toUpperCase() },
      versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } }],
    },
  })
  const maps = '/api/v1/namespaces/default/configmaps'
  const map = (name: string): object => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } })

  it('bound stored objects exactly, with writes that fail in between', async () => {
    const { items } = (await team.http.request('GET', `${team.base}${maps}`)).json() as { items: unknown[] }
    expect(items).to.have.length.lessThan(3)
    await change('team', { limits: { objects: 200 } })
    const { done, refusals } = await untilRefused(async (client, round) => {
      const tenant = client % 2 === 0 ? team : below
      // Of every four, one names an object that exists: it must not take the place of one that would fit.
      if (round % 4 === 3) {
        const { status } = await post(tenant, maps, map(`c-${client}-0`))
        expect([403, 409]).to.include(status)
      }
      return post(tenant, maps, map(`c-${client}-${round}`))
    })
    for (const refusal of refusals) {
      expect(refusal.status).to.equal(403)
      expect(refusalOf(refusal)).to.include({ kind: 'Status', reason: 'Forbidden' })
      expect(refusalOf(refusal).message).to.contain(
        'exceeded quota: objects of logical cluster "team" and all below it',
      )
    }
    // Objects that the logical clusters had before count, too.
    const used = Number(
      /used: objects=(\d+)/.exec(refusalOf(refusals.at(-1) ?? { status: 0, headers: {}, text: '' }).message)?.[1],
    )
    expect(used).to.equal(200)
    expect(done).to.be.within(150, 200)
    expect((await post(team, maps, map('one-more'))).status).to.equal(403)
    await team.http.request('DELETE', `${team.base}${maps}/c-0-0`)
    expect((await post(below, maps, map('in-its-place'))).status).to.equal(201)
    expect((await post(team, maps, map('one-more'))).status).to.equal(403)
    await change('team', { limits: { objects: null } })
  })

  it('bound CustomResourceDefinitions exactly', async () => {
    await change('team', { limits: { crds: 20 } })
    const { done, refusals } = await untilRefused((client, round) =>
      post(client % 2 === 0 ? team : below, crdPath, crd(`k${client}x${round}s`)),
    )
    expect(done).to.equal(20)
    expect(refusalOf(refusals[0] ?? { status: 0, headers: {}, text: '' }).message).to.match(
      /exceeded quota: crds of logical cluster "team" and all below it, requested: crds=1, used: crds=20, limited: crds=20/,
    )
    expect((await post(other, crdPath, crd('others'))).status, 'another logical cluster').to.equal(201)
    await change('team', { limits: { crds: null } })
  })

  it('bound open watches exactly, those that were open before the limit too', async () => {
    const open: AsyncDisposable[] = []
    const path = (tenant: Tenant): string => `${tenant.base}${maps}?watch=1`
    const watch = async (tenant: Tenant): Promise<Outcome> => {
      const watching = await tenant.http.watch(path(tenant))
      const { status } = watching
      if (status === 200) open.push(watching)
      else await watching[Symbol.asyncDispose]()
      return { status: status === 200 ? 201 : status, headers: {}, text: '' }
    }
    for (let i = 0; i < 5; i++) expect((await watch(below)).status).to.equal(201)
    await change('team', { limits: { watches: 50 } })
    const { done, refusals } = await untilRefused((client) => watch(client % 2 === 0 ? team : below))
    expect(done).to.equal(45)
    expect(refusals.map(({ status }) => status)).to.deep.equal(refusals.map(() => 429))
    const first = await team.http.request('GET', path(team))
    expect(first.headers['retry-after']).to.equal('1')
    expect(refusalOf(first)).to.include({ kind: 'Status', reason: 'TooManyRequests' })
    expect(refusalOf(first).message).to.match(
      /exceeded quota: watches of logical cluster "team" and all below it, limited: watches=50/,
    )
    await open.shift()?.[Symbol.asyncDispose]()
    await waitFor(async () => (await watch(team)).status === 201, {
      what: 'room for a watch',
      deadlineMs: 10_000,
      intervalMs: 50,
    })
    expect((await watch(below)).status).to.equal(429)
    for (const one of open) await one[Symbol.asyncDispose]()
    await change('team', { limits: { watches: null } })
  })

  it('bound requests per second, never more than the rate and a burst, and others do not notice', async () => {
    const rate = 40
    await change('team', { limits: { requestsPerSecond: rate } })
    const begun = performance.now()
    let [granted, refused] = [0, 0]
    let last: Outcome | undefined
    const run = async (client: number): Promise<void> => {
      const tenant = client % 2 === 0 ? team : below
      while (performance.now() - begun < 3000) {
        const outcome = await tenant.http.request('GET', `${tenant.base}${maps}/none`)
        if (outcome.status === 404) granted++
        else {
          refused++
          last = outcome
          await new Promise((resolve) => setTimeout(resolve, 20))
        }
      }
    }
    await Promise.all(Array.from({ length: clients }, (_, client) => run(client)))
    const seconds = (performance.now() - begun) / 1000
    expect(refused).to.be.greaterThan(0)
    expect(granted).to.be.at.most(Math.floor(rate * 0.5 + rate * seconds))
    expect(granted, 'the burst').to.be.at.least(rate * 0.5)
    expect(last?.status).to.equal(429)
    expect(Number(last?.headers['retry-after'])).to.be.at.least(1)
    expect(last && refusalOf(last).message).to.match(
      /exceeded quota: requestsPerSecond of logical cluster "team" and all below it, limited: requestsPerSecond=40/,
    )
    for (let i = 0; i < 100; i++)
      expect((await other.http.request('GET', `${other.base}${maps}/none`)).status).to.equal(404)
    await change('team', { limits: { requestsPerSecond: null } })
  })

  it('are taken out of those above, which they must fit into', async () => {
    await change('team', {
      limits: { watches: 10, requestsPerSecond: 10, cpu: '2', memory: '1Gi', pods: 10, crds: 100 },
    })
    const refusal = async (limits: object): Promise<string> => {
      const path = '/clusters/root/apis/kcp.dev/v1alpha1/logicalclusters/below'
      const { status, text } = await instance.admin.http.request('PATCH', path, {
        body: { spec: { limits } },
        headers: ['content-type', 'application/merge-patch+json'],
      })
      return status === 200 ? 'written' : text
    }
    for (const [limits, rest] of [
      [{ watches: 11 }, /watches 11 is more than the 10 that are left/],
      [{ requestsPerSecond: 10 }, /requestsPerSecond 10 is more than the 9 that are left/],
      [{ cpu: '2500m' }, /cpu 2500 is more than the 2000 that are left/],
      [{ memory: '2Gi' }, /memory 2147483648 is more than the 1073741824 that are left/],
      [{ pods: 11 }, /pods 11 is more than the 10 that are left/],
    ] as const)
      expect(await refusal(limits)).to.match(rest)
    expect(await refusal({ cpu: 'much' })).to.match(/spec.limits.cpu/)
    expect(await refusal({ watches: 4, requestsPerSecond: 9, cpu: '500m' })).to.equal('written')
  })

  describe('of what is placed in members', () => {
    before(async () => {
      await change('below', { limits: null })
      await change('team', {
        limits: { watches: null, requestsPerSecond: null, cpu: null, memory: null, crds: null, pods: 30 },
      })
      const args = [
        'member',
        'simulate',
        'east',
        '--root-dir',
        instance.rootDir,
        '--pod-start-ms',
        '10',
        '--nodes',
        '20',
      ]
      member = await startKcp(args, { name: 'member', ready: () => Promise.resolve(true) })
      await waitFor(
        async () => {
          const path = '/clusters/root/apis/kcp.dev/v1alpha1/memberclusters/east'
          const found = await instance.admin.http.request('GET', path)
          return found.status === 200 && isConditionTrue(found.json(), 'Ready')
        },
        { what: 'the member to be Ready', deadlineMs: 60_000, intervalMs: 200 },
      )
    })
    after(async () => {
      await member?.[Symbol.asyncDispose]()
    })
    let member: AsyncDisposable | undefined
    const deployments = '/apis/apps/v1/namespaces/default/deployments'
    const deployment = (name: string, replicas: number): object => ({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name },
      spec: {
        replicas,
        strategy: { type: 'Recreate' },
        selector: { matchLabels: { app: name } },
        template: {
          metadata: { labels: { app: name } },
          spec: {
            containers: [{ name: 'app', image: 'registry.example/app:1', resources: { requests: { cpu: '10m' } } }],
          },
        },
      },
    })
    type Condition = { type: string; reason: string; message: string }
    const listOf = async (): Promise<KubeObject[]> => {
      const lists = await Promise.all(
        [team, below].map((tenant) => tenant.http.request('GET', `${tenant.base}${deployments}`)),
      )
      return lists.flatMap((list) => list.json()['items'] as KubeObject[])
    }
    const waitingOf = (object: KubeObject): Condition | undefined =>
      ((object['status'] ?? {}) as { conditions?: Condition[] }).conditions?.find(({ type }) => type === 'Placed')
    /** Pods of all that is placed. */
    const placedPods = (objects: readonly KubeObject[]): number =>
      objects.reduce(
        (sum, object) =>
          sum +
          Object.values(placedOn(object)).reduce(
            (all, copy) => all + (copy.replicas ?? (object['spec'] as { replicas: number }).replicas),
            0,
          ),
        0,
      )

    it('are exact for what 32 clients create at once, and the rest waits with a reason until there is room', async () => {
      const made = await Promise.all(
        Array.from({ length: clients }, (_, i) =>
          post(i % 2 === 0 ? team : below, deployments, deployment(`web-${i}`, 3)),
        ),
      )
      expect(made.map(({ status }) => status)).to.deep.equal(made.map(() => 201))
      let objects: KubeObject[] = []
      await waitFor(
        async () => {
          objects = await listOf()
          expect(placedPods(objects), 'never one too many').to.be.at.most(30)
          return objects.filter((object) => waitingOf(object) !== undefined).length === clients - 10
        },
        { what: 'ten to be placed, and the others to wait', deadlineMs: 60_000, intervalMs: 100 },
      )
      expect(placedPods(objects)).to.equal(30)
      const waits = objects.map(waitingOf).filter((one) => one !== undefined)
      expect(new Set(waits.map(({ reason }) => reason))).to.deep.equal(new Set(['LimitExceeded']))
      expect(waits[0]?.message).to.equal(
        'exceeded quota: pods of logical cluster "team" and all below it, limited: 30: 0 of 3 replicas run, each needs pods=1',
      )
      const [first] = objects.filter((object) => Object.keys(placedOn(object)).length > 0)
      const name = first?.metadata.name ?? ''
      const tenant = Number(name.replace('web-', '')) % 2 === 0 ? team : below
      expect((await tenant.http.request('DELETE', `${tenant.base}${deployments}/${name}`)).status).to.equal(200)
      await waitFor(
        async () => {
          objects = await listOf()
          return objects.length === clients - 1 && placedPods(objects) === 30
        },
        { what: 'another one in its place', deadlineMs: 30_000, intervalMs: 100 },
      )
      await change('team', { limits: { pods: 31 } })
      await waitFor(
        async () => {
          objects = await listOf()
          return placedPods(objects) === 31
        },
        { what: 'a part of one more after the limit was raised', deadlineMs: 30_000, intervalMs: 100 },
      )
      expect(objects.some((object) => waitingOf(object)?.message.includes('1 of 3 replicas run') === true)).to.equal(
        true,
      )
      await change('team', { limits: null })
      await waitFor(async () => placedPods(await listOf()) === (clients - 1) * 3, {
        what: 'all of them without a limit',
        deadlineMs: 60_000,
        intervalMs: 100,
      })
    })
  })
})
