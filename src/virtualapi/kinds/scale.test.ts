import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { StatusError } from '#apimachinery/status/index.ts'
import { builtInResource } from './resources/builtin-resources.ts'
import { applyScale, scaleOf, type Scalable } from './scale.ts'

const info = builtInResource({ group: 'apps', version: 'v1', resource: 'deployments' })
if (info === undefined) throw new Error('deployments are not built in')
const deployments: Scalable = { info }
const custom: Scalable = {
  info,
  custom: {
    columns: [],
    scale: {
      specReplicasPath: '.spec.size',
      statusReplicasPath: '.status.size',
      labelSelectorPath: '.status.selector',
    },
  },
}
const deployment: KubeObject = {
  kind: 'Deployment',
  apiVersion: 'apps/v1',
  metadata: { name: 'web', namespace: 'shop', resourceVersion: '7' },
  spec: {
    replicas: 3,
    selector: { matchLabels: { b: 'c' }, matchExpressions: [{ key: 'a', operator: 'In', values: ['y', 'x'] }] },
  },
  status: { replicas: 2 },
}
const cr: KubeObject = {
  kind: 'Db',
  apiVersion: 'example.com/v1',
  metadata: { name: 'db' },
  spec: { size: 1 },
  status: { size: 1, selector: 'app=db' },
}

describe('the scale subresource', () => {
  it('returns replicas and selector of a built-in kind', () => {
    const { spec, status, metadata } = scaleOf(deployment, deployments)
    expect(spec).to.deep.equal({ replicas: 3 })
    expect(status).to.deep.equal({ replicas: 2, selector: 'a in (x,y),b=c' })
    expect(metadata).to.deep.equal({ name: 'web', namespace: 'shop', resourceVersion: '7' })
  })

  it('uses the paths of a CustomResourceDefinition', () => {
    expect(scaleOf(cr, custom).status).to.deep.equal({ replicas: 1, selector: 'app=db' })
    const scale = { kind: 'Scale', apiVersion: 'autoscaling/v1', metadata: { name: 'db' }, spec: { replicas: 4 } }
    expect(applyScale(cr, scale, custom)['spec']).to.deep.equal({ size: 4 })
  })

  it('does not change its argument, and passes on the resourceVersion as a precondition', () => {
    const scale = scaleOf(deployment, deployments)
    const next = applyScale(deployment, { ...scale, spec: { replicas: 5 } }, deployments)
    expect(next['spec']).to.have.property('replicas', 5)
    expect(next.metadata.resourceVersion).to.equal('7')
    expect(deployment['spec']).to.have.property('replicas', 3)
  })

  it('refuses a negative number', () => {
    const scale = { ...scaleOf(deployment, deployments), spec: { replicas: -1 } }
    expect(() => applyScale(deployment, scale, deployments))
      .to.throw(StatusError)
      .with.nested.property('status.code', 422)
  })
})
