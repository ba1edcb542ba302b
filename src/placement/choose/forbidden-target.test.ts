import { expect } from 'chai'
import type { MemberCluster } from '#crds/index.ts'
import { choose } from './choose.ts'
import { noDemand } from '#placement/rules/candidate.ts'
import { forbiddenTarget, type TargetRules } from './forbidden-target.ts'
import { parseTarget } from '#placement/rules/target.ts'

const member = (name: string, labels = {}, spec: MemberCluster['spec'] = {}): MemberCluster => ({
  apiVersion: 'kcp.dev/v1alpha1',
  kind: 'MemberCluster',
  metadata: { name, labels },
  spec,
})
const members = [
  member('berlin', { region: 'eu' }),
  member('paris', { region: 'eu' }),
  member('boston', { region: 'us' }),
  member('vault', { region: 'eu' }, { logicalClusterSelector: { matchLabels: { tier: 'bank' } } }),
]
const inEurope = { placement: 'eu-only', require: { matchLabels: { region: 'eu' } } }
const notParis = { placement: 'no-paris', clusters: ['berlin', 'boston', 'later'] }

describe('a target that admins forbid', () => {
  for (const { title, target, bounds = [], expected, clusterLabels } of [
    {
      title: 'is named with the rule and with what is allowed',
      target: 'boston',
      bounds: [inEurope],
      expected:
        'Placement "eu-only" of the administrators does not allow member cluster "boston"; allowed: "berlin", "paris"',
    },
    {
      title: 'is one that any rule forbids',
      target: 'berlin,paris',
      bounds: [inEurope, notParis],
      expected: 'Placement "no-paris" of the administrators does not allow member cluster "paris"; allowed: "berlin"',
    },
    {
      title: 'is one that does not admit the logical cluster',
      target: 'vault',
      expected: 'member cluster "vault" does not admit this logical cluster; allowed: "berlin", "boston", "paris"',
    },
    { title: 'is not one that admits it', target: 'vault', clusterLabels: { tier: 'bank' } },
    { title: 'is not a member that may join later', target: 'later', bounds: [inEurope, notParis] },
    {
      title: 'is a member that may join later, if a rule lists others',
      target: 'unknown',
      bounds: [notParis],
      expected:
        'Placement "no-paris" of the administrators does not allow member cluster "unknown"; allowed: "berlin", "boston"',
    },
    { title: 'is not "none"', target: 'none', bounds: [notParis] },
    {
      title: 'says when nothing is allowed',
      target: 'boston',
      bounds: [inEurope, { placement: 'nothing', clusters: ['boston'] }],
      expected:
        'Placement "eu-only" of the administrators does not allow member cluster "boston"; no member cluster is allowed',
    },
  ] as (Partial<TargetRules> & { title: string; target: string; expected?: string })[])
    it(title, () => expect(forbiddenTarget(parseTarget(target), { bounds, members, clusterLabels })).to.equal(expected))

  it('is not named to a tenant that asks for no member', () => {
    const candidates = [
      { name: 'boston', labels: { region: 'us' }, ready: true, state: 'Active', admits: true, load: 0 },
      { name: 'vault', ready: true, state: 'Active', admits: false, load: 0 },
    ] as const
    const demand = { ...noDemand, bounds: [inEurope] }
    const { held } = choose({ target: { kind: 'best' }, demand, candidates, current: [] })
    expect(held.map(({ message }) => message)).to.deep.equal([
      'Placement "eu-only" of the administrators does not allow a member cluster; a member cluster does not admit this logical cluster',
    ])
  })
})
