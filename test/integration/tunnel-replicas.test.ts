// Tunnels with several replicas and an operator of its own process: an agent reaches any replica, and so do the users of
// its tunnel.
import { expect } from 'chai'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { clusterIdOf, type KubeObject } from '#apimachinery/meta/index.ts'
import { createClient, httpTransport, loadKubeconfig, type KubeClient } from '#client/index.ts'
import { connectToMember, remoteDialer } from '#client/member/index.ts'
import { installationKeysName, memberClusters } from '#crds/index.ts'
import { startSimulatedMember } from '#simulation/index.ts'
import { bucketNumberOf } from '#store/host/index.ts'
import { joinByPull } from '#syncer/index.ts'
import { silentLogger } from '#telemetry/index.ts'
import { kubectl, waitFor } from '#test/support/index.ts'
import { createPki, pkiFromSecret, type Pki } from '#virtualapi/index.ts'
import { ask, newAgentKey, type Server } from './agent-enrolment.ts'
import { startReplicas, type ReplicaSet, type RunningReplica } from './replicas.ts'
import { registerInPullMode, runAgent, type TunnelledMember } from './tunnelled-member.ts'

const secrets = { group: '', version: 'v1', resource: 'secrets' } as const
const namespaces = { group: '', version: 'v1', resource: 'namespaces' } as const
const within = { deadlineMs: 60_000, intervalMs: 100 }

describe('the tunnel of a member, with several replicas', function () {
  this.timeout(120_000)
  const stack = new AsyncDisposableStack()
  const life = new AbortController()
  const { signal } = life
  let set: ReplicaSet
  let pki: Pki
  let clusters: KubeClient
  let lab = { certificate: '', key: '' }
  let member: TunnelledMember
  let owner: RunningReplica
  /** The only replica that the agent knows: it passes the agent on to the owner. */
  let survivor: RunningReplica

  before(async function () {
    this.timeout(300_000)
    const dir = mkdtempSync(join(tmpdir(), 'kcp-tunnels-'))
    stack.defer(() => rmSync(dir, { recursive: true, force: true }))
    set = stack.use(await startReplicas(2, { name: 'tunnels' }))
    stack.defer(() => life.abort())
    const paris = stack.use(await startSimulatedMember({ name: 'paris', dir, log: silentLogger, signal }))
    const host = stack.use(httpTransport(await loadKubeconfig({ file: set.host.kubeconfig }, { trusted: true })))
    clusters = createClient(host)
    const ref = { namespace: 'kcp-system', name: installationKeysName }
    const keys = await clusters.get<KubeObject & { data: Record<string, string> }>(secrets, ref, { signal })
    pki = createPki(pkiFromSecret(keys.data))
    member = await registerInPullMode('paris', { clusters, pki, signal })
    owner = await waitFor(ownerOfTunnel, { what: 'an owner of the tunnel', ...within })
    const other = set.replicas.find((replica) => replica !== owner)
    if (other === undefined) throw new Error('there is one replica only')
    survivor = other
    const installation = { url: survivor.url, ca: pki.servingCa }
    void runAgent(member, installation, { kubeconfig: paris.kubeconfig, signal })
  })
  after(async function () {
    this.timeout(60_000)
    await stack.disposeAsync()
  })

  const ownerOfTunnel = async (): Promise<RunningReplica | undefined> => {
    const bucket = bucketNumberOf(clusterIdOf(member.uid))
    const leases = await set.leases()
    const claim = leases.every(({ claims }) => claims.size > 0) && leases.find(({ claims }) => claims.has(bucket))
    return set.replicas.find(({ process }) => claim && claim.process.includes(` pid=${process.pid} `))
  }
  const at = ({ address, port }: RunningReplica): Server => ({ host: address, port, ca: pki.servingCa })
  const condition = async (type: string): Promise<string> => {
    const path = `jsonpath={.status.conditions[?(@.type=="${type}")].status}`
    return (await kubectl(set.host.kubeconfig, ['get', 'mc', 'paris', '-o', path])).stdout
  }
  /** The number of namespaces of the member, asked through the tunnel at this replica. */
  const namespacesThrough = async (replica: RunningReplica): Promise<number> => {
    const file = await set.installationKubeconfig('any', replica)
    const text = readFileSync(file, 'utf8').replace('/clusters/any', '')
    await using transport = httpTransport(await loadKubeconfig({ text }))
    const way = { kind: 'agent', member } as const
    await using connection = await connectToMember(way, {
      responseTimeoutMs: 5000,
      dialer: remoteDialer(transport),
    })
    return (await connection.client.list<KubeObject>(namespaces, { signal })).items.length
  }

  it('is reached by the operator, and through each replica', async () => {
    await waitFor(async () => (await condition('Reachable')) === 'True', {
      what: 'the member to be reached',
      ...within,
    })
    for (const replica of set.replicas)
      await waitFor(async () => (await namespacesThrough(replica).catch(() => 0)) > 0, {
        what: `an answer through ${replica.url}`,
        ...within,
      })
  })

  it('is opened for one key of those that show a token at different replicas at once', async () => {
    const { manifest } = await joinByPull({
      ...{ name: 'lab', clusters, server: owner.url, ca: pki.servingCa, image: 'kcp', log: silentLogger, signal },
      ...{ tokenMs: 600_000, approves: true },
    })
    const secret = manifest.find(({ metadata }) => metadata.name === 'kcp-agent-join')
    const { token } = (secret as { stringData?: { token: string } }).stringData ?? { token: '' }
    const askAll = () =>
      Promise.all(
        [owner, survivor, owner, survivor].map(async (replica) => {
          const key = newAgentKey()
          return { ...(await ask(at(replica), { member: 'lab', token, key })), key }
        }),
      )
    // A replica knows of the member as soon as its informer does.
    const answers = await waitFor(
      async () => {
        const all = await askAll()
        return all.some(({ status }) => status === 201) ? all : undefined
      },
      { what: 'a certificate', ...within },
    )
    const issued = answers.filter(({ status }) => status === 201)
    expect(issued.length).to.equal(1)
    for (const { certificate = '', key } of issued) lab = { certificate, key }
  })

  it('is refused to an agent at all replicas within a second after its revocation', async () => {
    const renew = async (replica: RunningReplica): Promise<number> =>
      (await ask(at(replica), { member: 'lab', client: lab, key: lab.key })).status
    for (const replica of set.replicas)
      await waitFor(async () => (await renew(replica)) === 201, { what: `a renewal at ${replica.url}`, ...within })
    await clusters.patch(memberClusters, { name: 'lab' }, 'merge', { spec: { agent: null } }, { signal })
    await new Promise((resolve) => setTimeout(resolve, 1000))
    for (const replica of set.replicas) expect(await renew(replica)).to.equal(401)
  })

  it('moves to another replica when its owner is killed', async () => {
    await owner.process.kill()
    await waitFor(async () => (await namespacesThrough(survivor).catch(() => 0)) > 0, {
      what: 'an answer through the replica that is left',
      ...within,
    })
  })
})
