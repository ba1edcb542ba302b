// Members in pull mode from the join to the end: the manifest, the agent, its approval, its certificate, and what an
// agent or a stranger tries beyond that.
import { expect } from 'chai'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { generateKeyPairSync } from 'node:crypto'
import 'reflect-metadata'
import * as x509 from '@peculiar/x509'
import { parse, parseAllDocuments } from 'yaml'
import { signingRequest } from '#agent/agent-key.ts'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { createClient, httpTransport, kubeconfigText, loadKubeconfig, type KubeClient } from '#client/index.ts'
import { findCondition, memberClusters, type MemberCluster } from '#crds/index.ts'
import {
  itInLongRun,
  runKcp,
  startCluster,
  startKcp,
  waitFor,
  freePort,
  type Cluster,
  type CommandResult,
  type ManagedProcess,
} from '#test/support/index.ts'
import { ask, hashOf, newAgentKey, type Server } from './agent-enrolment.ts'
import { startInstance, type KcpInstance } from './kcp-instance.ts'

const signal = new AbortController().signal
const core = (resource: string) => ({ group: '', version: 'v1', resource })
const system = 'kcp-system'

describe('a member in pull mode', function () {
  this.timeout(180_000)
  const stack = new AsyncDisposableStack()
  let kcp: KcpInstance
  let lab: Cluster
  let root: KubeClient
  let inLab: KubeClient
  let server: Server
  let dir: string

  before(async function () {
    this.timeout(300_000)
    dir = await mkdtemp(join(tmpdir(), 'kcp-pull-'))
    stack.defer(() => rm(dir, { recursive: true, force: true }))
    ;[kcp, lab] = await Promise.all([startInstance(), startCluster({ name: 'lab' })])
    stack.use(kcp)
    stack.use(lab)
    root = await clientOf(kcp.admin.kubeconfig)
    inLab = await clientOf(lab.kubeconfig)
    const text = parse(await readFile(kcp.admin.kubeconfig, 'utf8')) as {
      clusters: { cluster: { 'certificate-authority-data': string } }[]
    }
    const ca = Buffer.from(text.clusters[0]?.cluster['certificate-authority-data'] ?? '', 'base64').toString()
    server = { port: kcp.port, ca }
  })
  after(async function () {
    this.timeout(60_000)
    await stack.disposeAsync()
  })

  const clientOf = async (file: string): Promise<KubeClient> =>
    createClient(stack.use(httpTransport(await loadKubeconfig({ file }, { trusted: true }))))
  const run = async (args: readonly string[]): Promise<CommandResult> => {
    const result = await runKcp(['member', ...args, '--root-dir', kcp.rootDir], { expectCode: 'any' })
    return result
  }
  /** The manifest and the token of a member that joins. */
  const pull = async (name: string, ...args: string[]): Promise<{ manifest: string; token: string }> => {
    const { stdout, code, stderr } = await run([
      'join',
      name,
      '--pull',
      '--server',
      `https://127.0.0.1:${kcp.port}`,
      ...args,
    ])
    expect(code, stderr).to.equal(0)
    const secret = parseAllDocuments(stdout)
      .map((document) => document.toJS() as KubeObject & { stringData?: { token: string } })
      .find(({ metadata }) => metadata.name === 'kcp-agent-join')
    return { manifest: stdout, token: secret?.stringData?.token ?? '' }
  }
  const memberOf = (name: string): Promise<MemberCluster> =>
    root.get<MemberCluster>(memberClusters, { name }, { signal })
  const untilReason = (name: string, type: string, reason: string): Promise<unknown> =>
    waitFor(async () => findCondition(await memberOf(name), type)?.reason === reason, {
      what: `${type} of ${name} to have the reason ${reason}`,
      deadlineMs: 30_000,
    })
  /** Runs `kcp agent` with the rights of the account in the member alone. */
  const startAgent = async (): Promise<ManagedProcess> => {
    const request = {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      metadata: { name: 'kcp-syncer', namespace: system },
      spec: {},
    }
    const { status } = await inLab.create<KubeObject & { status?: { token: string } }>(
      core('serviceaccounts'),
      request,
      {
        subresource: 'token',
        signal,
      },
    )
    const admin = await (await loadKubeconfig({ file: lab.kubeconfig }, { trusted: true })).endpoint()
    const file = join(dir, 'agent.kubeconfig')
    const ca = String(admin.ca)
    await writeFile(file, kubeconfigText({ name: 'lab', server: admin.server, ca, token: status?.token ?? '' }))
    const port = await freePort()
    return stack.use(
      await startKcp(['agent', '--kubeconfig', file, '--api-port', '0', '--health-port', String(port)], {
        ready: async () => (await fetch(`http://127.0.0.1:${port}/livez`).catch(() => undefined))?.ok === true,
      }),
    )
  }

  describe('from its join on', () => {
    let agent: ManagedProcess

    it('waits for its agent, then for its approval, and is Ready as soon as the agent is let in', async () => {
      const { manifest, token } = await pull('lab')
      const stored = await memberOf('lab')
      expect(JSON.stringify(stored)).to.contain(hashOf(token)).and.not.contain(token)
      await untilReason('lab', 'Ready', 'WaitingForAgent')
      expect((await run(['approve', 'lab'])).stderr).to.match(/no agent of "lab" has asked yet/)
      await lab.kubectl(['apply', '-f', '-'], { input: manifest })
      agent = await startAgent()
      await untilReason('lab', 'Accepted', 'WaitingForApproval')
      const uid =
        (await inLab.get<KubeObject>(core('namespaces'), { name: 'kube-system' }, { signal })).metadata.uid ?? ''
      const shown = await run(['approve', 'lab', '--show'])
      const { key = '' } = (await memberOf('lab')).status?.agent ?? {}
      expect(shown.stdout).to.contain(uid).and.contain(key)
      expect((await run(['approve', 'lab', '--key', 'SHA256:other'])).stderr).to.match(/another key/)
      const { items } = await inLab.list<KubeObject & { reason: string; message: string }>(core('events'), {
        namespace: system,
        signal,
      })
      const told = items.find(({ reason }) => reason === 'WaitingForApproval')
      expect(told?.message).to.contain(key)
      expect((await run(['approve', 'lab', '--key', key])).code).to.equal(0)
      await untilReason('lab', 'Ready', 'Answers')
      expect((await memberOf('lab')).status?.id).to.equal(uid)
    })

    it('keeps the key of its agent in the member, and nothing of it in the installation', async () => {
      const secret = await inLab.get<KubeObject & { data: Record<string, string> }>(
        core('secrets'),
        { namespace: system, name: 'kcp-agent' },
        { signal },
      )
      const key = Buffer.from(secret.data['tls.key'] ?? '', 'base64').toString()
      expect(key).to.match(/^-----BEGIN PRIVATE KEY-----/)
      const { items } = await root.list<KubeObject>(core('secrets'), { namespace: system, signal })
      expect(JSON.stringify([items, await memberOf('lab')])).to.not.contain(secret.data['tls.key'])
    })

    it('is cut off at once when it is revoked, and comes back with another token and another key', async () => {
      const secretOf = (): Promise<KubeObject & { data: Record<string, string> }> =>
        inLab.get(core('secrets'), { namespace: system, name: 'kcp-agent' }, { signal })
      const before = (await secretOf()).data
      const [certificate = '', key = ''] = ['tls.crt', 'tls.key'].map((name) =>
        Buffer.from(before[name] ?? '', 'base64').toString(),
      )
      expect((await run(['revoke', 'lab'])).code).to.equal(0)
      await waitFor(
        async () => (await readFile(agent.logFile, 'utf8')).includes('the connection to the installation was lost'),
        {
          what: 'the sessions of the agent to end',
          deadlineMs: 60_000,
        },
      )
      await untilReason('lab', 'Accepted', 'NotGranted')
      expect((await ask(server, { member: 'lab', client: { certificate, key }, key })).status).to.equal(401)
      const { manifest } = await pull('lab', '--approve')
      // The certificate of before is worth nothing beside the new token, either.
      expect((await ask(server, { member: 'lab', client: { certificate, key }, key })).status).to.equal(401)
      await lab.kubectl(['apply', '-f', '-'], { input: manifest })
      await untilReason('lab', 'Ready', 'Answers')
      expect((await secretOf()).data['tls.key']).to.not.equal(before['tls.key'])
      expect((await ask(server, { member: 'lab', client: { certificate, key }, key })).status).to.equal(401)
    })

    it('is switched to a kubeconfig, and back as soon as its agent has connected', async () => {
      expect((await run(['join', 'lab', '--kubeconfig', lab.kubeconfig])).code).to.equal(0)
      const pushed = await memberOf('lab')
      expect(pushed.spec?.connection?.agent).to.equal(undefined)
      expect(pushed.spec?.agent).to.equal(undefined)
      expect(await inLab.tryGet(core('secrets'), { namespace: system, name: 'kcp-agent' }, { signal })).to.equal(
        undefined,
      )
      await untilReason('lab', 'Ready', 'Answers')
      const { manifest } = await pull('lab', '--approve')
      expect((await memberOf('lab')).spec?.connection?.kubeconfigSecretRef?.name).to.equal('member-lab')
      await lab.kubectl(['apply', '-f', '-'], { input: manifest })
      await waitFor(async () => (await memberOf('lab')).spec?.connection?.agent !== undefined, {
        what: 'the member to be reached through its agent',
        deadlineMs: 60_000,
      })
      expect(findCondition(await memberOf('lab'), 'Ready')?.status).to.equal('True')
      await waitFor(
        async () =>
          (await root.tryGet(core('secrets'), { namespace: system, name: 'member-lab' }, { signal })) === undefined,
        {
          what: 'the kubeconfig to be deleted',
          deadlineMs: 10_000,
        },
      )
    })

    it('shows in kubectl get what it waits for', async () => {
      await pull('waiting')
      await untilReason('waiting', 'Ready', 'WaitingForAgent')
      const { stdout } = await kcp.admin.kubectl(['get', 'memberclusters', 'waiting'])
      expect(stdout).to.match(/^waiting +False +WaitingForAgent /m)
    })

    it('refuses the same cluster under another name', async () => {
      const { token } = await pull('twin', '--approve')
      const { id = '' } = (await memberOf('lab')).status ?? {}
      const answer = await ask(server, { member: 'twin', token, claims: { kubeSystemUID: id } })
      expect(answer.status).to.equal(409)
      expect(answer.text).to.contain('registered already, as \\"lab\\"')
    })
  })

  describe('at its end', () => {
    it('leaves no rights in the cluster, and its agent is refused', async () => {
      await kcp.admin.kubectl(['delete', 'membercluster', 'lab', '--timeout=60s'], { timeoutMs: 90_000 })
      const group = { group: 'rbac.authorization.k8s.io', version: 'v1' }
      const { items } = await inLab.list<KubeObject>({ ...group, resource: 'clusterroles' }, { signal })
      expect(items.map(({ metadata }) => metadata.name).filter((name) => name?.startsWith('kcp-'))).to.deep.equal([])
      const namespace = await inLab.get<KubeObject>(core('namespaces'), { name: system }, { signal })
      expect(namespace.metadata.deletionTimestamp).to.be.a('string')
    })
  })

  describe('against strangers and other agents', () => {
    const keys: Record<string, string> = {}
    const certificates: Record<string, string> = {}
    let tokens: Record<string, string>
    const clientOfAgent = (member: string) => ({ certificate: certificates[member] ?? '', key: keys[member] ?? '' })

    before(async () => {
      tokens = {}
      for (const member of ['eu-1', 'eu-10']) {
        tokens[member] = (await pull(member, '--approve')).token
        keys[member] = newAgentKey()
        const answer = await ask(server, { member, token: tokens[member], key: keys[member] })
        expect(answer.status, answer.text).to.equal(201)
        certificates[member] = answer.certificate ?? ''
      }
    })

    it('gives a certificate for a token once: to the same key again, and to no other', async () => {
      const [token, key] = [tokens['eu-1'] ?? '', keys['eu-1'] ?? '']
      expect((await ask(server, { member: 'eu-1', token, key })).status).to.equal(201)
      const other = await ask(server, { member: 'eu-1', token })
      expect(other.status).to.equal(403)
      expect(other.text).to.contain('another key has used the token')
      const { token: contested } = await pull('eu-4', '--approve')
      const racers = await Promise.all(
        Array.from({ length: 6 }, () => ask(server, { member: 'eu-4', token: contested })),
      )
      expect(racers.map(({ status }) => status).sort()).to.deep.equal([201, 403, 403, 403, 403, 403])
    })

    it('takes the token of no other member, no hash, and no part of a token', async () => {
      const token = tokens['eu-1'] ?? ''
      const localAddress = '127.0.3.1'
      expect((await ask(server, { member: 'eu-10', token, localAddress })).status).to.equal(401)
      for (const wrong of [hashOf(token), token.slice(0, -1), `${token}x`, token.toUpperCase()])
        expect((await ask(server, { member: 'eu-1', token: wrong, localAddress })).status, wrong).to.equal(401)
      expect((await ask(server, { member: 'nobody', token, localAddress })).status).to.equal(401)
      expect((await ask(server, { member: 'eu-1', localAddress })).status).to.equal(401)
    })

    it('renews the certificate of eu-1 for eu-1 alone, and not for eu-10 or another spelling', async () => {
      const client = clientOfAgent('eu-1')
      const localAddress = '127.0.3.2'
      const renewed = await ask(server, { member: 'eu-1', client, key: client.key })
      expect(renewed.status, renewed.text).to.equal(201)
      for (const member of [
        'eu-10',
        'eu',
        'eu-1-',
        'EU-1',
        'eu-1.',
        'eu-1%2e',
        'eu-1/../eu-10',
        '%65u-1',
        'eu-\u0661',
        'eu-1%00',
      ]) {
        const path = `/services/agent/${encodeURI(member)}/certificate`
        const answer = await ask(server, { member: 'eu-10', path, client, key: client.key, localAddress })
        expect(answer.status, member).to.be.oneOf([400, 401, 404])
        expect(answer.certificate).to.equal(undefined)
      }
      // With the request of the other one, too.
      const csr = await signingRequest(client.key, 'eu-10')
      expect((await ask(server, { member: 'eu-1', csr, client, localAddress })).status).to.equal(400)
      expect((await ask(server, { member: 'eu-10', csr, client, localAddress })).status).to.equal(401)
      // A new key is welcome, and is that of the same member.
      const key = newAgentKey()
      const { status, certificate = '' } = await ask(server, { member: 'eu-1', client, key, localAddress })
      expect(status).to.equal(201)
      const other = { member: 'eu-10', client: { certificate, key }, key, localAddress }
      expect((await ask(server, other)).status).to.equal(401)
    })

    it('signs no request that asks for more', async () => {
      const key = keys['eu-1'] ?? ''
      const cases: Record<string, string> = {
        'another name': await csrWith({ member: 'eu-10' }),
        'two names': await csrWith({ name: 'O=kcp.dev:agents, CN=eu-1, CN=eu-10' }),
        'another organization': await csrWith({ name: 'O=system:masters, CN=eu-1' }),
        'no organization': await csrWith({ name: 'CN=eu-1' }),
        'a DNS name': await csrWith({
          extensions: [new x509.SubjectAlternativeNameExtension([{ type: 'dns', value: 'eu-10' }])],
        }),
        'the realm of the installation': await csrWith({
          extensions: [new x509.SubjectAlternativeNameExtension([{ type: 'url', value: 'kcp://installation' }])],
        }),
        'an authority': await csrWith({ extensions: [new x509.BasicConstraintsExtension(true, 1, true)] }),
        'another usage': await csrWith({
          extensions: [new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth])],
        }),
        'no signature of its key': (await csrWith({})).replace(/(.{8})(={0,2}\n-----END)/, 'AAAAAAAA$2'),
        'a key of P-384': await csrWith({ curve: 'P-384' }),
        'two requests': `${await signingRequest(key, 'eu-1')}\n${await signingRequest(key, 'eu-1')}`,
        nothing: '',
        'a certificate': certificates['eu-1'] ?? '',
        'bytes that are none': '-----BEGIN CERTIFICATE REQUEST-----\nMIIB\n-----END CERTIFICATE REQUEST-----',
      }
      for (const [title, csr] of Object.entries(cases)) {
        const answer = await ask(server, {
          member: 'eu-1',
          token: tokens['eu-1'] ?? '',
          csr,
          localAddress: '127.0.3.3',
        })
        expect(answer.status, `${title}: ${answer.text}`).to.equal(400)
      }
    })

    it('gives the certificate of an agent no other right: no API, no object, not its own MemberCluster', async () => {
      const client = clientOfAgent('eu-1')
      const members = '/clusters/root/apis/kcp.dev/v1alpha1/memberclusters'
      const requests: readonly (readonly [string, string])[] = [
        ['GET', '/api'],
        ['GET', '/version'],
        ['GET', '/clusters/root/api/v1/secrets'],
        ['GET', '/clusters/*/api/v1/secrets'],
        ['GET', members],
        ['GET', `${members}/eu-1`],
        ['PATCH', `${members}/eu-1`],
        ['PATCH', `${members}/eu-1/status`],
        ['POST', '/clusters/root/apis/authorization.k8s.io/v1/selfsubjectaccessreviews'],
        ['GET', '/metrics'],
        ['GET', '/services/apiexport/root/x/clusters/*/api/v1/secrets'],
        ['GET', '/apis/virtual.kcp.dev/v1alpha1/logicalclusters/root/proxy/api'],
        ['GET', '/console/api/session'],
      ]
      const headers = { 'x-remote-user': 'admin', 'x-remote-group': 'system:masters', 'impersonate-user': 'admin' }
      const patch = { metadata: { labels: { region: 'eu' } }, spec: { taints: [], logicalClusterSelector: {} } }
      for (const [method, path] of requests) {
        const body = method === 'GET' ? '' : JSON.stringify(patch)
        const more = method === 'PATCH' ? { 'content-type': 'application/merge-patch+json' } : {}
        const answer = await ask(server, {
          member: 'eu-1',
          method,
          path,
          client,
          body,
          headers: { ...headers, ...more },
        })
        // Health and version are open to all.
        if (path !== '/version') expect(answer.status, `${method} ${path}: ${answer.text}`).to.equal(401)
      }
      const { metadata, spec } = await memberOf('eu-1')
      expect([metadata.labels, spec?.taints]).to.deep.equal([undefined, undefined])
    })

    it('refuses bodies that are large, unannounced or no request, without reading them', async () => {
      const asked = { member: 'eu-1', token: tokens['eu-1'] ?? '', localAddress: '127.0.3.4' }
      expect((await ask(server, { ...asked, body: 'x'.repeat(20 * 1024) })).status).to.equal(413)
      expect((await ask(server, { ...asked, headers: { 'content-type': 'text/plain' } })).status).to.equal(415)
      expect((await ask(server, { ...asked, body: '[]' })).status).to.equal(400)
      expect((await ask(server, { ...asked, body: '{"request":{"toString":1}}' })).status).to.equal(400)
      expect((await ask(server, { ...asked, method: 'GET', body: '' })).status).to.equal(405)
    })

    itInLongRun('ends the request of a client that sends its body slowly', async () => {
      const began = Date.now()
      const headers = { 'content-length': '1000' }
      const asked = { member: 'eu-1', token: tokens['eu-1'] ?? '', localAddress: '127.0.3.8' }
      const slow = Array.from({ length: 20 }, () => ask(server, { ...asked, headers, body: '{', isSlow: true }))
      const client = clientOfAgent('eu-1')
      expect((await ask(server, { member: 'eu-1', client, key: client.key })).status).to.equal(201)
      for (const answer of await Promise.all(slow)) expect(answer.status).to.equal(408)
      expect(Date.now() - began).to.be.within(9000, 20_000)
    })

    it('bounds guesses by their address, and others are served meanwhile', async () => {
      const began = performance.now()
      const guess = async (_: unknown, i: number): Promise<number> => {
        const token = `kcp-join-${String(i).padStart(43, '0')}`
        return (await ask(server, { member: 'eu-1', token, localAddress: '127.0.3.5' })).status
      }
      // At once, because an address regains one guess each second.
      const statuses = await Promise.all(Array.from({ length: 80 }, guess))
      const seconds = (performance.now() - began) / 1000
      expect(statuses.filter((status) => status === 401).length).to.be.within(28, 31 + seconds)
      expect(statuses).to.include(429)
      const client = clientOfAgent('eu-10')
      expect(
        (await ask(server, { member: 'eu-10', client, key: client.key, localAddress: '127.0.3.6' })).status,
      ).to.equal(201)
    })

    it('bounds the certificates that an agent may get in a loop', async () => {
      const client = clientOfAgent('eu-10')
      const statuses: number[] = []
      for (let i = 0; i < 10; i++)
        statuses.push(
          (await ask(server, { member: 'eu-10', client, key: client.key, localAddress: '127.0.3.7' })).status,
        )
      expect(statuses.at(-1)).to.equal(429)
      expect((await memberOf('eu-10')).status?.agent?.certificates?.length).to.be.at.most(8)
    })

    it('knows the key that has used a token after a crash', async () => {
      const { token } = await pull('eu-2')
      const key = newAgentKey()
      expect((await ask(server, { member: 'eu-2', token, key })).status).to.equal(202)
      await kcp.process.kill()
      await kcp.process.start()
      expect((await ask(server, { member: 'eu-2', token })).status).to.equal(403)
      expect((await ask(server, { member: 'eu-2', token, key })).status).to.equal(202)
      expect((await run(['approve', 'eu-2'])).code).to.equal(0)
      const issued = await waitFor(async () => (await ask(server, { member: 'eu-2', token, key })).certificate, {
        what: 'the certificate',
        deadlineMs: 5000,
      })
      expect(issued).to.contain('BEGIN CERTIFICATE')
    })

    it('refuses a life of a token above 24 hours', async () => {
      const { code, stderr } = await run(['join', 'eu-3', '--pull', '--token-ttl', '25h'])
      expect([code, stderr]).to.satisfy(([exit, text]: [number, string]) => exit === 2 && text.includes('24h at most'))
      expect(await root.tryGet(memberClusters, { name: 'eu-3' }, { signal })).to.equal(undefined)
    })
  })
})

/** A request that is signed by its own key, with other content than an agent's. */
async function csrWith({
  member = 'eu-1',
  name = `O=kcp.dev:agents, CN=${member}`,
  extensions = [],
  curve = 'P-256',
}: {
  member?: string
  name?: string
  extensions?: x509.Extension[]
  curve?: 'P-256' | 'P-384'
}): Promise<string> {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: curve })
  const algorithm = { name: 'ECDSA', namedCurve: curve, hash: 'SHA-256' }
  const keys = {
    privateKey: await crypto.subtle.importKey(
      'pkcs8',
      privateKey.export({ type: 'pkcs8', format: 'der' }),
      algorithm,
      true,
      ['sign'],
    ),
    publicKey: await crypto.subtle.importKey(
      'spki',
      publicKey.export({ type: 'spki', format: 'der' }),
      algorithm,
      true,
      ['verify'],
    ),
  }
  const request = await x509.Pkcs10CertificateRequestGenerator.create({
    name,
    keys,
    signingAlgorithm: algorithm,
    extensions,
  })
  return `${request.toString('pem')}\n`
}
