import { expect } from 'chai'
import { refuseByExpression } from './expression-match.ts'
import { noDemand, type Candidate } from '#placement/rules/candidate.ts'
import { choose } from './choose.ts'

const candidate: Candidate = {
  name: 'east',
  ready: true,
  state: 'Active',
  admits: true,
  load: 0,
  labels: { region: 'eu', cores: '64' },
  taints: [{ key: 'gpu', effect: 'NoSchedule' }],
}

describe('an expression about a member', () => {
  for (const { expression, why } of [
    { expression: "cluster.labels.region in ['eu', 'us']" },
    { expression: "int(cluster.labels['cores']) >= 32 && cluster.name.startsWith('e')" },
    { expression: "cluster.taints.exists(t, t.key == 'gpu')" },
    { expression: "cluster.labels.region == 'us'", why: 'is false' },
    { expression: "cluster.labels.zone == 'a'", why: 'fails: no such key: zone' },
    { expression: 'cluster.', why: 'is invalid' },
    { expression: 'size(cluster.labels)', why: 'is invalid: it must be true or false' },
  ])
    it(`${expression} ${why ?? 'holds'}`, () => {
      const refusal = refuseByExpression(expression, candidate)
      if (why === undefined) expect(refusal).to.equal(undefined)
      else expect(refusal).to.contain(why)
    })

  it('keeps workloads away, and says whose it is', () => {
    const demand = { ...noDemand, requireCel: { placement: 'home', expression: "cluster.labels.region == 'us'" } }
    const { rejected } = choose({ target: { kind: 'best' }, candidates: [candidate], current: [], demand })
    expect(rejected).to.deep.equal([
      {
        cluster: 'east',
        reason: 'ExpressionDoesNotMatch',
        message: 'for member cluster "east", the expression that Placement "home" requires is false',
      },
    ])
  })
  it('of an admin is a bound, whoever chooses', () => {
    const demand = { ...noDemand, bounds: [{ placement: 'all', cel: "cluster.labels.region == 'us'" }] }
    const { held } = choose({
      target: { kind: 'members', names: ['east'] },
      candidates: [candidate],
      current: [],
      demand,
    })
    expect(held[0]?.reason).to.equal('ForbiddenByPlacement')
  })
})
