import { expect } from 'chai'
import { parse } from 'yaml'
import { loadKubeconfig } from '#client/index.ts'
import { frameOf, secretDataOf, secretRefOf } from './secret-format.ts'

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
