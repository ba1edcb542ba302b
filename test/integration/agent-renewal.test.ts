// The certificate of an agent over its whole life, with the agent's clock in the test's hand.
import { expect } from 'chai'
import { createPublicKey, X509Certificate } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { WebSocket } from 'ws'
import type { ClientCertificate } from '#agent/dial.ts'
import { keepCertificate, type EnrolState } from '#agent/enrol.ts'
import { requireOwnCertificate } from '#agent/agent-key.ts'
import type { GroupVersionResource } from '#apimachinery/meta/index.ts'
import { createClient, httpTransport, loadKubeconfig, type KubeClient } from '#client/index.ts'
import { memberClusters, systemNamespace, waitingAgent, type MemberCluster } from '#crds/index.ts'
import { startSimulatedMember } from '#simulation/index.ts'
import { joinByPull } from '#syncer/index.ts'
import { silentLogger } from '#telemetry/index.ts'
import { createMembers } from '#virtualapi/index.ts'
import { waitFor } from '#test/support/index.ts'
import { startServedApi, type ServedApi } from './served-api.ts'

const day = 24 * 60 * 60_000

describe('the certificate of an agent', function () {
  this.timeout(60_000)
  const stack = new AsyncDisposableStack()
  const life = new AbortController()
  const { signal } = life
  let served: ServedApi
  let member: KubeClient
  let nowMs = Date.now()
  const used: ClientCertificate[] = []
  const told: EnrolState[] = []

  before(async () => {
    const dir = mkdtempSync(join(tmpdir(), 'kcp-renewal-'))
    stack.defer(() => rmSync(dir, { recursive: true, force: true }))
    stack.defer(() => life.abort())
    served = stack.use(
      await startServedApi({
        members: ({ loopback, dialer }) =>
          createMembers({ transport: loopback, basePath: '/clusters/root', dialer, log: silentLogger, signal }),
      }),
    )
    const paris = stack.use(await startSimulatedMember({ name: 'paris', dir, log: silentLogger, signal }))
    member = createClient(stack.use(httpTransport(await loadKubeconfig({ text: paris.kubeconfig }))))
    await join_('paris')
    void keepCertificate({
      client: member,
      namespace: systemNamespace,
      claims: () => Promise.resolve({ kubeSystemUID: 'u' }),
      enrolled: (_, certificate) => {
        used.push(certificate)
        // The server's clock does not move: for a clock of days later, each new certificate would be old at once.
        nowMs = Date.now()
      },
      tell: (state) => Promise.resolve(void told.push(state)),
      clock: { now: () => nowMs },
      lookMs: 50,
      log: silentLogger,
      signal,
    })
  })
  after(() => stack.disposeAsync())

  /** Registers the member, and applies in it what the agent reads. */
  const join_ = async (name: string): Promise<void> => {
    const { manifest } = await joinByPull({
      name,
      clusters: served.root,
      server: `https://127.0.0.1:${served.port}`,
      ca: served.pki.servingCa,
      image: 'kcp',
      tokenMs: 60_000,
      approves: true,
      log: silentLogger,
      signal,
    })
    const kinds: Record<string, GroupVersionResource> = {
      Namespace: { group: '', version: 'v1', resource: 'namespaces' },
      Secret: { group: '', version: 'v1', resource: 'secrets' },
    }
    for (const object of manifest) {
      const gvr = kinds[object.kind]
      const ref = { name: object.metadata.name ?? '', ...(object.metadata.namespace && { namespace: systemNamespace }) }
      if (gvr !== undefined)
        await member.patch(gvr, ref, 'apply', object, { fieldManager: 'test', force: true, signal })
    }
  }
  const patchAgent = (agent: object) =>
    served.root.patch(
      memberClusters,
      { name: 'paris' },
      'merge',
      { status: { agent } },
      { subresource: 'status', signal },
    )
  const agentOf = async () =>
    (await served.root.get<MemberCluster>(memberClusters, { name: 'paris' }, { signal })).status?.agent
  const fingerprintOf = (certificate: string): string =>
    new X509Certificate(certificate).fingerprint256.replaceAll(':', '').toLowerCase()
  /** Tries to open a tunnel: `open`, or the status of the answer. */
  const opens = async ({ certificate: cert, key }: ClientCertificate): Promise<string> => {
    const url = `wss://127.0.0.1:${served.port}/services/agent/paris/tunnel?session=control`
    const webSocket = new WebSocket(url, { cert, key, ca: served.pki.servingCa })
    const { promise, resolve } = Promise.withResolvers<string>()
    webSocket.on('error', () => undefined)
    webSocket.once('open', () => resolve('open'))
    webSocket.once('unexpected-response', (_, response) => resolve(String(response.statusCode)))
    try {
      return await promise
    } finally {
      webSocket.terminate()
    }
  }
  const until = (count: number): Promise<unknown> =>
    waitFor(() => used.length === count, { what: `${count} certificates`, deadlineMs: 30_000 })

  it('is valid for seven days, and is that of the key in the member', async () => {
    await until(1)
    const [{ certificate, key } = { certificate: '', key: '' }] = used
    requireOwnCertificate(certificate, key, 'paris')
    const left = new X509Certificate(certificate).validToDate.getTime() - Date.now()
    expect(left).to.be.within(7 * day - 60_000, 7 * day)
    expect(told.at(-1)?.reason).to.equal('Enrolled')
  })

  it('is renewed for another key at two thirds of its life, not before, and replaces the old one when it is used', async () => {
    nowMs = Date.now() + 4 * day
    await new Promise((resolve) => setTimeout(resolve, 500))
    expect(used.length).to.equal(1)
    nowMs = Date.now() + 4.8 * day
    await until(2)
    expect(used[1]?.key).to.not.equal(used[0]?.key)
    expect(told.at(-1)?.reason).to.equal('Renewed')
    const valid = (await agentOf())?.certificates?.map(({ fingerprint }) => fingerprint)
    for (const { certificate } of used) expect(valid).to.include(fingerprintOf(certificate))
    const [before, after] = used as [ClientCertificate, ClientCertificate]
    // Until the agent has used the new one, it may have lost it.
    expect(await opens(before)).to.equal('open')
    expect(await opens(after)).to.equal('open')
    await waitFor(async () => (await agentOf())?.used === fingerprintOf(after.certificate), {
      what: 'the new certificate to be the one in use',
      deadlineMs: 30_000,
    })
    expect(await opens(before)).to.equal('401')
    expect(await opens(after)).to.equal('open')
  })

  it('is asked for again, with another key, when the member joins with another token', async () => {
    const count = used.length
    await join_('paris')
    await until(count + 1)
    expect(used.at(-1)?.key).to.not.equal(used[0]?.key)
    expect((await agentOf())?.certificates?.length).to.equal(1)
  })

  it('is given again to an agent that was away for too long, once an admin has approved it', async () => {
    const count = used.length
    // The agent's certificate is replaced by one that has expired, as if it had been off.
    const { key } = used.at(-1) ?? { key: '' }
    const uid = (await served.root.get<MemberCluster>(memberClusters, { name: 'paris' }, { signal })).metadata.uid ?? ''
    const publicKey = createPublicKey(key).export({ type: 'spki', format: 'der' })
    const expired = await served.pki.signAgentKey({ member: 'paris', uid, publicKey, seconds: -2 * 24 * 3600 })
    const expires = new Date(Date.now() - 2 * day).toISOString().replace(/\.\d+/, '')
    const certificates = [{ fingerprint: fingerprintOf(expired), expires }]
    await patchAgent({ certificates, used: null })
    await member.patch(
      { group: '', version: 'v1', resource: 'secrets' },
      { namespace: systemNamespace, name: 'kcp-agent' },
      'merge',
      { data: { 'tls.crt': Buffer.from(expired).toString('base64') } },
      { signal },
    )
    const waiting = await waitFor(
      async () =>
        waitingAgent(await served.root.get<MemberCluster>(memberClusters, { name: 'paris' }, { signal }), Date.now()),
      { what: 'the agent to ask', deadlineMs: 30_000 },
    )
    expect(told.at(-1)?.message).to.include(`approve the key ${waiting.key} with: kcp member approve paris`)
    await waitFor(() => told.at(-1)?.reason === 'WaitingForApproval', { what: 'the agent to wait', deadlineMs: 30_000 })
    expect(used.length).to.equal(count)
    expect(await opens({ certificate: expired, key })).to.equal('401')
    await served.root.patch(
      memberClusters,
      { name: 'paris' },
      'merge',
      { spec: { agent: { approval: waiting.approval } } },
      { signal },
    )
    await until(count + 1)
    expect((await agentOf())?.readmission).to.equal(undefined)
    expect(await opens(used.at(-1) ?? { certificate: '', key: '' })).to.equal('open')
  })

  it('is not renewed after it was revoked, which the agent tells', async () => {
    await served.root.patch(memberClusters, { name: 'paris' }, 'merge', { spec: { agent: null } }, { signal })
    nowMs = Date.now() + 4.8 * day
    await waitFor(() => told.at(-1)?.reason === 'Refused', { what: 'the refusal', deadlineMs: 30_000 })
    expect(told.at(-1)?.message).to.match(/may have been revoked/)
  })
})
