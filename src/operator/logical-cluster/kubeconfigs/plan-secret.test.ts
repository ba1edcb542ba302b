import { expect } from 'chai'
import {
  hashAnnotation,
  hashOf,
  ownerAnnotation,
  planSecret,
  renewAfterAnnotation,
  type Secret,
} from './plan-secret.ts'

const now = Date.parse('2026-03-01T00:00:00Z')
const entry = { namespace: 'flux', name: 'acme', format: 'Flux' } as const
const wanted = { entry, uid: 'u1', server: 'https://kcp.example/clusters/acme', ca: 'CA' }
const data = { value: 'eA==' }

function secret({
  annotations = {},
  labels,
  ...more
}: Partial<Secret> & { annotations?: object; labels?: object } = {}) {
  const metadata = {
    name: 'acme',
    labels: { 'kcp.dev/kubeconfig': 'true', 'reconcile.fluxcd.io/watch': 'Enabled', mine: 'too', ...labels },
    annotations: {
      [ownerAnnotation]: 'u1',
      [renewAfterAnnotation]: '2026-03-01T00:00:01Z',
      [hashAnnotation]: hashOf(wanted, data),
      ...annotations,
    },
  }
  return { apiVersion: 'v1', kind: 'Secret', type: 'Opaque', metadata, data, ...more } as Secret
}

describe('the plan for the Secret of an entry', () => {
  for (const { title, given, as = wanted, step } of [
    { title: 'writes one that is missing', given: undefined, step: { do: 'write', why: 'Missing' } },
    { title: 'leaves one as it is until its renewal', given: secret(), step: { do: 'nothing', dueMs: now + 1000 } },
    {
      title: 'renews one when its time has come',
      given: secret({ annotations: { [renewAfterAnnotation]: '2026-03-01T00:00:00Z' } }),
      step: { do: 'write', why: 'RenewalDue' },
    },
    {
      title: 'renews one without a time',
      given: secret({ annotations: { [renewAfterAnnotation]: 'soon' } }),
      step: { do: 'write', why: 'RenewalDue' },
    },
    {
      title: 'refuses one that somebody else made',
      given: secret({ annotations: { [ownerAnnotation]: undefined } }),
      step: { do: 'refuse' },
    },
    {
      title: 'refuses one of another LogicalCluster, or of a former one with this name',
      given: secret({ annotations: { [ownerAnnotation]: 'u0' } }),
      step: { do: 'refuse' },
    },
    {
      title: 'replaces one of another type',
      given: secret({ type: 'cluster.x-k8s.io/secret' }),
      step: { do: 'replace' },
    },
    {
      title: 'writes one again whose data was changed',
      given: secret({ data: { value: 'eQ==' } }),
      step: { do: 'write', why: 'Changed' },
    },
    {
      title: 'writes one again without the label of its format',
      given: secret({ labels: { 'reconcile.fluxcd.io/watch': 'Disabled' } }),
      step: { do: 'write', why: 'Changed' },
    },
    {
      title: 'writes one again when the address has changed',
      given: secret(),
      as: { ...wanted, server: 'https://moved.example/clusters/acme' },
      step: { do: 'write', why: 'Changed' },
    },
    {
      title: 'writes one again when the subject has changed',
      given: secret(),
      as: { ...wanted, entry: { ...entry, subject: { kind: 'User', name: 'flux' } as const } },
      step: { do: 'write', why: 'Changed' },
    },
  ])
    it(title, () => expect(planSecret(as, given, now)).to.deep.equal(step))
})
