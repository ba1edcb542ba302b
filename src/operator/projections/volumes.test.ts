import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { memberAnnotation, volumeAnnotation } from '#crds/index.ts'
import { boundVolumeOf, planVolume, type Seen } from './volumes.ts'

const claim = (parts: Partial<KubeObject> = {}): KubeObject => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name: 'data', namespace: 'shop', uid: 'c', annotations: { [volumeAnnotation]: 'east' } },
  spec: { volumeName: 'pvc-1', storageClassName: 'fast', volumeMode: 'Filesystem' },
  status: { phase: 'Bound', capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'] },
  ...parts,
})
const classesOf = (): { name: string; provider: string; reclaimPolicy: string }[] => [
  { name: 'fast', provider: 'fast.example', reclaimPolicy: 'Delete' },
]
const plan = (seen: Partial<Seen>) => planVolume('pvc-1', { claims: [claim()], volume: undefined, classesOf, ...seen })
const [first] = plan({})
const shown = (first?.do === 'apply' ? first.volume : undefined) as KubeObject
const stored = (phase: string, parts: Partial<KubeObject> = {}): KubeObject => ({
  ...shown,
  metadata: { ...shown.metadata, uid: 'v' },
  status: { phase },
  ...parts,
})

describe('the volume of a claim that a member has bound', () => {
  it('is shown with what the claim tells', () => {
    expect(plan({})).to.deep.equal([
      {
        do: 'apply',
        volume: {
          apiVersion: 'v1',
          kind: 'PersistentVolume',
          metadata: { name: 'pvc-1', annotations: { [memberAnnotation]: 'east' } },
          spec: {
            capacity: { storage: '1Gi' },
            accessModes: ['ReadWriteOnce'],
            persistentVolumeReclaimPolicy: 'Delete',
            storageClassName: 'fast',
            volumeMode: 'Filesystem',
            claimRef: { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace: 'shop', name: 'data', uid: 'c' },
            csi: { driver: 'member.kcp.dev', volumeHandle: 'pvc-1' },
          },
        },
      },
      { do: 'setPhase', phase: 'Bound' },
    ])
    expect(plan({ volume: stored('Bound') })).to.deep.equal([])
  })

  it('stays with its claim if another member has bound a claim to a volume of this name', () => {
    const metadata = { name: 'a', namespace: 'shop', uid: 'other', annotations: { [memberAnnotation]: 'west' } }
    const claims = [claim({ metadata }), claim()]
    expect(plan({ claims, volume: stored('Bound') })).to.deep.equal([])
    expect(plan({ claims: [claim({ metadata })], volume: stored('Bound') }).map((step) => step.do)).to.include('delete')
  })

  it('goes with the claim', () => {
    const steps = plan({ claims: [], volume: stored('Bound') })
    expect(steps).to.deep.equal([
      { do: 'setPhase', phase: 'Released' },
      { do: 'delete', uid: 'v' },
    ])
  })

  it('grows with the claim', () => {
    const grown = claim({ status: { phase: 'Bound', capacity: { storage: '2Gi' }, accessModes: ['ReadWriteOnce'] } })
    expect(plan({ claims: [grown], volume: stored('Bound') }).map((step) => step.do)).to.deep.equal(['apply'])
  })

  it('leaves a volume of that name alone that the tenant made', () => {
    const volume = stored('Available', { metadata: { name: 'pvc-1', uid: 'v' } })
    expect(plan({ volume })).to.deep.equal([])
    expect(plan({ claims: [], volume })).to.deep.equal([])
  })

  for (const { title, given } of [
    { title: 'that is pending', given: claim({ status: { phase: 'Pending' } }) },
    { title: 'that no member has', given: claim({ metadata: { name: 'data' } }) },
  ])
    it(`is none of a claim ${title}`, () => expect(boundVolumeOf(given)).to.equal(undefined))
})
