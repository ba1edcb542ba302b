import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { placedOnAnnotation, syncerFinalizer, type CopyState } from '#crds/index.ts'
import { NamespaceView } from './namespace-view.ts'

interface Given {
  readonly title: string
  readonly state?: CopyState
  readonly finalizer?: boolean
  readonly deleting?: boolean
  readonly present: boolean
  /** Default: as `present`. */
  readonly refers?: boolean
}

const rows: readonly Given[] = [
  { title: 'a finalizer without a decision of the scheduler', finalizer: true, present: false },
  { title: 'a finalizer without a decision, on its way out', finalizer: true, deleting: true, present: false },
  { title: 'a copy that is only assumed', state: 'Assumed', present: false },
  { title: 'a copy that should be there', state: 'Syncing', present: true },
  { title: 'a copy that is leaving and still there', state: 'Terminating', finalizer: true, present: true },
  { title: 'a copy that has left', state: 'Terminating', present: false },
  { title: 'requests that are forwarded', state: 'Forwarding', finalizer: true, present: true, refers: false },
  { title: 'a copy of a deleted workload', state: 'Serving', finalizer: true, deleting: true, present: true },
  { title: 'a copy of a deleted workload that has left', state: 'Serving', deleting: true, present: false },
]

function workload({ state, finalizer = false, deleting = false }: Given): KubeObject {
  const annotations = state === undefined ? {} : { [placedOnAnnotation]: JSON.stringify({ east: { state } }) }
  const spec = { template: { spec: { containers: [], volumes: [{ name: 's', secret: { secretName: 'keys' } }] } } }
  const metadata = {
    name: 'web',
    annotations,
    ...(finalizer && { finalizers: [syncerFinalizer('east')] }),
    ...(deleting && { deletionTimestamp: '2026-01-01T00:00:00Z' }),
  }
  return { apiVersion: 'apps/v1', kind: 'Deployment', metadata, spec }
}

function viewOf(workloads: readonly KubeObject[], isReached = false): NamespaceView {
  return new NamespaceView({ workloads, claims: [], ingresses: [], accounts: [] }, 'east', () => isReached)
}

/** A workload that refers to one Secret. */
function named(name: string, state: CopyState, secretName: string): KubeObject {
  const object = workload({ title: '', state, finalizer: true, present: true })
  const spec = { template: { spec: { containers: [], volumes: [{ name: 's', secret: { secretName } }] } } }
  return { ...object, metadata: { ...object.metadata, name }, spec }
}

function ingress(secretName: string): KubeObject {
  const metadata = { name: 'site', namespace: 'shop' }
  return { apiVersion: 'networking.k8s.io/v1', kind: 'Ingress', metadata, spec: { tls: [{ secretName }] } }
}

describe('what a namespace has in a member', () => {
  for (const row of rows)
    it(`${row.title}: ${row.present ? 'its Services and Secrets are wanted' : 'nothing'}`, () => {
      const view = viewOf([workload(row)])
      expect(view.present).to.equal(row.present)
      expect(view.servicesWanted).to.equal(row.present)
      expect(view.refersTo('secrets/keys')).to.equal(row.refers ?? row.present)
    })

  it('serves from when the first of its workloads serves until all of them leave', () => {
    const at = (state: CopyState): KubeObject => named('web', state, 'keys')
    const view = viewOf([at('Syncing')], true)
    const seen: boolean[] = [view.serves]
    for (const [before, after] of [
      ['Syncing', 'Available'],
      ['Available', 'Serving'],
      ['Serving', 'Draining'],
      ['Draining', 'Forwarding'],
    ] as const) {
      view.changeWorkload({ before: at(before), after: at(after) })
      seen.push(view.serves)
    }
    expect(seen).to.deep.equal([false, false, true, false, false])
    const other = named('other', 'Serving', 'keys')
    view.changeWorkload({ before: undefined, after: other })
    expect(view.serves).to.equal(true)
    view.changeWorkload({ before: other, after: undefined })
    view.changeWorkload({ before: at('Forwarding'), after: undefined })
    expect([view.serves, view.present, view.servicesWanted]).to.deep.equal([false, false, true])
  })
  it('refers to what any of its workloads refers to, until the last of them goes', () => {
    const [one, other] = [named('one', 'Serving', 'shared'), named('other', 'Serving', 'shared')]
    const view = viewOf([one, other])
    expect(view.changeWorkload({ before: one, after: undefined })).to.deep.equal([])
    expect(view.refersTo('secrets/shared')).to.equal(true)
    const changed = named('other', 'Serving', 'own')
    expect(view.changeWorkload({ before: other, after: changed })).to.have.members(['secrets/own', 'secrets/shared'])
    expect(view.references()).to.deep.equal(new Set(['serviceaccounts/default', 'secrets/own']))
    expect(view.changeWorkload({ before: changed, after: named('other', 'Forwarding', 'own') })).to.have.members([
      'serviceaccounts/default',
      'secrets/own',
    ])
    expect([view.present, view.serves]).to.deep.equal([true, false])
  })
  it('refers to the certificates of its Ingresses as long as a workload is there', () => {
    const view = viewOf([])
    const site = ingress('certificate')
    expect(view.changeIngress({ before: undefined, after: site })).to.deep.equal([])
    expect(view.refersTo('secrets/certificate')).to.equal(false)
    const web = named('web', 'Serving', 'keys')
    expect(view.changeWorkload({ before: undefined, after: web })).to.include('secrets/certificate')
    expect(view.changeIngress({ before: site, after: ingress('new') })).to.have.members([
      'secrets/certificate',
      'secrets/new',
    ])
    expect(view.changeWorkload({ before: web, after: undefined })).to.include('secrets/new')
    expect(view.refersTo('secrets/new')).to.equal(false)
  })
  it('refers to the pull Secrets of a ServiceAccount as long as a workload uses that', () => {
    const account = (secret: string): KubeObject => ({
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: { name: 'default', namespace: 'shop' },
      imagePullSecrets: [{ name: secret }],
    })
    const view = viewOf([])
    expect(view.changeAccount({ before: undefined, after: account('pull') })).to.deep.equal([])
    expect(view.refersTo('secrets/pull')).to.equal(false)
    const [web, other] = [named('web', 'Serving', 'keys'), named('other', 'Serving', 'keys')]
    expect(view.changeWorkload({ before: undefined, after: web })).to.include('secrets/pull')
    expect(view.changeWorkload({ before: undefined, after: other })).not.to.include('secrets/pull')
    expect(view.changeAccount({ before: account('pull'), after: account('new') })).to.have.members([
      'secrets/pull',
      'secrets/new',
    ])
    expect(view.changeWorkload({ before: web, after: undefined })).not.to.include('secrets/new')
    expect(view.references()).to.include('secrets/new').and.not.include('secrets/pull')
    expect(view.changeWorkload({ before: other, after: undefined })).to.include('secrets/new')
    expect(view.refersTo('secrets/new')).to.equal(false)
  })
  it('is the same after any changes as if it was read anew', () => {
    let seed = 7
    const random = (below: number): number => (seed = (seed * 1103515245 + 12345) % 2 ** 31) % below
    const states: readonly CopyState[] = ['Assumed', 'Serving', 'Draining', 'Forwarding', 'Terminating']
    const now = new Map<string, KubeObject>()
    const view = viewOf([])
    for (let step = 0; step < 500; step++) {
      const name = `w${random(6)}`
      const before = now.get(name)
      const after = random(4) === 0 ? undefined : named(name, states[random(states.length)]!, `s${random(3)}`)
      view.changeWorkload({ before, after })
      if (after === undefined) now.delete(name)
      else now.set(name, after)
      const fresh = viewOf([...now.values()])
      expect([view.present, view.serves, view.references()]).to.deep.equal([
        fresh.present,
        fresh.serves,
        fresh.references(),
      ])
    }
  })
})
