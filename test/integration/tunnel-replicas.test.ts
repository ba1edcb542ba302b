// Tunnels with several replicas and an operator of its own process: an agent reaches any replica, and so do the users of
// its tunnel.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { clusterIdOf, type KubeObject } from '#apimachinery/meta/index.ts'
import { createClient, httpTransport, loadKubeconfig } from '#client/index.ts'
import { connectToMember, remoteDialer } from '#client/member/index.ts'
import { installationKeysName } from '#crds/index.ts'
import { startSimulatedMember } from '#simulation/index.ts'
import { bucketNumberOf } from '#store/host/index.ts'
import { silentLogger } from '#telemetry/index.ts'
import { kubectl, waitFor } from '#test/support/index.ts'
import { createPki, pkiFromSecret, type Pki } from '#virtualapi/index.ts'
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
    const clusters = createClient(host)
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

  it('moves to another replica when its owner is killed', async () => {
    await owner.process.kill()
    await waitFor(async () => (await namespacesThrough(survivor).catch(() => 0)) > 0, {
      what: 'an answer through the replica that is left',
      ...within,
    })
  })
})
