// Agents and installations of different versions: what they agree on when a tunnel is opened, and what both say when
// they cannot.
import { expect } from 'chai'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { WebSocket, WebSocketServer } from 'ws'
import { connectToMember } from '#client/member/index.ts'
import { memberClusters, type AgentTunnel, type MemberCluster } from '#crds/index.ts'
import { choiceHeaders, type TunnelOffer } from '#network/tunnel/index.ts'
import { startSimulatedMember, type SimulatedMember } from '#simulation/index.ts'
import { createLogger, programVersion, silentLogger, type Logger } from '#telemetry/index.ts'
import { createMembers } from '#virtualapi/index.ts'
import { waitFor } from '#test/support/index.ts'
import { startServedApi, type ServedApi } from './served-api.ts'
import { registerInPullMode, runAgent, type TunnelledMember } from './tunnelled-member.ts'

const namespaces = { group: '', version: 'v1', resource: 'namespaces' } as const

describe('the versions of an agent and its installation', function () {
  this.timeout(60_000)
  const stack = new AsyncDisposableStack()
  const life = new AbortController()
  const { signal } = life
  let served: ServedApi
  let paris: SimulatedMember
  let members = 0

  before(async () => {
    const dir = mkdtempSync(join(tmpdir(), 'kcp-versions-'))
    stack.defer(() => rmSync(dir, { recursive: true, force: true }))
    stack.defer(() => life.abort())
    served = stack.use(
      await startServedApi({
        members: ({ loopback, dialer }) =>
          createMembers({ transport: loopback, basePath: '/clusters/root', dialer, log: silentLogger, signal }),
      }),
    )
    paris = stack.use(await startSimulatedMember({ name: 'paris', dir, log: silentLogger, signal }))
  })
  after(() => stack.disposeAsync())

  const nextMember = (): Promise<TunnelledMember> =>
    registerInPullMode(`m-${++members}`, { clusters: served.root, pki: served.pki, signal })

  /** Runs an agent that says this of itself. Returns what it logs, and the function that ends it. */
  const start = (member: TunnelledMember, offer?: TunnelOffer, port = served.port) => {
    const lines: string[] = []
    const log: Logger = createLogger({ level: 'warn', destination: { write: (line) => lines.push(line) } })
    const running = new AbortController()
    signal.addEventListener('abort', () => running.abort())
    void runAgent(
      member,
      { url: `https://127.0.0.1:${port}`, ca: served.pki.servingCa },
      { kubeconfig: paris.kubeconfig, signal: running.signal, log, ...(offer && { offer }) },
    )
    return { lines, end: () => running.abort() }
  }
  const tunnelOf = async ({ name }: TunnelledMember): Promise<AgentTunnel> =>
    (await served.root.get<MemberCluster>(memberClusters, { name }, { signal })).status?.agent?.tunnel ?? {}
  const until = (member: TunnelledMember, is: (tunnel: AgentTunnel) => boolean): Promise<AgentTunnel> =>
    waitFor(
      async () => {
        const tunnel = await tunnelOf(member)
        return is(tunnel) ? tunnel : undefined
      },
      { what: 'the state of the tunnel', deadlineMs: 15_000 },
    )

  it('are shown with what the agent can do, capabilities that we do not know included', async () => {
    const member = await nextMember()
    const before = new Date(Math.floor(Date.now() / 1000) * 1000).toISOString()
    start(member, { versions: [1, 2], capabilities: ['act-as', 'teleport', 'Not A Name'], program: '9.9.9' })
    const { since = '', ...tunnel } = await until(member, ({ protocol }) => protocol !== undefined)
    expect(tunnel).to.deep.equal({ protocol: 1, agentVersion: '9.9.9', capabilities: ['act-as', 'teleport'] })
    expect(Date.parse(since)).to.be.at.least(Date.parse(before))
  })

  for (const { is, reason, versions, message } of [
    {
      is: 'too old',
      reason: 'AgentTooOld',
      versions: [0],
      message: /set the image of Deployment kcp-agent .* to version/,
    },
    { is: 'too new', reason: 'AgentTooNew', versions: [98, 99], message: /update the installation, or in that member/ },
  ])
    it(`refuse an agent that is ${is}, say in the MemberCluster and in the agent's log what to do, and take another one`, async () => {
      const member = await nextMember()
      const agent = start(member, { versions, capabilities: [], program: '0.0.1' })
      const { refused } = await until(member, (tunnel) => tunnel.refused !== undefined)
      expect(refused?.reason).to.equal(reason)
      const spoken = `the agent (0.0.1) speaks version ${versions.join(', ')} of the tunnel, and this installation (${programVersion}) 1: `
      expect(refused?.message).to.include(spoken).and.match(message)
      await waitFor(() => agent.lines.some((line) => line.includes('406') && line.includes(spoken)), {
        what: 'the log of the agent',
        deadlineMs: 5000,
      })
      agent.end()
      start(member)
      const tunnel = await until(member, (now) => now.refused === undefined)
      expect(tunnel).to.deep.include({ protocol: 1, agentVersion: programVersion })
      // In a rollout, the old agent goes on asking for a while.
      const old = start(member, { versions, capabilities: [] })
      await waitFor(() => old.lines.some((line) => line.includes('406')), { what: 'the refusal', deadlineMs: 5000 })
      old.end()
      expect((await tunnelOf(member)).refused).to.equal(undefined)
    })

  it('are those of before the negotiation if an agent says nothing', async () => {
    const member = await nextMember()
    const url = `wss://127.0.0.1:${served.port}/services/agent/${member.name}/tunnel?session=control`
    const { certificate: cert, key } = member
    const webSocket = new WebSocket(url, { cert, key, ca: served.pki.servingCa })
    webSocket.on('error', () => undefined)
    stack.defer(() => webSocket.terminate())
    expect(await until(member, ({ protocol }) => protocol !== undefined)).to.deep.include({
      protocol: 1,
      capabilities: ['act-as'],
    })
  })

  it('let nothing be asked of an agent that it cannot do, which the error says with the remedy', async () => {
    const member = await nextMember()
    start(member, { versions: [1], capabilities: [], program: '0.0.1' })
    await until(member, ({ protocol }) => protocol !== undefined)
    const options = { responseTimeoutMs: 5000, dialer: served.api.dialer }
    await using connection = await connectToMember({ kind: 'agent', member }, options)
    const path = '/as/default/fleet/api/v1/namespaces'
    const error = await connection.transport.request({ method: 'GET', path, signal }).catch((error: unknown) => error)
    expect(String(error)).to.match(/version 0.0.1, cannot do "act-as": in that member, set the image/)
    await waitFor(() => connection.client.list(namespaces, { signal }).then(() => true), {
      what: 'requests that need nothing',
      deadlineMs: 5000,
    })
  })

  it('end a tunnel whose server has chosen a version that the agent does not speak', async () => {
    const member = await nextMember()
    const { key, certificate: cert } = await served.pki.servingCertificate(['127.0.0.1'])
    const server = createServer({ key, cert })
    const acceptor = new WebSocketServer({ server })
    acceptor.on('headers', (headers) => headers.push(`${choiceHeaders.version}: 7`))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    stack.defer(() => void server.close())
    const agent = start(member, undefined, (server.address() as AddressInfo).port)
    await waitFor(
      () => agent.lines.some((line) => line.includes('speaks version 7 of the tunnel, and this agent 1: update')),
      {
        what: 'the log of the agent',
        deadlineMs: 5000,
      },
    )
    agent.end()
  })

  it('cannot be made up: lists that are no versions are refused', async () => {
    const member = await nextMember()
    for (const versions of [[], [1.5], Array.from({ length: 17 }, (_, i) => i), [99_999]]) {
      const agent = start(member, { versions, capabilities: [] })
      await waitFor(() => agent.lines.some((line) => /400.*cannot be read/.test(line)), {
        what: 'a 400',
        deadlineMs: 5000,
      })
      agent.end()
    }
    expect(await tunnelOf(member)).to.deep.equal({})
  })
})
