import { expect } from 'chai'
import { logicalClusters, memberClusters } from '#crds/index.ts'
import { MemberApis } from '#operator/exported-apis/member-apis.ts'
import type { OperatorContext } from '#operator/framework/operator-context.ts'
import { silentLogger } from '#telemetry/index.ts'
import { memberExports } from './member-exports.ts'

/** A context whose informers know these objects. */
function contextWith(objects: Readonly<Record<string, readonly object[]>>): OperatorContext {
  const of = ({ resource }: { resource: string }): object => {
    const all = (objects[resource] ?? []) as { metadata: { name: string } }[]
    const get = (name: string): object | undefined => all.find(({ metadata }) => metadata.name === name)
    return { store: { get, list: () => all }, onChange: () => () => undefined }
  }
  const virtual = () => ({ list: () => new Promise(() => undefined) })
  return { informers: { of }, virtual, log: silentLogger } as unknown as OperatorContext
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
  const exported = memberExports(member, {
    apis: new MemberApis(),
    signal: AbortSignal.abort(),
    context: contextWith({
      [memberClusters.resource]: [member],
      [logicalClusters.resource]: [
        cluster('gold', { tier: 'gold' }),
        { ...cluster('silent', { tier: 'gold' }), status: notServed },
        cluster('silver', { tier: 'silver' }),
        cluster('leaving', { tier: 'gold' }, { deletionTimestamp: '2026-01-01T00:00:00Z' }),
      ],
    }),
  })

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
