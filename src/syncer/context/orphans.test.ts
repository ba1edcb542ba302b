import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { Change } from '#client/index.ts'
import {
  locatorAnnotation,
  memberAnnotation,
  memberStatusAnnotation,
  placedOnAnnotation,
  templateAnnotation,
} from '#crds/index.ts'
import { locatorOf } from './locator.ts'
import { isOrphanIn, OrphaningDeletions } from './orphans.ts'

const owner = { apiVersion: 'apps/v1', kind: 'StatefulSet', name: 'db', uid: 'u' }
const object = (kind: string, metadata: KubeObject['metadata']): KubeObject => ({ apiVersion: 'v1', kind, metadata })

describe('an object that a member made', () => {
  const report = { [memberStatusAnnotation('east')]: '{"name":"web-5"}' }
  for (const { title, kind = 'Pod', metadata, expected } of [
    {
      title: 'has its controller',
      metadata: {
        annotations: { [memberAnnotation]: 'east' },
        ownerReferences: [{ ...owner, controller: true }],
      },
      expected: false,
    },
    { title: 'has no owner any more', metadata: { annotations: { [memberAnnotation]: 'east' } }, expected: true },
    {
      title: 'has an owner that is no controller',
      metadata: { annotations: { [memberAnnotation]: 'east' }, ownerReferences: [owner] },
      expected: true,
    },
    { title: 'is of another member', metadata: { annotations: { [memberAnnotation]: 'west' } }, expected: false },
    {
      title: 'is the pod of a tenant',
      metadata: { annotations: { [memberAnnotation]: 'east', [placedOnAnnotation]: '{}' } },
      expected: false,
    },
    {
      title: 'is a ReplicaSet on which the member reports',
      kind: 'ReplicaSet',
      metadata: { annotations: { [templateAnnotation]: 'h', ...report } },
      expected: true,
    },
    {
      title: 'is a ReplicaSet on which only another member reports',
      kind: 'ReplicaSet',
      metadata: { annotations: { [templateAnnotation]: 'h', [memberStatusAnnotation('west')]: '{}' } },
      expected: false,
    },
  ])
    it(`and ${title} is ${expected ? 'an' : 'no'} orphan`, () =>
      expect(isOrphanIn(object(kind, metadata), 'east')).to.equal(expected))

  it('is no copy of the workload whose annotations it took over, also without its controller', () => {
    const locator = { cluster: 'acme', clusterId: 'abcdefghij', namespace: 'shop', name: 'web', uid: 'u' }
    const annotations = { [locatorAnnotation]: JSON.stringify(locator) }
    expect(locatorOf(object('ReplicaSet', { name: 'web-5', annotations }))).to.equal(undefined)
    expect(locatorOf(object('ReplicaSet', { name: 'web', annotations }))).to.include({ uid: 'u' })
    expect(locatorOf(object('Namespace', { name: 'abcdefghij-web', annotations }))).to.include({ uid: 'u' })
  })
})

describe('the deletion of a workload without its dependents', () => {
  const deletionTimestamp = '2026-11-26T12:00:00Z'
  let changed: (change: Change<KubeObject>) => void = () => undefined
  const deletions = new OrphaningDeletions([
    {
      onChange(listener) {
        changed = listener
        return () => undefined
      },
    },
  ])

  it('is remembered when garbage collection has removed the finalizer', () => {
    const after = object('StatefulSet', { name: 'db', uid: 'u', deletionTimestamp, finalizers: ['orphan'] })
    changed({ key: 'acme|shop/db', before: undefined, after })
    changed({ key: 'acme|shop/db', before: after, after: object('StatefulSet', { name: 'db', uid: 'u' }) })
    expect(deletions.has('u')).to.equal(true)
  })

  it('has not begun by the finalizer alone, or by another deletion', () => {
    changed({ key: 'a|b/c', before: undefined, after: object('Job', { name: 'c', uid: 'v', finalizers: ['orphan'] }) })
    changed({ key: 'a|b/d', before: undefined, after: object('Job', { name: 'd', uid: 'w', deletionTimestamp }) })
    expect([deletions.has('v'), deletions.has('w'), deletions.has(undefined)]).to.deep.equal([false, false, false])
  })
})
