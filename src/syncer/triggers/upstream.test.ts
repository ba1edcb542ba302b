import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import {
  memberAnnotation,
  memberStatusAnnotation,
  memberUidAnnotation,
  placedOnAnnotation,
  syncerFinalizer,
  templateAnnotation,
} from '#crds/index.ts'
import type { SyncContext } from '#syncer/context/sync-context.ts'
import { Views } from '#syncer/context/views.ts'
import { requestKey, type ReconcileRequest } from '#syncer/context/request.ts'
import { upstreamChanged } from './upstream.ts'

const key = 'acme|shop/web'

function deployment(metadata: Partial<KubeObject['metadata']>): KubeObject {
  return { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'web', namespace: 'shop', ...metadata } }
}

/** Keys of the reconciles that a change causes in member `east`. `copy`: it has something under this name. */
function requestsOf(
  resource: 'deployments' | 'replicasets' | 'jobs' | 'pods',
  change: { before?: KubeObject; after?: KubeObject },
  { copy, workload, made = [] }: { copy?: KubeObject; workload?: KubeObject; made?: readonly string[] } = {},
): string[] {
  const requests: string[] = []
  const member = { name: 'east', id: 'east', serviceNetwork: 'None' } as const
  const content = { workloads: [], claims: [], ingresses: [], accounts: [] }
  const store = (object: KubeObject | undefined) => ({ store: { get: () => object } })
  const context = {
    member,
    upstream: {
      ids: { idOf: () => 'abcdefghij' },
      informers: { deployments: store(workload), namespaces: store(undefined) },
    },
    caches: { deployments: store(copy) },
    views: new Views(
      member,
      () => content,
      () => ['shop'],
    ),
    upstreamIn: () => [],
    controlledBy: (resource: string) =>
      made.filter((one) => one.startsWith(resource)).map((one) => ({ metadata: { name: one.split('/')[1] } })),
    slicesWith: () => [],
    nodes: { store: { get: () => undefined } },
    enqueue: (request: ReconcileRequest) => void requests.push(requestKey(request)),
  } as unknown as SyncContext
  upstreamChanged(context, resource, { key, before: change.before, after: change.after })
  return requests
}

describe('a change of a workload upstream', () => {
  const decided = (member: string): KubeObject =>
    deployment({ annotations: { [placedOnAnnotation]: JSON.stringify({ [member]: { state: 'Serving' } }) } })
  const nothing = deployment({})

  for (const { title, change, given } of [
    { title: 'that has a copy in another member', change: { before: decided('west'), after: decided('west') } },
    { title: 'that is nowhere', change: { before: nothing, after: nothing } },
    {
      title: 'that another member reports on',
      change: { after: deployment({ annotations: { [memberStatusAnnotation('west')]: '{}' } }) },
      given: {},
    },
  ])
    it(`${title} causes no reconcile`, () => expect(requestsOf('deployments', change, given)).to.deep.equal([]))

  for (const { title, change, given = {} } of [
    { title: 'that comes', change: { before: nothing, after: decided('east') } },
    { title: 'that goes to another member', change: { before: decided('east'), after: decided('west') } },
    { title: 'that is deleted', change: { before: decided('east') } },
    {
      title: 'that has left all but its finalizer',
      change: { after: deployment({ finalizers: [syncerFinalizer('east')] }) },
    },
    {
      title: 'on which the member reports',
      change: { after: deployment({ annotations: { [memberStatusAnnotation('east')]: '{}' } }) },
    },
    {
      title: 'of which a copy is there though nothing upstream says so',
      change: { before: decided('west'), after: decided('west') },
      given: { copy: nothing },
    },
  ] as {
    title: string
    change: { before?: KubeObject; after?: KubeObject }
    given?: { copy?: KubeObject }
  }[])
    it(`${title} is reconciled, and its history`, () =>
      expect(requestsOf('deployments', change, given)).to.include.members([`deployments ${key}`, `history ${key}`]))

  it('of its ReplicaSet causes a reconcile of the history only in members that run it', () => {
    const ownerReferences = [{ apiVersion: 'apps/v1', kind: 'Deployment', name: 'web', uid: 'u', controller: true }]
    const replicaSet: KubeObject = {
      apiVersion: 'apps/v1',
      kind: 'ReplicaSet',
      metadata: { name: 'web-1', namespace: 'shop', annotations: { [templateAnnotation]: 'x' }, ownerReferences },
    }
    expect(requestsOf('replicasets', { after: replicaSet }, { workload: decided('west') })).to.deep.equal([])
    expect(requestsOf('replicasets', { after: replicaSet }, { workload: decided('east') })).to.deep.equal([
      `history ${key}`,
    ])
  })
})

describe('a change of the copy of an object that the member made', () => {
  const copy = (kind: string, annotations: Record<string, string>): KubeObject => ({
    apiVersion: kind === 'Job' ? 'batch/v1' : 'v1',
    kind,
    metadata: {
      name: 'web',
      namespace: 'shop',
      uid: 'upstream',
      annotations: { [memberAnnotation]: 'east', ...annotations },
    },
  })
  for (const { resource, kind, made, waiting } of [
    { resource: 'jobs', kind: 'Job', made: 'pods/web-x', waiting: 'pod acme|shop/web-x' },
    {
      resource: 'pods',
      kind: 'Pod',
      made: 'persistentvolumeclaims/web-data',
      waiting: 'made:persistentvolumeclaims acme|shop/web-data',
    },
  ] as const) {
    const [created, known] = [copy(kind, {}), copy(kind, { [memberUidAnnotation]: 'member' })]
    it(`reconciles what waits for a ${kind} when it is created, and when it is told the uid of the member's`, () => {
      for (const change of [{ after: created }, { before: created, after: known }])
        expect(requestsOf(resource, change, { made: [made] })).to.include(waiting)
      expect(requestsOf(resource, { before: known, after: known }, { made: [made] })).to.not.include(waiting)
    })
  }
})
