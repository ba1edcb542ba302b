import { expect } from 'chai'
import { clusterIdOf, type Condition } from '#apimachinery/meta/index.ts'
import type { LogicalCluster } from '#crds/index.ts'
import { contentRetrySeconds, plan, type Observed } from './plan.ts'

const now = '2026-03-01T00:00:00Z'
const urls = { url: 'https://host/acme', directURL: 'https://direct/clusters/acme' }
const uid = '5d0b9e52-37f6-44a4-9d6e-0f4c4a3f7a11'

function observed(more: Partial<Observed> & { metadata?: object; spec?: object; status?: object } = {}): Observed {
  const { metadata = {}, spec, status, ...rest } = more
  const object: LogicalCluster = {
    apiVersion: 'kcp.dev/v1alpha1',
    kind: 'LogicalCluster',
    metadata: { name: 'acme', uid, generation: 3, resourceVersion: '7', ...metadata },
    ...(spec && { spec }),
    ...(status && { status }),
  }
  return { object, urls, now, ...rest }
}

const held = { finalizers: ['kcp.dev/content'] }
const deleting = { ...held, deletionTimestamp: now }
const servedCondition: Condition = {
  type: 'Ready',
  status: 'True',
  reason: 'Served',
  message: 'its API is served',
  lastTransitionTime: '2026-01-01T00:00:00Z',
  observedGeneration: 3,
}
const readyStatus = { id: clusterIdOf(uid), ...urls, observedGeneration: 3, conditions: [servedCondition] }
const kubeconfigs = [{ namespace: 'capi', name: 'acme', format: 'ClusterAPI' }]
const secrets = [{ namespace: 'capi', name: 'acme-kubeconfig' }]
const content = {
  total: 2,
  held: [],
  orphaned: [],
  counts: [{ resource: 'deployments.apps', finalizer: 'syncer.kcp.dev/east', count: 2 }],
}

describe('the plan for a LogicalCluster', () => {
  for (const { title, given, steps } of [
    {
      title: 'adds the finalizer first, then asks whether its API answers',
      given: observed(),
      steps: ['addFinalizer', 'probe'],
    },
    {
      title: 'asks whether its API answers once it has the finalizer',
      given: observed({ metadata: held }),
      steps: ['probe'],
    },
    {
      title: 'writes the status once when its API answers',
      given: observed({ metadata: held, served: { ok: true } }),
      steps: ['setStatus'],
    },
    {
      title: 'does nothing for one that is Ready',
      given: observed({ metadata: held, status: readyStatus }),
      steps: [],
    },
    {
      title: 'does not ask again if it is Ready, but updates observedGeneration',
      given: observed({ metadata: { ...held, generation: 4 }, status: readyStatus }),
      steps: ['setStatus'],
    },
    {
      title: 'tells the path of its parents',
      given: observed({ metadata: held, status: readyStatus, parents: { path: 'top:acme' } }),
      steps: ['setStatus'],
    },
    {
      title: 'waits for its children before anything is deleted',
      given: observed({ metadata: deleting, status: readyStatus, content, children: ['dev', 'test'] }),
      steps: ['setStatus', 'waitForContent'],
    },
    {
      title: 'updates the addresses in the status',
      given: observed({ metadata: held, status: { ...readyStatus, url: 'https://old/acme' } }),
      steps: ['setStatus'],
    },
    {
      title: 'reports an API that does not answer',
      given: observed({ metadata: held, served: { ok: false, message: 'connection refused' } }),
      steps: ['setStatus'],
    },
    {
      title: 'adds no finalizer if the name is reserved',
      given: observed({ metadata: { name: 'root' } }),
      steps: ['setStatus'],
    },
    {
      title: 'does nothing for a deleted one without our finalizer',
      given: observed({ metadata: { deletionTimestamp: now } }),
      steps: [],
    },
    {
      title: 'asks for the content of one that is deleted',
      given: observed({ metadata: deleting }),
      steps: ['inspectContent'],
    },
    {
      title: 'deletes what members hold, reports what is left, and waits',
      given: observed({ metadata: deleting, content }),
      steps: ['deleteObjects', 'setStatus', 'waitForContent'],
    },
    {
      title: 'purges the rest once members hold nothing',
      given: observed({
        metadata: deleting,
        status: readyStatus,
        content: { total: 0, held: [], orphaned: [], counts: [] },
      }),
      steps: ['purgeAndRelease'],
    },
    {
      title: 'lists the Secrets with kubeconfigs in the status before it writes them',
      given: observed({ metadata: held, spec: { kubeconfigs }, status: readyStatus }),
      steps: ['setStatus', 'keepKubeconfigs'],
    },
    {
      title: 'looks at the Secrets again at each reconcile',
      given: observed({ metadata: held, spec: { kubeconfigs }, status: { ...readyStatus, kubeconfigs: secrets } }),
      steps: ['keepKubeconfigs'],
    },
    {
      title: 'deletes Secrets of former entries',
      given: observed({ metadata: held, status: { ...readyStatus, kubeconfigs: secrets } }),
      steps: ['keepKubeconfigs'],
    },
    {
      title: 'says in the status that the Secrets are written',
      given: observed({
        metadata: held,
        spec: { kubeconfigs },
        status: { ...readyStatus, kubeconfigs: secrets },
        kubeconfigs: { secrets, written: 1, problems: [], requeueAfterSeconds: 600 },
      }),
      steps: ['setStatus'],
    },
    {
      title: 'deletes its Secrets once members hold nothing, before the rest',
      given: observed({
        metadata: deleting,
        spec: { kubeconfigs },
        content: { total: 0, held: [], orphaned: [], counts: [] },
      }),
      steps: ['removeKubeconfigs', 'purgeAndRelease'],
    },
  ] satisfies { title: string; given: Observed; steps: string[] }[]) {
    it(title, () => expect(plan(given).map((step) => step.do)).to.deep.equal(steps))
  }

  function statusOf(given: Observed) {
    const step = plan(given).find((step) => step.do === 'setStatus')
    if (step?.do !== 'setStatus') throw new Error('no status is set')
    return step.status
  }

  it('writes id, addresses, generation and Ready into the status', () => {
    expect(statusOf(observed({ metadata: held, served: { ok: true } }))).to.deep.equal({
      ...readyStatus,
      conditions: [{ ...servedCondition, lastTransitionTime: now }],
    })
  })
  it('says which Secrets are kept and what to do about those that are not, and forgets both with the last entry', () => {
    const given = { metadata: held, spec: { kubeconfigs }, status: { ...readyStatus, kubeconfigs: secrets } }
    const problems = [{ reason: 'NamespaceMissing', message: 'create it' } as const]
    const outcome = { secrets, written: 0, problems, requeueAfterSeconds: 30 }
    const status = statusOf(observed({ ...given, kubeconfigs: outcome }))
    expect(status.kubeconfigs).to.deep.equal(secrets)
    expect(status.conditions?.[1]).to.include({
      type: 'KubeconfigsWritten',
      status: 'False',
      reason: 'NamespaceMissing',
    })
    const gone = { secrets: [], written: 0, problems: [], requeueAfterSeconds: 600 }
    expect(statusOf(observed({ metadata: held, status, kubeconfigs: gone }))).to.deep.equal(readyStatus)
  })

  it('removes what the server has said of a webhook that the object does not have any more', () => {
    const said = {
      type: 'AuditDelivered',
      status: 'False',
      reason: 'WebhookFailing',
      message: '',
      lastTransitionTime: now,
    } as const
    const status = { ...readyStatus, conditions: [...readyStatus.conditions, said] }
    const typesWith = (spec: object): unknown => plan(observed({ metadata: held, spec, status })).map((step) => step.do)
    expect(typesWith({ audit: { rules: [], webhook: { url: 'https://x' } } })).to.deep.equal([])
    expect(typesWith({ audit: { rules: [], readable: true } })).to.deep.equal(['setStatus'])
    expect(statusOf(observed({ metadata: held, status })).conditions?.map(({ type }) => type)).to.deep.equal(['Ready'])
  })

  it('removes what the server has said of issuers that the object does not have any more', () => {
    const said = {
      type: 'AuthenticationValid',
      status: 'False',
      reason: 'Invalid',
      message: '',
      lastTransitionTime: now,
    } as const
    const status = { ...readyStatus, conditions: [...readyStatus.conditions, said] }
    expect(statusOf(observed({ metadata: held, status })).conditions?.map(({ type }) => type)).to.deep.equal(['Ready'])
    const authentication = {
      jwt: [{ issuer: { url: 'https://x', audiences: ['y'] }, claimMappings: { username: {} } }],
    }
    const kept = plan(observed({ metadata: held, spec: { authentication }, status }))
    expect(kept.map((step) => step.do)).to.deep.equal([])
  })

  it('keeps lastTransitionTime of an unchanged condition', () => {
    const given = observed({ metadata: { ...held, generation: 4 }, status: readyStatus })
    expect(statusOf(given).conditions).to.deep.equal([{ ...servedCondition, observedGeneration: 4 }])
  })
  it('removes a direct address that no longer exists', () => {
    const given = observed({ metadata: held, status: readyStatus, urls: { url: urls.url } })
    expect(statusOf(given)).not.to.have.property('directURL')
  })
  it('names the objects that are left and the members that hold them', () => {
    const { conditions = [] } = statusOf(observed({ metadata: deleting, status: readyStatus, content }))
    expect(conditions.map(({ type, status, reason }) => [type, status, reason])).to.deep.equal([
      ['Ready', 'False', 'Deleting'],
      ['ContentDeleted', 'False', 'ContentRemains'],
    ])
    expect(conditions[1]?.message).to.equal(
      '2 objects are left: 2 deployments.apps held by finalizer "syncer.kcp.dev/east"',
    )
  })
  for (const [name, ready] of [
    ['root', 'NameNotAllowed'],
    ['a.b', 'NameNotAllowed'],
  ] as const) {
    it(`refuses the name "${name}" with a reason`, () => {
      expect(statusOf(observed({ metadata: { name } })).conditions?.[0]).to.include({ status: 'False', reason: ready })
    })
  }
  it('asks less and less often for what members hold', () => {
    const deletionTimestamp = '2026-01-01T00:00:00Z'
    const object = {
      apiVersion: 'kcp.dev/v1alpha1',
      kind: 'LogicalCluster',
      metadata: { name: 'a', deletionTimestamp },
    }
    const after = (seconds: number): number =>
      contentRetrySeconds(object as LogicalCluster, Date.parse(deletionTimestamp) + seconds * 1000)
    expect([0, 20, 100, 600, 86_400].map(after)).to.deep.equal([1, 1, 5, 30, 30])
  })
})
