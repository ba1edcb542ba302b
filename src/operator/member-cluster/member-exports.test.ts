import { expect } from 'chai'
import type { SharedInformers } from '#client/index.ts'
import { logicalClusters, memberClusters } from '#crds/index.ts'
import { memberExports } from './member-exports.ts'

/** Informers that know these objects. */
function informersOf(objects: Readonly<Record<string, readonly object[]>>): SharedInformers {
  const of = ({ resource }: { resource: string }): object => {
    const all = (objects[resource] ?? []) as { metadata: { name: string } }[]
    const get = (name: string): object | undefined => all.find(({ metadata }) => metadata.name === name)
    return { store: { get, list: () => all }, onChange: () => () => undefined }
  }
  return { of } as unknown as SharedInformers
}

describe('the APIs that a member exports', () => {
  const member = {
    apiVersion: 'kcp.dev/v1alpha1',
    kind: 'MemberCluster',
    metadata: { name: 'east' },
    spec: {
      exportedAPIs: [{ group: 'example.com', resource: 'widgets' }],
      logicalClusterSelector: { matchLabels: { tier: 'gold' } },
    },
  } as const
  const cluster = (name: string, labels: object, more: object = {}): object => ({ metadata: { name, labels, ...more } })
  const notServed = { conditions: [{ type: 'Ready', status: 'False', reason: 'NotServed' }] }
  const exported = memberExports(
    member,
    informersOf({
      [memberClusters.resource]: [member],
      [logicalClusters.resource]: [
        cluster('gold', { tier: 'gold' }),
        { ...cluster('silent', { tier: 'gold' }), status: notServed },
        cluster('silver', { tier: 'silver' }),
        cluster('leaving', { tier: 'gold' }, { deletionTimestamp: '2026-01-01T00:00:00Z' }),
      ],
    }),
    () => undefined,
  )

  for (const [name, isAdmitted] of [
    ['gold', true],
    ['silent', true],
    ['silver', false],
    ['leaving', false],
    ['unknown', false],
  ] as const)
    it(`are ${isAdmitted ? '' : 'not '}those of the logical cluster "${name}"`, () =>
      expect(exported?.admits(name)).to.equal(isAdmitted))
})
