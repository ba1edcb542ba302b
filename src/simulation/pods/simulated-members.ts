// What the API server of a simulated member needs to reach its pods: they run in this process.
import { badRequest, isStatusError, notFound } from '#apimachinery/status/index.ts'
import type { TransportResponse } from '#client/index.ts'
import { gvrOf, type Pod } from '#simulation/cluster/objects.ts'
import type { Simulation } from '#simulation/cluster/simulation.ts'
import type { Kubelet } from '#simulation/nodes/kubelet.ts'
import type { PodRun } from '#simulation/nodes/pod-run.ts'
import type { Members } from '#virtualapi/index.ts'
import { acceptChannels } from './channels.ts'
import { environmentOf, filesOf } from '#simulation/runtime/environment.ts'
import { runningContainer, startAttach, startExec } from './exec.ts'
import { readLog } from './logs.ts'
import type { Network } from '#simulation/runtime/network.ts'
import { portIn, startPortForward } from './port-forward.ts'
import { chooseEndpoint, parseServiceUrl } from '#simulation/runtime/service-lookup.ts'
import type { ShellWorld } from './shell.ts'
import { usageOf, type Usage } from './usage.ts'

type PodConnection = Parameters<Members['podConnector']['request']>[0]

/** The parts that run while the member has power. */
export interface RunningParts {
  readonly simulation: Simulation
  readonly kubelet: Kubelet
}

/** Reaches the pods of the parts that run now. */
export function simulatedMembers(running: () => RunningParts | undefined, network: Network): Members {
  return {
    podConnector: {
      request: async (connection) => await answer(runOf(running(), connection), connection),
      upgrade: async (connection) => ({ upgraded: await upgrade(running(), connection, network) }),
    },
    podWriter: {
      update: refuse,
      delete: refuse,
      evict: refuse,
    },
    metrics: {
      areServedIn: () => true,
      usageIn: ({ namespace }) => Promise.resolve(usageIn(running(), namespace)),
    },
    access: { find: () => Promise.resolve(undefined), request: refuse, upgrade: refuse },
    memberTokens: { verify: () => Promise.resolve(undefined) },
    fleet: { all: () => [], adminPlacements: () => [], onChange: () => () => undefined },
    mayRunPods: () => true,
    nameOf: () => Promise.resolve(undefined),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  }
}

/** A pod that says that it is in another member: its annotation is wrong here. */
function refuse(): Promise<never> {
  return Promise.reject(badRequest('this pod has annotation kcp.dev/member, and a simulated member has no members'))
}

function runOf(parts: RunningParts | undefined, { pod }: PodConnection): PodRun {
  const run = parts?.kubelet.run(pod as Pod)
  if (run === undefined) throw notFound(gvrOf('pods'), pod.metadata.name ?? '')
  return run
}

async function answer(run: PodRun, { subresource, query, signal }: PodConnection): Promise<TransportResponse> {
  if (subresource !== 'log') throw badRequest('Upgrade request required')
  try {
    const body = readLog(run, new URLSearchParams(query), signal)
    return await Promise.resolve({ status: 200, headers: { 'content-type': 'text/plain' }, body })
  } catch (error) {
    if (!isStatusError(error)) throw error
    return {
      status: error.code,
      headers: { 'content-type': 'application/json' },
      body: bytesOf(JSON.stringify(error.status)),
    }
  }
}

async function* bytesOf(text: string): AsyncGenerator<Uint8Array> {
  yield await Promise.resolve(Buffer.from(text))
}

type Upgraded = Awaited<ReturnType<typeof acceptChannels>>

async function upgrade(
  parts: RunningParts | undefined,
  connection: PodConnection,
  network: Network,
): Promise<Upgraded> {
  const run = runOf(parts, connection)
  const { subresource, query: text, rawHeaders } = connection
  const query = new URLSearchParams(text)
  if (subresource === 'portforward') {
    const port = portIn(query)
    return await acceptChannels(rawHeaders, (channels) => startPortForward(channels, run, port))
  }
  const container = runningContainer(run, query)
  // The connection outlives the request that began it; it ends with the member.
  const { simulation } = parts as RunningParts
  if (subresource === 'attach')
    return await acceptChannels(rawHeaders, (channels) => startAttach(channels, container, simulation.signal))
  const world: ShellWorld = {
    pod: run.pod,
    container: container.container,
    environment: environmentOf(simulation, run.pod, container.container),
    files: filesOf(simulation, run.pod, container.container),
    fetch: (url) => fetchIn(simulation, network, { run, url }),
    signal: simulation.signal,
  }
  return await acceptChannels(rawHeaders, (channels) => startExec(channels, query, world))
}

async function fetchIn(
  simulation: Simulation,
  network: Network,
  { run, url }: { readonly run: PodRun; readonly url: string },
): Promise<string> {
  const parsed = parseServiceUrl(url)
  if (parsed === undefined)
    throw new Error(`${url}: only http:// URLs of Services and pods can be reached in a simulated container`)
  const { host, port, path } = parsed
  const { name = '', namespace = '' } = run.pod.metadata
  const isAddress = /^[\d.]+$/.test(host)
  const target = isAddress ? { address: host, port } : chooseEndpoint(simulation, { namespace, host, port })
  const { status, body } = await network.request(target.address, target.port, {
    method: 'GET',
    path,
    from: name,
    depth: 0,
  })
  if (status >= 400) throw new Error(`the server answered ${status}: ${body.trim()}`)
  return body
}

function usageIn(parts: RunningParts | undefined, namespace: string): ReadonlyMap<string, Usage> {
  const found = new Map<string, Usage>()
  for (const run of parts?.kubelet.runs() ?? []) {
    if (run.pod.metadata.namespace !== namespace) continue
    const usage = usageOf(run)
    if (usage !== undefined) found.set(run.pod.metadata.name ?? '', usage)
  }
  return found
}
