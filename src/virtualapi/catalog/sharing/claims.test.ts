import { expect } from 'chai'
import type { AcceptedClaim, PermissionClaim } from '#crds/index.ts'
import type { ViewedObject } from '#virtualapi/request/request-view.ts'
import { rulesOf } from './claims.ts'
import { textsAt } from './reference-index.ts'

const object = (name: string, more: Partial<ViewedObject> = {}): ViewedObject => ({
  namespace: 'default',
  name,
  labels: undefined,
  object: () => ({ metadata: { name } }),
  ...more,
})

/** What is in force for Secrets. */
function ruleFor(asked: Partial<PermissionClaim>, answered: Partial<AcceptedClaim>) {
  const claim = { group: '', resource: 'secrets' }
  const answer = { ...claim, state: 'Accepted', ...answered }
  return rulesOf(JSON.stringify([{ ...claim, ...asked }]), JSON.stringify([answer])).get('secrets')
}

describe('permission claims', () => {
  it('give nothing before the consumer accepts them', () => {
    expect(ruleFor({ verbs: ['*'] }, { state: 'Rejected' })).to.equal(undefined)
    expect(rulesOf(JSON.stringify([{ resource: 'secrets', verbs: ['*'] }]), '').size).to.equal(0)
    // An answer to another identity is none.
    expect(ruleFor({ verbs: ['*'], identityHash: 'a' }, { identityHash: 'b' })).to.equal(undefined)
  })

  it('allow the verbs that both sides name', () => {
    const verbs = (asked: string[], answered?: string[]): string[] => {
      const rule = ruleFor({ verbs: asked }, answered === undefined ? {} : { verbs: answered })
      return ['get', 'list', 'create', 'delete'].filter((verb) => rule?.allows(verb, '') === true)
    }
    expect(verbs(['get', 'list'], ['list', 'delete'])).to.deep.equal(['list'])
    expect(verbs(['*'], ['get'])).to.deep.equal(['get'])
    expect(verbs(['get'], ['*'])).to.deep.equal(['get'])
    expect(verbs(['get'])).to.deep.equal(['get'])
    expect(verbs([], ['*'])).to.deep.equal([])
  })

  it('include subresources that give more than the object only by name', () => {
    const rule = ruleFor({ verbs: ['*'] }, { verbs: ['*'] })
    expect(['status', 'token', 'exec', 'proxy', 'log'].filter((name) => rule?.allows('create', name))).to.deep.equal([
      'status',
    ])
    const named = ruleFor({ verbs: ['*'], subresources: ['token'] }, { verbs: ['*'] })
    // The consumer did not name it.
    expect(named?.allows('create', 'token')).to.equal(false)
    const both = ruleFor({ verbs: ['*'], subresources: ['token'] }, { verbs: ['*'], subresources: ['token'] })
    expect(both?.allows('create', 'token')).to.equal(true)
  })

  it('show the objects that both sides cover', () => {
    const shown = (asked: Partial<PermissionClaim>, answered: Partial<AcceptedClaim>, of: ViewedObject): boolean =>
      ruleFor({ verbs: ['*'], ...asked }, answered)?.matches?.(of) ?? true
    const [a, b] = [object('a'), object('b', { namespace: 'other', labels: { shared: 'yes' } })]
    expect([a, b].map((one) => shown({ namespaces: ['default'] }, {}, one))).to.deep.equal([true, false])
    expect([a, b].map((one) => shown({}, { selector: { matchLabels: { shared: 'yes' } } }, one))).to.deep.equal([
      false,
      true,
    ])
    expect(shown({ objects: [{ name: 'a' }] }, { objects: [{ namespace: 'other' }] }, a)).to.equal(false)
    const cel = 'object.metadata.name.startsWith("a")'
    expect([a, b].map((one) => shown({ cel }, {}, one))).to.deep.equal([true, false])
  })

  it('show nothing by an expression that is invalid, fails or costs too much', () => {
    const list = Array.from({ length: 200 }, (_, i) => i)
    const of = object('a', { object: () => ({ list }) })
    const loop = 'object.list.all(a, object.list.all(b, object.list.all(c, a + b + c >= 0)))'
    for (const cel of ['object.', 'object.none.deeper == 1', loop, '"text"'])
      expect(ruleFor({ verbs: ['*'], cel }, {})?.matches?.(of), cel).to.equal(false)
  })

  it('on events cover both groups', () => {
    const claims = JSON.stringify([{ resource: 'events', verbs: ['*'] }])
    const rules = rulesOf(claims, JSON.stringify([{ resource: 'events', state: 'Accepted' }]))
    expect([...rules.keys()]).to.have.members(['events', 'events.events.k8s.io'])
  })
})

describe('the path of a reference', () => {
  it('leads to a text, to those of a list, or nowhere', () => {
    const of = { spec: { ref: { name: 'a' }, refs: [{ name: 'b' }, { name: 'c' }, { other: 1 }], deep: [[1]] } }
    const paths = ['spec.ref.name', '.spec.refs[*].name', 'spec.none', 'spec.refs.name', 'spec.deep[*]', '__proto__.x']
    expect(paths.map((path) => textsAt(of, path))).to.deep.equal([['a'], ['b', 'c'], [], [], [], []])
  })
})
