import { expect } from 'chai'
import { memberFinalizer, type MemberCluster } from '#crds/index.ts'
import { plan, type Observed } from './plan.ts'

type Policy = NonNullable<MemberCluster['spec']>['deletionPolicy']

function observed(parts: Partial<Observed>, { policy, id }: { policy?: Policy; id?: string } = {}): Observed {
  const deletionTimestamp = policy === undefined ? {} : { deletionTimestamp: '2026-01-01T00:00:00Z' }
  return {
    object: {
      apiVersion: 'kcp.dev/v1alpha1',
      kind: 'MemberCluster',
      metadata: { name: 'east', finalizers: [memberFinalizer], ...deletionTimestamp },
      spec: policy === undefined ? {} : { deletionPolicy: policy },
      status: id === undefined ? {} : { id },
    },
    probe: {
      kind: 'answered',
      uid: 'u',
      version: 'v1.34.3',
      nodes: { ready: 1, total: 1 },
      capacity: {},
      allocatable: {},
      revision: '7',
    },
    twin: undefined,
    tokenDue: false,
    placed: ['shop/web'],
    requested: {},
    classes: [],
    isRestored: false,
    nowMs: 0,
    now: '2026-01-01T00:00:00Z',
    ...parts,
  }
}

const pulled = (parts: Partial<Observed>): Observed => {
  const seen = observed(parts)
  return { ...seen, object: { ...seen.object, spec: { connection: { agent: {} } } } }
}
const pushed = (parts: Partial<Observed>): Observed => {
  const seen = observed(parts)
  const kubeconfigSecretRef = { namespace: 'kcp-system', name: 'member-east' }
  return { ...seen, object: { ...seen.object, spec: { connection: { kubeconfigSecretRef } } } }
}

describe('the plan for a MemberCluster', () => {
  for (const { title, given, steps } of [
    { title: 'syncs with a member that answers', given: observed({}), steps: ['setStatus', 'sync'] },
    {
      title: 'starts the syncer again after a restore from a backup',
      given: observed({ isRestored: true }),
      steps: ['setStatus', 'stopSyncer', 'reportRestored', 'sync'],
    },
    {
      title: 'does not sync with another cluster than was registered',
      given: observed({}, { id: 'former' }),
      steps: ['setStatus', 'stopSyncer'],
    },
    {
      title: 'waits for its workloads when it is deleted',
      given: observed({}, { policy: 'Drain' }),
      steps: ['sync', 'logRemaining', 'setStatus'],
    },
    {
      title: 'waits for the volumes that still move when it is deleted',
      given: observed({ placed: [], drain: { moving: 1, held: 0, claims: 1, remaining: [] } }, { policy: 'Drain' }),
      steps: ['sync', 'setStatus'],
    },
    {
      title: 'waits while volumes may still begin to move when it is deleted',
      given: observed(
        { placed: [], drain: { moving: 0, held: 1, claims: 1, remaining: [] }, onlyClaimsForMs: 59_000 },
        { policy: 'Drain' },
      ),
      steps: ['sync', 'setStatus'],
    },
    {
      title: 'does not wait any longer for volumes that have not begun to move',
      given: observed(
        { placed: [], drain: { moving: 0, held: 1, claims: 1, remaining: [] }, onlyClaimsForMs: 60_000 },
        { policy: 'Drain' },
      ),
      steps: ['stopSyncer', 'removeInstallation', 'removeFinalizer', 'disconnect'],
    },
    {
      title: 'does not wait for volumes that nothing lets move',
      given: observed({ placed: [], drain: { moving: 0, held: 1, claims: 1, remaining: [] } }, { policy: 'Drain' }),
      steps: ['stopSyncer', 'removeInstallation', 'removeFinalizer', 'disconnect'],
    },
    {
      title: 'deletes what is there without waiting by force',
      given: observed({}, { policy: 'Force' }),
      steps: ['stopSyncer', 'removeInstallation', 'removeFinalizer', 'disconnect'],
    },
    {
      title: 'leaves what is there when it is orphaned',
      given: observed({}, { policy: 'Orphan' }),
      steps: ['stopSyncer', 'removeFinalizer', 'disconnect'],
    },
    {
      title: 'deletes everything of ours when nothing is left',
      given: observed({ placed: [] }, { policy: 'Drain' }),
      steps: ['stopSyncer', 'removeInstallation', 'removeFinalizer', 'disconnect'],
    },
    {
      title: 'syncs with no member whose agent is revoked, even if it still answers',
      given: pulled({}),
      steps: ['setStatus', 'stopSyncer'],
    },
    {
      title: 'reaches a member through its agent as soon as that answers, and deletes the kubeconfig',
      given: pushed({ agentAnswers: true }),
      steps: ['setStatus', 'switchToAgent', 'deleteKubeconfig'],
    },
    {
      title: 'does not switch a member that another cluster has taken the name of',
      given: pushed({ agentAnswers: true, twin: 'older' }),
      steps: ['setStatus', 'stopSyncer'],
    },
  ]) {
    it(title, () => expect(plan(given, { probeSeconds: 10 }).steps.map((step) => step.do)).to.deep.equal(steps))
  }

  it('looks for an absent agent more often than for a member that does not answer', () => {
    const unreachable = { kind: 'unreachable', message: 'm' } as const
    const again = (given: Observed): number | undefined => plan(given, { probeSeconds: 10 }).requeueAfterSeconds
    expect([
      again(pulled({ probe: unreachable })),
      again(pulled({})),
      again(pushed({ probe: unreachable })),
    ]).to.deep.equal([3, 10, 10])
  })
})
