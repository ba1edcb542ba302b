import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { missingIngressClass } from './missing-class.ts'

const ingress = (spec: object): KubeObject => ({
  apiVersion: 'networking.k8s.io/v1',
  kind: 'Ingress',
  metadata: { name: 'shop' },
  spec,
})

describe('the class of an Ingress that a member lacks', () => {
  for (const { title, spec, classes, missing } of [
    { title: 'is the one that it names', spec: { ingressClassName: 'edge' }, classes: ['nginx'], missing: 'edge' },
    { title: 'is none that the member has', spec: { ingressClassName: 'edge' }, classes: ['edge'] },
    { title: 'is none where it names no class', spec: {}, classes: [] },
    { title: 'is none while the classes of the member are not known', spec: { ingressClassName: 'edge' } },
  ])
    it(title, () => {
      const found = missingIngressClass(
        ingress(spec),
        classes?.map((name) => ({ name })),
      )
      expect(found).to.equal(missing)
    })
})
