import { expect } from 'chai'
import type { MemberClusterStatus } from '#crds/index.ts'
import { memberClusterStatus, type Probe, type StatusInput } from './status.ts'

const answered: Probe = {
  kind: 'answered',
  uid: 'u',
  version: 'v1.34.3',
  nodes: { ready: 1, total: 2 },
  capacity: { cpu: '4' },
  allocatable: { cpu: '3900m' },
  revision: '7',
}
const start = Date.parse('2026-01-01T00:00:00Z')
const input = (parts: Partial<StatusInput> = {}): StatusInput => ({
  previous: undefined,
  generation: 1,
  state: 'Active',
  probe: answered,
  twin: undefined,
  placed: [],
  requested: {},
  classes: [],
  nowMs: start,
  now: '2026-01-01T00:00:00Z',
  ...parts,
})
const words = (parts: Partial<StatusInput>): string =>
  (memberClusterStatus(input(parts)).conditions ?? []).map(({ type, status }) => `${type}=${status}`).join(' ')

describe('the status of a MemberCluster', () => {
  for (const { title, parts, expected } of [
    {
      title: 'is Ready and Schedulable when it answers',
      parts: {},
      expected: 'Accepted=True Reachable=True CredentialsValid=True Ready=True Schedulable=True',
    },
    {
      title: 'is Ready but not Schedulable when cordoned',
      parts: { state: 'Cordoned' },
      expected: 'Accepted=True Reachable=True CredentialsValid=True Ready=True Schedulable=False',
    },
    {
      title: 'is Unknown, not False, when unreachable',
      parts: { probe: { kind: 'unreachable', message: 'm' } },
      expected: 'Accepted=True Reachable=False CredentialsValid=Unknown Ready=Unknown Schedulable=False',
    },
    {
      title: 'says of a member in pull mode that has never answered what its agent waits for',
      parts: { probe: { kind: 'unreachable', message: 'm' }, refusal: { reason: 'WaitingForApproval', message: 'w' } },
      expected: 'Accepted=False Reachable=Unknown CredentialsValid=Unknown Ready=False Schedulable=False',
    },
    {
      title: 'treats a member whose agent is revoked as one that does not answer',
      parts: {
        previous: { id: 'u' },
        probe: { kind: 'unreachable', message: 'm' },
        refusal: { reason: 'NotGranted', message: 'w' },
      },
      expected: 'Accepted=False Reachable=False CredentialsValid=Unknown Ready=Unknown Schedulable=False',
    },
    {
      title: 'distinguishes refused credentials from a lost member',
      parts: { probe: { kind: 'refused', message: 'm' } },
      expected: 'Accepted=True Reachable=True CredentialsValid=False Ready=Unknown Schedulable=False',
    },
    {
      title: 'is not accepted under a second name',
      parts: { twin: 'east' },
      expected: 'Accepted=False Reachable=True CredentialsValid=True Ready=False Schedulable=False',
    },
    {
      title: 'is not accepted when another cluster answers under its name',
      parts: { previous: { id: 'former' } },
      expected: 'Accepted=False Reachable=True CredentialsValid=True Ready=False Schedulable=False',
    },
  ] as { title: string; parts: Partial<StatusInput>; expected: string }[]) {
    it(title, () => expect(words(parts)).to.equal(expected))
  }
  for (const [placed, message] of [
    [[], 'its state is Draining: no workloads are left there'],
    [
      ['acme/shop/web', 'acme/shop/api'],
      'its state is Draining: workloads are left there: acme/shop/api, acme/shop/web',
    ],
    [
      ['a/1', 'a/2', 'a/3', 'a/4', 'a/5', 'a/6', 'a/7'],
      'its state is Draining: workloads are left there: a/1, a/2, a/3, a/4, a/5 and 2 more',
    ],
  ] as const) {
    it(`reports the copies left in a drained member: ${placed.length}`, () => {
      const status = memberClusterStatus(input({ state: 'Draining', placed }))
      expect(status.placed).to.equal(placed.length)
      expect(status.conditions?.find(({ type }) => type === 'Schedulable')?.message).to.equal(message)
    })
  }
  it('says that deletions are suspended, and what to do, only while they are', () => {
    const where = [{ cluster: 'acme', missing: 7, total: 8 }]
    const previous = memberClusterStatus(input({ suspended: { name: 'east', where } }))
    const told = previous.conditions?.find(({ type }) => type === 'DeletionsSuspended')
    expect(told?.message).to.match(
      /^7 of the 8 workloads of logical cluster "acme" .* memberclusters east kcp\.dev\/accept-deletions-until=/,
    )
    expect(words({ previous, suspended: { name: 'east', where: [] } })).not.to.contain('DeletionsSuspended')
  })
  it('calls a member lost that has not answered for 40 s', () => {
    const probe: Probe = { kind: 'unreachable', message: 'm' }
    const reasonAfter = (seconds: number): string | undefined => {
      const previous = memberClusterStatus(input({ probe }))
      const status = memberClusterStatus(input({ previous, probe, nowMs: start + seconds * 1000 }))
      return status.conditions?.find(({ type }) => type === 'Ready')?.reason
    }
    expect([reasonAfter(39), reasonAfter(40)]).to.deep.equal(['Unreachable', 'Lost'])
  })
  it('keeps the last report of a member that does not answer', () => {
    const previous = memberClusterStatus(input())
    const silent = memberClusterStatus(input({ previous, probe: { kind: 'unreachable', message: 'm' } }))
    expect(silent).to.include({ version: 'v1.34.3', lastHeartbeatTime: '2026-01-01T00:00:00Z' })
  })
  it('reports what its nodes have, and keeps the report of the registered cluster', () => {
    const status = memberClusterStatus(input({ requested: { cpu: '500m' } }))
    expect(status).to.deep.include({
      capacity: { cpu: '4' },
      allocatable: { cpu: '3900m' },
      requested: { cpu: '500m' },
    })
    expect(memberClusterStatus(input({ previous: { id: 'former', version: 'v1.33.0' } }))).to.include({
      id: 'former',
      version: 'v1.33.0',
    })
  })
  it('writes a heartbeat at most every 30 s', () => {
    const previous = memberClusterStatus(input())
    expect(memberClusterStatus(input({ previous, nowMs: start + 29_000, now: '2026-01-01T00:00:29Z' }))).to.equal(
      previous,
    )
    expect(
      memberClusterStatus(input({ previous, nowMs: start + 30_000, now: '2026-01-01T00:00:30Z' })).lastHeartbeatTime,
    ).to.equal('2026-01-01T00:00:30Z')
  })

  it('keeps whether it has metrics while the member does not tell', () => {
    const previous = memberClusterStatus(input({ probe: { ...answered, metricsAPI: true } }))
    expect(previous.metricsAPI).to.equal(true)
    expect(memberClusterStatus(input({ previous })).metricsAPI).to.equal(true)
    expect(memberClusterStatus(input({ previous, probe: { ...answered, metricsAPI: false } })).metricsAPI).to.equal(
      false,
    )
  })
})

describe('an exported API in the status of its member', () => {
  const api = { group: 'example.com', resource: 'widgets' }
  const told = (report: { logicalClusters: number; incompatible?: string }, previous?: MemberClusterStatus): string => {
    const exports = { problems: [], withdrawn: [], apis: [{ ...api, droppedFields: [], ...report }] }
    const { exportedAPIs = [] } = memberClusterStatus(input({ exported: [api], exports, previous }))
    return (exportedAPIs[0]?.conditions ?? []).map(({ type, status, reason }) => `${type}=${status} ${reason}`).join()
  }

  it('is Available only if it is Compatible', () => {
    expect(told({ logicalClusters: 2 })).to.equal('Compatible=True Agreed,Available=True Offered')
    expect(told({ logicalClusters: 0 })).to.equal('Compatible=True Agreed,Available=False NotOffered')
    expect(told({ logicalClusters: 2, incompatible: 'the scope differs' })).to.equal(
      'Compatible=False DefinitionsDiffer,Available=False Incompatible',
    )
  })

  it('stays as it was until something is known after a start', () => {
    const before = [{ ...api, logicalClusters: 3 }]
    const { exportedAPIs } = memberClusterStatus(input({ exported: [api], previous: { exportedAPIs: before } }))
    expect(exportedAPIs).to.deep.equal(before)
  })
})
