import { expect } from 'chai'
import { parse } from 'yaml'
import { loadKubeconfig } from '#client/index.ts'
import {
  frameOf,
  hashAnnotation,
  hashOf,
  ownerAnnotation,
  planSecret,
  renewAfterAnnotation,
  type Secret,
  secretDataOf,
  secretRefOf,
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

const decode = (text: string | undefined): string => Buffer.from(text ?? '', 'base64').toString()
const access = { cluster: 'acme', server: 'https://kcp.example/clusters/acme', ca: 'CA' }
const certificate = { ...access, cert: 'CERT', key: 'KEY' }
const base64 = (text: string): string => Buffer.from(text).toString('base64')

describe('a Secret with a kubeconfig', () => {
  it('is called NAME-kubeconfig for Cluster API, and as the entry says otherwise', () => {
    const entry = { namespace: 'capi', name: 'acme' }
    expect(secretRefOf({ ...entry, format: 'ClusterAPI' })).to.deep.equal({
      namespace: 'capi',
      name: 'acme-kubeconfig',
    })
    expect(secretRefOf({ ...entry, format: 'Flux' })).to.deep.equal(entry)
    expect(secretRefOf({ ...entry, format: 'ArgoCD' })).to.deep.equal(entry)
  })

  it('has the type and the labels that its tool looks for, and the label of ours', () => {
    const ours = { 'kcp.dev/kubeconfig': 'true' }
    expect(frameOf('ClusterAPI')).to.deep.equal({ type: 'cluster.x-k8s.io/secret', labels: ours })
    expect(frameOf('Flux')).to.deep.equal({
      type: 'Opaque',
      labels: { ...ours, 'reconcile.fluxcd.io/watch': 'Enabled' },
    })
    const labels = { ...ours, 'argocd.argoproj.io/secret-type': 'cluster' }
    expect(frameOf('ArgoCD')).to.deep.equal({ type: 'Opaque', labels })
  })

  for (const format of ['ClusterAPI', 'Flux'] as const)
    it(`has a kubeconfig under the key value for ${format}`, async () => {
      const data = secretDataOf(format, certificate)
      expect(Object.keys(data)).to.deep.equal(['value'])
      const read = await loadKubeconfig({ text: decode(data['value']) })
      expect(read).to.deep.include({ server: access.server, context: 'acme' })
      const { users } = parse(decode(secretDataOf(format, { ...access, token: 'T' })['value'])) as { users: unknown[] }
      expect(users).to.deep.equal([{ name: 'acme-admin', user: { token: 'T' } }])
    })

  it('has name, server and config for Argo CD, with a certificate or a token', () => {
    const { name, server, config, ...rest } = secretDataOf('ArgoCD', certificate)
    expect(rest).to.deep.equal({})
    expect([decode(name), decode(server)]).to.deep.equal(['acme', access.server])
    const caData = base64('CA')
    expect(JSON.parse(decode(config))).to.deep.equal({
      tlsClientConfig: { insecure: false, caData, certData: base64('CERT'), keyData: base64('KEY') },
    })
    expect(JSON.parse(decode(secretDataOf('ArgoCD', { ...access, token: 'T' })['config']))).to.deep.equal({
      bearerToken: 'T',
      tlsClientConfig: { insecure: false, caData },
    })
  })
})
