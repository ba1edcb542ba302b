import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { volumeAnnotation } from '#crds/index.ts'
import { reconcileClaim, type ClaimContext } from './waiting-claims.ts'

const { signal } = new AbortController()
const created = Date.parse('2026-01-01T00:00:00Z')
const key = 'acme|shop/data'
const claim = (parts: Partial<KubeObject> = {}): KubeObject => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  ...parts,
  metadata: { name: 'data', namespace: 'shop', uid: 'u', creationTimestamp: '2026-01-01T00:00:00Z', ...parts.metadata },
})
const user: KubeObject = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'db', namespace: 'shop' },
  spec: { volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }] },
}

interface Given {
  readonly stored?: KubeObject
  readonly workloads?: readonly KubeObject[]
  readonly members?: number
  readonly ageMs?: number
}

async function told({ stored = claim(), workloads = [], members = 1, ageMs = 6000 }: Given) {
  const events: KubeObject[] = []
  const parts = {
    context: { virtual: () => ({ create: (_: unknown, event: KubeObject) => Promise.resolve(events.push(event)) }) },
    inputs: {
      claims: { store: { get: () => stored } },
      members: { store: { size: members } },
      workloadsInNamespace: () => workloads,
    },
    clock: { now: () => created + ageMs },
  }
  const result = await reconcileClaim(key, parts as unknown as ClaimContext, signal)
  return { result, events: events.map((event) => `${event['reason'] as string}: ${event['message'] as string}`) }
}

describe('a claim that nothing uses', () => {
  it('is told what it waits for', async () => {
    const { events } = await told({})
    expect(events).to.deep.equal([
      'WaitForFirstConsumer: waiting for a workload that uses it: the volume is created in the member cluster in which that workload runs',
    ])
  })

  it('is given time, since what uses a claim is often written after it', async () => {
    expect(await told({ ageMs: 1000 })).to.deep.equal({ result: { requeueAfterSeconds: 4 }, events: [] })
  })

  for (const { title, given } of [
    { title: 'a workload uses it', given: { workloads: [user] } },
    { title: 'it is bound', given: { stored: claim({ status: { phase: 'Bound' } }) } },
    {
      title: 'a member has its volume',
      given: { stored: claim({ metadata: { annotations: { [volumeAnnotation]: 'east' } } }) },
    },
    { title: 'there are no members', given: { members: 0 } },
    { title: 'it is so old that an Event of then is gone', given: { ageMs: 2 * 3_600_000 } },
  ] satisfies { title: string; given: Given }[])
    it(`is told nothing where ${title}`, async () => expect((await told(given)).events).to.deep.equal([]))
})
