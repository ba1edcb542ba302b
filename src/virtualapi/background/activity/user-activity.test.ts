import { expect } from 'chai'
import { clusterIdOf, type ClusterName } from '#apimachinery/meta/index.ts'
import { serviceUnavailable } from '#apimachinery/status/index.ts'
import type { KubeClient } from '#client/index.ts'
import { silentLogger } from '#telemetry/index.ts'
import type { ClusterDirectory, LogicalCluster, SleepRules } from '#virtualapi/request/logical-cluster.ts'
import type { RequestInfo } from '#virtualapi/request/request-info.ts'
import { UserActivity } from './user-activity.ts'

const id = clusterIdOf('u')
const alice = { name: 'alice', groups: [], extra: {}, realm: { kind: 'cluster', id } } as const
const request = (verb: string): RequestInfo => ({
  ...{ entryPoint: 'direct', cluster: { kind: 'one', name: 'acme' as ClusterName }, verb, method: 'X' },
  target: { ...{ kind: 'resource', group: '', version: 'v1', resource: 'configmaps' }, ...none },
  query: new URLSearchParams(),
  basePath: '',
})
const none = { namespace: 'shop', name: 'a', subresource: '', rest: '' }

/** A server with one logical cluster, whose statuses are collected. */
class Played {
  cluster: LogicalCluster | undefined
  ms = 1_000_000
  readonly told: unknown[] = []
  failures = 0
  readonly activity: UserActivity
  #changed: Parameters<ClusterDirectory['onChange']>[0] = () => undefined

  constructor(sleep?: SleepRules) {
    this.cluster = this.#with(sleep)
    const patch = async (_gvr: unknown, _ref: unknown, _type: unknown, body: { status: { sleep: unknown } }) => {
      if (this.failures-- > 0) throw serviceUnavailable('away')
      this.told.push(body.status.sleep)
    }
    this.activity = new UserActivity({
      directory: {
        byId: () => this.cluster,
        onChange: (listener) => {
          this.#changed = listener
          return () => undefined
        },
      },
      client: () => ({ patch }) as unknown as KubeClient,
      clock: { now: () => Date.parse('2026-11-25T12:00:00Z') + this.ms, monotonic: () => this.ms },
      log: silentLogger,
    })
  }

  become(sleep: SleepRules | undefined): void {
    const [before, after] = [this.cluster, this.#with(sleep)]
    this.cluster = after
    this.#changed({ ...(before && { before }), after })
  }

  note(verb: string): void {
    if (this.cluster !== undefined) this.activity.note(this.cluster, request(verb), alice)
  }

  #with(sleep: SleepRules | undefined): LogicalCluster {
    const facts = { name: 'acme' as ClusterName, id, uid: 'u', creationTimestamp: '', owners: [], deleting: false }
    return { ...facts, ...(sleep && { sleep }) }
  }
}

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
const asleepSince = '2026-11-25T11:00:00Z'

describe('the use of logical clusters', () => {
  it('is told once in each step while one is awake', async () => {
    const played = new Played({ stepMs: 60_000 })
    await using _ = played.activity
    for (const ms of [0, 1000, 59_000, 1000, 59_000]) {
      played.ms += ms
      played.note('list')
      await settled()
    }
    expect(played.told).to.deep.equal([
      { lastRequestTime: '2026-11-25T12:16:40Z' },
      { lastRequestTime: '2026-11-25T12:17:40Z' },
      { lastRequestTime: '2026-11-25T12:18:40Z' },
    ])
  })

  it('is not told without rules about idleness', async () => {
    for (const rules of [undefined, {}]) {
      const played = new Played(rules)
      await using _ = played.activity
      played.note('create')
      await settled()
      expect(played.told).to.deep.equal([])
    }
  })

  it('is told at once by a write while one is asleep, and by no read', async () => {
    const played = new Played({ stepMs: 60_000, asleepSince })
    await using _ = played.activity
    played.note('list')
    played.note('watch')
    await settled()
    expect(played.told).to.deep.equal([])
    for (let i = 0; i < 100; i++) played.note('create')
    await settled()
    expect(played.told).to.deep.equal([{ writtenDuring: asleepSince }])
  })

  it('wakes one that was found idle while a write was on its way, and no other', async () => {
    for (const [ms, fell, expected] of [
      [5000, { isIdle: true }, [{ writtenDuring: asleepSince }]],
      [15_000, { isIdle: true }, []],
      [5000, {}, []],
    ] as const) {
      const played = new Played({})
      await using _ = played.activity
      played.note('update')
      played.ms += ms
      played.become({ asleepSince, ...fell })
      await settled()
      expect(played.told, `${ms} ms later`).to.deep.equal(expected)
    }
  })

  it('is told again after a failure', async () => {
    const played = new Played({ asleepSince })
    await using _ = played.activity
    played.failures = 1
    played.note('create')
    await settled()
    expect(played.told).to.deep.equal([])
    await new Promise((resolve) => setTimeout(resolve, 2100))
    expect(played.told).to.deep.equal([{ writtenDuring: asleepSince }])
  })
})
