import { expect } from 'chai'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parse, stringify } from 'yaml'
import { inClusterConfig, kubeconfigText, loadKubeconfig } from './kubeconfig.ts'

function config({
  cluster = {},
  user = {},
  context = {},
}: {
  cluster?: object
  user?: object
  context?: object
}): string {
  return stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'c', cluster: { server: 'https://east:6443/', ...cluster } }],
    users: [{ name: 'u', user }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u', ...context } }],
    'current-context': 'x',
  })
}

async function messageOf(work: Promise<unknown>): Promise<string> {
  return await work.then(
    () => 'no error',
    (error: unknown) => (error as Error).message,
  )
}

const base64 = (text: string): string => Buffer.from(text).toString('base64')

describe('a kubeconfig', () => {
  it('gives server, authority, client certificate and token', async () => {
    const text = config({
      cluster: { 'certificate-authority-data': base64('CA'), 'tls-server-name': 'api' },
      user: { 'client-certificate-data': base64('CERT'), 'client-key-data': base64('KEY'), token: 't' },
      context: { namespace: 'shop' },
    })
    const kubeconfig = await loadKubeconfig({ text })
    expect(kubeconfig).to.include({ server: 'https://east:6443', context: 'x', namespace: 'shop' })
    const endpoint = await kubeconfig.endpoint()
    expect(Object.fromEntries(Object.entries(endpoint).map(([k, v]) => [k, String(v)]))).to.deep.equal({
      server: 'https://east:6443',
      ca: 'CA',
      cert: 'CERT',
      key: 'KEY',
      token: 't',
      serverName: 'api',
    })
  })

  describe('from somebody else', () => {
    for (const { given, field } of [
      { given: { user: { exec: { command: '/bin/sh' } } }, field: 'exec' },
      { given: { user: { 'auth-provider': { name: 'gcp' } } }, field: 'auth-provider' },
      { given: { user: { tokenFile: '/etc/shadow' } }, field: 'tokenFile' },
      { given: { user: { 'client-certificate': '/a', 'client-key': '/b' } }, field: 'client-certificate' },
      { given: { user: { username: 'a', password: 'b' } }, field: 'username' },
      { given: { user: { as: 'system:admin' } }, field: 'as' },
      { given: { cluster: { 'certificate-authority': '/etc/shadow' } }, field: 'certificate-authority' },
      { given: { cluster: { 'proxy-url': 'http://evil' } }, field: 'proxy-url' },
      { given: { cluster: { 'insecure-skip-tls-verify': true } }, field: 'insecure-skip-tls-verify' },
    ]) {
      it(`may not use ${field}`, async () => {
        expect(await messageOf(loadKubeconfig({ text: config(given) }))).to.contain(
          `uses "${field}", which is not allowed`,
        )
      })
    }
    for (const { title, text, message } of [
      {
        title: 'a plain-text server',
        text: config({ cluster: { server: 'http://east' } }),
        message: 'must be an https URL',
      },
      {
        title: 'a server with a password',
        text: config({ cluster: { server: 'https://a:b@east' } }),
        message: 'no user',
      },
      { title: 'a server that is no URL', text: config({ cluster: { server: 'east' } }), message: 'is not a URL' },
      { title: 'no cluster', text: config({ context: { cluster: 'other' } }), message: 'has no cluster "other"' },
      { title: 'no current-context', text: 'kind: Config', message: 'has no current-context' },
      {
        title: 'a key without a certificate',
        text: config({ user: { 'client-key-data': 'aa' } }),
        message: 'must come together',
      },
      {
        title: 'a token that is not a string',
        text: config({ user: { token: 5 } }),
        message: '"token" must be a string',
      },
      { title: 'a list', text: '[]', message: 'is not a kubeconfig' },
      { title: 'broken YAML', text: '{', message: 'is not YAML' },
    ]) {
      it(`is refused with ${title}`, async () => expect(await messageOf(loadKubeconfig({ text }))).to.contain(message))
    }
  })

  it('of a person may name an HTTP proxy, unless others will use what it leads to', async () => {
    const text = config({ cluster: { 'proxy-url': 'http://proxy:3128' } })
    const kubeconfig = await loadKubeconfig({ text }, { trusted: true })
    expect((await kubeconfig.endpoint()).proxyUrl).to.equal('http://proxy:3128')
    expect(await messageOf(loadKubeconfig({ text }, { trusted: true, mayUseProxy: false }))).to.contain(
      'uses "proxy-url", which is not supported here',
    )
  })

  it('of a person is refused if its proxy cannot be used, instead of bypassing it', async () => {
    const socks = config({ cluster: { 'proxy-url': 'socks5://proxy:1080' } })
    expect(await messageOf(loadKubeconfig({ text: socks }, { trusted: true }))).to.contain(
      'must be an http or https URL',
    )
    const plain = config({ cluster: { server: 'http://east:8080', 'proxy-url': 'http://proxy:3128' } })
    expect(await messageOf(loadKubeconfig({ text: plain }, { trusted: true }))).to.contain('needs a server with https')
  })

  it('of a person may run a program for its token', async () => {
    const credential = {
      kind: 'ExecCredential',
      apiVersion: 'client.authentication.k8s.io/v1',
      status: { token: 'fresh' },
    }
    const exec = {
      apiVersion: 'client.authentication.k8s.io/v1',
      command: process.execPath,
      args: ['-e', `console.log(${JSON.stringify(JSON.stringify(credential))})`],
      interactiveMode: 'Never',
    }
    const kubeconfig = await loadKubeconfig({ text: config({ user: { exec } }) }, { trusted: true })
    expect((await kubeconfig.endpoint()).headers).to.deep.equal({ authorization: 'Bearer fresh' })
  })

  it('of a person runs the program again only when its token was refused', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'kcp-'))
    try {
      const count = join(directory, 'count')
      const say = `const fs = require('fs'); fs.appendFileSync(process.argv[1], 'x')
        console.log(JSON.stringify({ kind: 'ExecCredential', apiVersion: 'client.authentication.k8s.io/v1',
          status: { token: 'token-' + fs.readFileSync(process.argv[1]).length } }))`
      const apiVersion = 'client.authentication.k8s.io/v1'
      const exec = { apiVersion, command: process.execPath, args: ['-e', say, count], interactiveMode: 'Never' }
      const kubeconfig = await loadKubeconfig({ text: config({ user: { exec } }) }, { trusted: true, pluginAgainMs: 0 })
      const authorization = async (refused: boolean): Promise<unknown> =>
        (await kubeconfig.endpoint({ refused })).headers?.['authorization']
      expect(await authorization(false)).to.equal('Bearer token-1')
      expect(await authorization(false)).to.equal('Bearer token-1')
      expect(await authorization(true)).to.equal('Bearer token-2')
      const patient = await loadKubeconfig({ text: config({ user: { exec } }) }, { trusted: true })
      expect((await patient.endpoint()).headers).to.deep.equal({ authorization: 'Bearer token-3' })
      expect((await patient.endpoint({ refused: true })).headers).to.deep.equal({ authorization: 'Bearer token-3' })
    } finally {
      await rm(directory, { recursive: true })
    }
  })

  it('of a person rereads the files of credentials that it names', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'kcp-'))
    try {
      const put = async (name: string, text: string): Promise<void> => await writeFile(join(directory, name), text)
      const file = join(directory, 'kubeconfig')
      const user = { tokenFile: 'token', token: 'older' }
      await put('kubeconfig', config({ cluster: { 'insecure-skip-tls-verify': true }, user }))
      await put('token', 'one\n')
      const kubeconfig = await loadKubeconfig({ file }, { trusted: true })
      expect(await kubeconfig.endpoint()).to.deep.equal({
        server: 'https://east:6443',
        token: 'one',
        insecureSkipTlsVerify: true,
      })
      await put('token', 'two')
      expect((await kubeconfig.endpoint()).token).to.equal('two')
      await put('token', '\n')
      expect(await messageOf(kubeconfig.endpoint())).to.contain('the token file "token" is empty')
      await rm(join(directory, 'token'))
      expect(await messageOf(kubeconfig.endpoint())).to.contain(`could not read "${join(directory, 'token')}"`)

      await put('kubeconfig', config({ user: { 'client-certificate': 'tls.crt', 'client-key': 'tls.key' } }))
      await put('tls.crt', 'half of a certif')
      await put('tls.key', 'KEY')
      const certified = await loadKubeconfig({ file }, { trusted: true })
      expect(await messageOf(certified.endpoint())).to.contain("its certificates or key can't be used")
      await put('kubeconfig', config({ user: { 'client-certificate': 'tls.crt' } }))
      expect(await messageOf(loadKubeconfig({ file }, { trusted: true }))).to.contain('must come together')
    } finally {
      await rm(directory, { recursive: true })
    }
  })

  it('of a pod uses the token and authorities that the kubelet renews', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'kcp-'))
    try {
      await writeFile(join(directory, 'ca.crt'), 'CA')
      await writeFile(join(directory, 'token'), 'one\n')
      const env = { KUBERNETES_SERVICE_HOST: 'fd00::1', KUBERNETES_SERVICE_PORT: '443' }
      const kubeconfig = await inClusterConfig({ env, directory })
      expect(await kubeconfig.endpoint()).to.deep.equal({ server: 'https://[fd00::1]:443', ca: 'CA', token: 'one' })
      await writeFile(join(directory, 'token'), 'two\n')
      await writeFile(join(directory, 'ca.crt'), 'CA2')
      expect(await kubeconfig.endpoint()).to.include({ ca: 'CA2', token: 'two' })
    } finally {
      await rm(directory, { recursive: true })
    }
  })

  it('of a person uses inline credentials that are rewritten in the file', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'kcp-'))
    const file = join(directory, 'kubeconfig')
    try {
      await writeFile(file, config({ user: { token: 'one' } }))
      const kubeconfig = await loadKubeconfig({ file }, { trusted: true })
      expect(kubeconfig.refreshAfterMs).to.be.a('number')
      expect((await kubeconfig.endpoint()).token).to.equal('one')
      await writeFile(file, config({ user: { token: 'two' } }))
      expect((await kubeconfig.endpoint()).token).to.equal('two')
      await writeFile(file, config({ user: { tokenFile: 'token' } }))
      expect(await messageOf(kubeconfig.endpoint())).to.contain('restart this program')
    } finally {
      await rm(directory, { recursive: true })
    }
  })
})

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
