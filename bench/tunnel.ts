// Measures requests to a member through the tunnel of its agent beside requests to it directly, alone and beside
// clients that do not read.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { createClient, httpTransport, loadKubeconfig, type KubeClient, type Transport } from '#client/index.ts'
import { connectToMember, remoteDialer, type MemberConnection } from '#client/member/index.ts'
import { memberClusters, type MemberCluster } from '#crds/index.ts'
import { startCluster } from '#test/support/index.ts'
import { openPki } from '#virtualapi/index.ts'
import { inParallel } from './in-parallel.ts'
import { joinByAgent } from './join-by-agent.ts'
import { startKcpUnderTest } from './kcp-under-test.ts'
import type { Measurement, Numbers } from './measurement.ts'
import { median, quantile, rounded } from './statistics.ts'

const configMaps = { group: '', version: 'v1', resource: 'configmaps' } as const
const namespaces = { group: '', version: 'v1', resource: 'namespaces' } as const
const rounds = 5
const roundMs = 2000
const atOnce = 16
/** Large objects, which each unread watch waits to send. */
const large = 20
const unread = 16
const idleWatches = 500

interface Way {
  readonly name: 'direct' | 'tunnel'
  readonly client: KubeClient
  readonly transport: Transport
}

export const tunnel: Measurement = {
  name: 'tunnel',
  describes: `requests to a member directly and through its agent, alone, then beside ${idleWatches} watches and ${unread} clients that do not read`,
  async run({ signal, say }) {
    await using stack = new AsyncDisposableStack()
    const dir = mkdtempSync(join(tmpdir(), 'kcp-bench-tunnel-'))
    stack.defer(() => rmSync(dir, { recursive: true, force: true }))
    const member = stack.use(await startCluster({ name: 'benchtunnel', controllerManager: true, signal }))
    const kcp = stack.use(await startKcpUnderTest({ dir }))
    const rootDir = join(dir, 'root')
    const joining = ['member', 'join', 'east', '--kubeconfig', member.kubeconfig, '--root-dir', rootDir] as const
    stack.use(await joinByAgent([...joining], { kcp, kubeconfig: member.kubeconfig, dir }))
    say('the member has joined')
    const direct = stack.use(httpTransport(await loadKubeconfig({ file: member.kubeconfig }, { trusted: true })))
    const root = stack.use(httpTransport(await loadKubeconfig({ file: kcp.adminKubeconfig }, { trusted: true })))
    const { metadata } = await createClient(root).get<MemberCluster>(memberClusters, { name: 'east' }, { signal })
    const through = stack.use(await connectThrough({ uid: metadata.uid ?? '', rootDir, port: kcp.port }, stack))
    const ways: readonly Way[] = [
      { name: 'direct', client: createClient(direct), transport: direct },
      { name: 'tunnel', client: through.client, transport: through.transport },
    ]
    const alone = await compared(ways, signal)
    say(JSON.stringify(alone))
    const life = new AbortController()
    stack.defer(() => life.abort())
    await loadWatches(through, life.signal)
    const beside = await compared(ways, signal)
    say(JSON.stringify(beside))
    return {
      ...named('alone', alone),
      ...named(`beside ${idleWatches} watches and ${unread} that do not read`, beside),
      'p99 beside them to p99 alone, through the tunnel': rounded(
        (beside['tunnel p99 ms'] ?? 0) / (alone['tunnel p99 ms'] ?? 1),
      ),
    }
  },
}

function named(title: string, numbers: Numbers): Numbers {
  return Object.fromEntries(Object.entries(numbers).map(([name, value]) => [`${title}: ${name}`, value]))
}

/** As the operator connects from another process. */
async function connectThrough(
  { uid, rootDir, port }: { readonly uid: string; readonly rootDir: string; readonly port: number },
  stack: AsyncDisposableStack,
): Promise<MemberConnection> {
  const pki = await openPki(rootDir)
  const who = { commonName: 'kcp:operator', organizations: ['kcp:system'], realm: 'installation', days: 1 } as const
  const { certificate: cert, key } = await pki.issueClientCertificate(who)
  const transport = stack.use(httpTransport({ server: `https://127.0.0.1:${port}`, ca: pki.servingCa, cert, key }))
  const way = { kind: 'agent', member: { name: 'east', uid } } as const
  return await connectToMember(way, { responseTimeoutMs: 30_000, dialer: remoteDialer(transport) })
}

/** Each way by turns: latency of one client, and requests a second of several. */
async function compared(ways: readonly Way[], signal: AbortSignal): Promise<Numbers> {
  const seen = new Map(
    ways.map(({ name }) => [name, { p50: [] as number[], p99: [] as number[], rate: [] as number[] }]),
  )
  for (let round = 0; round < rounds; round++)
    for (const { name, client } of round % 2 === 0 ? ways : ways.toReversed()) {
      const one = await asked(client, 1, signal)
      const many = await asked(client, atOnce, signal)
      seen.get(name)?.p50.push(quantile(one, 0.5))
      seen.get(name)?.p99.push(quantile(one, 0.99))
      seen.get(name)?.rate.push((many.length * 1000) / roundMs)
    }
  return Object.fromEntries(
    [...seen].flatMap(([name, { p50, p99, rate }]) => [
      [`${name} p50 ms`, rounded(median(p50))],
      [`${name} p99 ms`, rounded(median(p99))],
      [`${name} requests/s of ${atOnce} clients`, rounded(median(rate))],
    ]),
  )
}

/** Milliseconds of each request. */
async function asked(client: KubeClient, clients: number, signal: AbortSignal): Promise<number[]> {
  const until = performance.now() + roundMs
  const times: number[] = []
  await Promise.all(
    Array.from({ length: clients }, async () => {
      while (performance.now() < until) {
        const began = performance.now()
        await client.get(namespaces, { name: 'default' }, { signal })
        times.push(performance.now() - began)
      }
    }),
  )
  return times
}

/** Watches without events, and watches whose events nobody reads, through the tunnel. */
async function loadWatches({ client, transport }: MemberConnection, signal: AbortSignal): Promise<void> {
  const text = 'x'.repeat(900_000)
  await inParallel(
    Array.from({ length: large }, (_, i) => i),
    4,
    (i) =>
      client
        .create<KubeObject>(configMaps, { ...configMap(`large-${i}`), data: { text } }, { signal })
        .then(() => undefined),
  )
  const path = '/api/v1/namespaces/default/configmaps?watch=1'
  for (let i = 0; i < unread; i++) await transport.request({ method: 'GET', path, signal })
  for (let i = 0; i < idleWatches; i++)
    await transport.request({ method: 'GET', path: `${path}&fieldSelector=metadata.name%3Dnone-${i}`, signal })
}

const configMap = (name: string): KubeObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace: 'default' },
})
