// Starts the logical cluster of a comparison, and opens one of the ways to it.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parse, stringify } from 'yaml'
import { startInstance } from '#test/integration/kcp-instance.ts'
import { startReplicas } from '#test/integration/replicas.ts'

/**
 * The way from a test to its logical cluster: `start` is `kcp start`; `host` is `kcp apiserver` on the etcd of a host,
 * at its own address; `aggregator` is the same through the host's kube-apiserver, as a user of the host.
 */
const ways = ['start', 'host', 'aggregator'] as const
export type Way = (typeof ways)[number]

/** The way that `KCP_PARITY_THROUGH` names, which `make test-long` sets; `start` if it names none. */
export function chosenWay(text = process.env['KCP_PARITY_THROUGH']): Way {
  const found = ways.find((way) => way === (text ?? 'start'))
  if (found === undefined) throw new Error(`KCP_PARITY_THROUGH is "${text}"; use one of ${ways.join(', ')}`)
  return found
}

/** A logical cluster of a new installation. */
export interface OurServer extends AsyncDisposable {
  readonly kubeconfig: string
  /** Path of the logical cluster at its server. */
  readonly base: string
}

interface Kubeconfig {
  readonly clusters: readonly { readonly cluster: { server: string } }[]
}

/** Starts an installation; `name` names its host, and `flags` are for its API server. */
export async function startOurServer({
  name,
  flags,
  way = chosenWay(),
}: {
  readonly name: string
  readonly flags: readonly string[]
  readonly way?: Way
}): Promise<OurServer> {
  await using stack = new AsyncDisposableStack()
  const podSecurity = 'privileged'
  if (way === 'start') {
    const instance = stack.use(await startInstance(flags))
    const { kubeconfig } = await instance.tenant('parity', { podSecurity })
    return owning(stack, kubeconfig)
  }
  // The host reaches its API server at the address that startReplicas gives.
  const apiserverArgs = flags.filter((flag) => !flag.startsWith('--advertise-address'))
  const installation = stack.use(await startReplicas(1, { name: `${name}host`, apiserverArgs }))
  const owner = 'parity-owner'
  await installation.create('parity', { owner, podSecurity })
  const [replica] = installation.replicas
  if (replica === undefined) throw new Error('the installation has no API server')
  if (way === 'host') return owning(stack, await installation.kubeconfig('parity', replica))
  const dir = mkdtempSync(join(tmpdir(), 'kcp-parity-'))
  stack.defer(() => rmSync(dir, { recursive: true, force: true }))
  const { host } = installation
  // Tests impersonate others, and the host asks its own RBAC whether these may come this way.
  const everybody = '--group=system:authenticated'
  await host.kubectl(['create', 'clusterrolebinding', 'parity', '--clusterrole=cluster-admin', everybody])
  const own = await host.kubeconfigFor({ commonName: owner, organizations: [] })
  return owning(stack, throughAggregator(own, join(dir, 'aggregator.kubeconfig')))
}

/** Writes a copy of a host's kubeconfig whose server is the path of the logical cluster there. */
function throughAggregator(kubeconfig: string, file: string): string {
  const config = parse(readFileSync(kubeconfig, 'utf8')) as Kubeconfig
  for (const { cluster } of config.clusters)
    cluster.server += '/apis/virtual.kcp.dev/v1alpha1/logicalclusters/parity/proxy'
  writeFileSync(file, stringify(config), { mode: 0o600 })
  return file
}

function owning(stack: AsyncDisposableStack, kubeconfig: string): OurServer {
  const owned = stack.move()
  const [first] = (parse(readFileSync(kubeconfig, 'utf8')) as Kubeconfig).clusters
  if (first === undefined) throw new Error(`"${kubeconfig}" names no cluster`)
  return { kubeconfig, base: new URL(first.cluster.server).pathname, [Symbol.asyncDispose]: () => owned.disposeAsync() }
}
