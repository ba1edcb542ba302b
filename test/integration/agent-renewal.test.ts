// The certificate of an agent over its whole life, with the agent's clock in the test's hand.
import { expect } from 'chai'
import { X509Certificate } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { keepCertificate, type EnrolState } from '#agent/enrol.ts'
import { requireOwnCertificate } from '#agent/agent-key.ts'
import type { GroupVersionResource } from '#apimachinery/meta/index.ts'
import { createClient, httpTransport, loadKubeconfig, type KubeClient } from '#client/index.ts'
import { memberClusters, systemNamespace, type MemberCluster } from '#crds/index.ts'
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
  const used: { readonly certificate: string; readonly key: string }[] = []
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
  const agentOf = async () =>
    (await served.root.get<MemberCluster>(memberClusters, { name: 'paris' }, { signal })).status?.agent
  const until = (count: number): Promise<unknown> =>
    waitFor(() => used.length === count, { what: `${count} certificates`, deadlineMs: 10_000 })

  it('is valid for seven days, and is that of the key in the member', async () => {
    await until(1)
    const [{ certificate, key } = { certificate: '', key: '' }] = used
    requireOwnCertificate(certificate, key, 'paris')
    const left = new X509Certificate(certificate).validToDate.getTime() - Date.now()
    expect(left).to.be.within(7 * day - 60_000, 7 * day)
    expect(told.at(-1)?.reason).to.equal('Enrolled')
  })

  it('is renewed for the same key at two thirds of its life, not before', async () => {
    nowMs = Date.now() + 4 * day
    await new Promise((resolve) => setTimeout(resolve, 500))
    expect(used.length).to.equal(1)
    nowMs = Date.now() + 4.8 * day
    await until(2)
    expect(used[1]?.key).to.equal(used[0]?.key)
    expect(told.at(-1)?.reason).to.equal('Renewed')
    const valid = (await agentOf())?.certificates?.map(({ fingerprint }) => fingerprint)
    for (const { certificate } of used)
      expect(valid).to.include(new X509Certificate(certificate).fingerprint256.replaceAll(':', '').toLowerCase())
  })

  it('is asked for again, with another key, when the member joins with another token', async () => {
    const count = used.length
    await join_('paris')
    await until(count + 1)
    expect(used.at(-1)?.key).to.not.equal(used[0]?.key)
    expect((await agentOf())?.certificates?.length).to.equal(1)
  })

  it('is not renewed after it was revoked, which the agent tells', async () => {
    await served.root.patch(memberClusters, { name: 'paris' }, 'merge', { spec: { agent: null } }, { signal })
    nowMs = Date.now() + 4.8 * day
    await waitFor(() => told.at(-1)?.reason === 'Refused', { what: 'the refusal', deadlineMs: 10_000 })
    expect(told.at(-1)?.message).to.match(/may have been revoked/)
  })
})
