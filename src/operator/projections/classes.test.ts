import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { classKinds, projectedAnnotation, type MemberClass, type MemberCluster } from '#crds/index.ts'
import { planClasses, projectedClasses } from './classes.ts'

const [storage] = classKinds
const fast = { name: 'fast', provider: 'a.example', volumeBindingMode: 'Immediate' }
const defaultMark = 'storageclass.kubernetes.io/is-default-class'

const member = (name: string, items: MemberClass[]): MemberCluster => ({
  apiVersion: 'kcp.dev/v1alpha1',
  kind: 'MemberCluster',
  metadata: { name },
  status: { classes: [{ kind: 'StorageClass', items }] },
})
const shown = (members: MemberCluster[]): Record<string, unknown> => {
  const objects = storage === undefined ? [] : projectedClasses(storage, members)
  return Object.fromEntries<unknown>(
    objects.map(({ metadata, ...one }) => [metadata.name ?? '', [one['provisioner'], metadata.annotations]]),
  )
}
const steps = (members: MemberCluster[], existing: KubeObject[]): string[] =>
  planClasses(members, (kind) => (kind === storage ? existing : [])).map((step) =>
    step.do === 'apply' ? `apply ${step.object.metadata.name ?? ''}` : `delete ${step.name}`,
  )
const object = (name: string, fields: object, annotations = {}): KubeObject => ({
  apiVersion: 'storage.k8s.io/v1',
  kind: 'StorageClass',
  metadata: { name, uid: 'u', annotations },
  ...fields,
})

describe('the classes that a logical cluster shows', () => {
  it('are those of all members, where they differ as the first member by name has them', () => {
    const other = { ...fast, provider: 'b.example' }
    expect(shown([member('west', [other, { name: 'slow', provider: 'c' }]), member('east', [fast])])).to.deep.equal({
      fast: ['a.example', { [projectedAnnotation]: 'east,west' }],
      slow: ['c', { [projectedAnnotation]: 'west' }],
    })
  })

  it('have a default if all members have the same', () => {
    const marked = { ...fast, isDefault: true }
    const marks = (members: MemberCluster[]): boolean => JSON.stringify(shown(members)).includes(defaultMark)
    expect(marks([member('east', [marked]), member('west', [marked])])).to.equal(true)
    expect(marks([member('east', [marked]), member('west', [fast])])).to.equal(false)
  })

  const asShown = { provisioner: 'a.example', volumeBindingMode: 'Immediate' }
  const ofEast = { [projectedAnnotation]: 'east' }
  for (const { title, existing, expected } of [
    { title: 'are created', existing: [], expected: ['apply fast'] },
    { title: 'are not written again', existing: [object('fast', asShown, ofEast)], expected: [] },
    { title: 'are left alone if a tenant made them', existing: [object('fast', { provisioner: 'own' })], expected: [] },
    {
      title: 'are made anew when a field has changed that nobody can change',
      existing: [object('fast', { ...asShown, provisioner: 'before' }, ofEast)],
      expected: ['delete fast'],
    },
    {
      title: 'are updated when another member has them too',
      existing: [object('fast', asShown, { [projectedAnnotation]: 'east,west' })],
      expected: ['apply fast'],
    },
    {
      title: 'are deleted when no member has them',
      existing: [object('fast', asShown, ofEast), object('gone', asShown, ofEast)],
      expected: ['delete gone'],
    },
  ]) {
    it(title, () => expect(steps([member('east', [fast])], existing)).to.deep.equal(expected))
  }
})
