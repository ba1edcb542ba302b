import { expect } from 'chai'
import { parse } from 'yaml'
import { kubeconfigText } from './kubeconfig-text.ts'
import { loadKubeconfig } from './kubeconfig.ts'

const content = {
  name: 'true',
  server: 'https://127.0.0.1:6443/clusters/true',
  ca: '-----BEGIN CERTIFICATE-----\nQQ==\n-----END CERTIFICATE-----\n',
  cert: 'c'.repeat(3000),
  key: 'k',
}

describe('a generated kubeconfig', () => {
  it('has one context, which is current, and embeds all certificates', () => {
    const read = parse(kubeconfigText(content)) as Record<string, unknown>
    expect(read['current-context']).to.equal('true')
    expect(read['contexts']).to.deep.equal([{ name: 'true', context: { cluster: 'true', user: 'true-admin' } }])
    expect(read['clusters']).to.deep.equal([
      {
        name: 'true',
        cluster: { server: content.server, 'certificate-authority-data': Buffer.from(content.ca).toString('base64') },
      },
    ])
    expect(read).to.have.nested.property('users[0].user.client-key-data', Buffer.from('k').toString('base64'))
  })

  it('has a token instead where it is made with one', () => {
    const { cert: _cert, key: _key, ...rest } = content
    const read = parse(kubeconfigText({ ...rest, token: 'abc' })) as Record<string, unknown>
    expect(read['users']).to.deep.equal([{ name: 'true-admin', user: { token: 'abc' } }])
  })

  it('is accepted by our own client, also without a certificate authority', async () => {
    const read = await loadKubeconfig({ text: kubeconfigText(content) })
    expect(read).to.deep.include({ server: content.server, context: 'true' })
  })
})
