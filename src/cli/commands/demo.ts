// The demo of `kcp start --demo`: two simulated members, two logical clusters, an application under synthetic traffic.
import { mkdir, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { pluralPath } from './demo-resources.ts'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { sleep } from '#async/index.ts'
import { createClient, type KubeClient } from '#client/index.ts'
import { logicalClusters, type LogicalCluster } from '#crds/index.ts'
import {
  demoClusters,
  demoMembers,
  demoObjects,
  guideText,
  helloManifest,
  Network,
  startSimulatedMember,
  Traffic,
  type SimulatedMember,
} from '#simulation/index.ts'
import type { Logger } from '#telemetry/index.ts'
import { ticketMs } from '#virtualapi/index.ts'
import { settleMemory } from '#cli/process/settle-memory.ts'
import { signInLink } from './console.ts'
import { untilReady } from './create.ts'
import { certificateOf, nameOfLogicalCluster, openInside } from './credentials.ts'
import { useContext } from './kubeconfig-file.ts'
import { openInstallation, type Installation } from './installation.ts'
import { followPower, registerMember } from './simulated-members.ts'
import { TrafficLine } from './traffic-line.ts'

export interface DemoOptions {
  readonly rootDir: string
  /** When the process began, as of performance.now(). */
  readonly startedMs: number
  readonly log: Logger
  readonly signal: AbortSignal
}

const kubeconfigDays = 365
/** How the sizes and the addresses of members differ. */
const firstSubnet = 10

/** Starts everything beside a running `kcp start`, prints the guide, and shows the traffic until the signal aborts. */
export async function runDemo({ rootDir: given, startedMs, log, signal }: DemoOptions): Promise<void> {
  const rootDir = resolve(given)
  await using stack = new AsyncDisposableStack()
  const installation = stack.use(await openInstallation({ rootDir }, signal))
  const { clusters } = installation
  const network = new Network()
  const context = { installation, rootDir, startedMs, network, log, signal }
  const [members] = await Promise.all([startMembers(context, stack), createClusters(clusters, signal)])
  const tell = ({ name, isOn }: SimulatedMember): void => console.log(`member ${name} is ${isOn ? 'on' : 'off'}`)
  stack.use(followPower(members, { clusters, log, signal }, tell))
  const [shop] = await Promise.all(demoClusters.map((name) => startApplication(context, stack, name)))
  if (shop === undefined) throw new Error('the demo has no logical cluster')
  await writeKubeconfig(context)
  await writeFile(join(rootDir, 'hello.yaml'), helloManifest)
  settleMemory()
  const seconds = ((performance.now() - startedMs) / 1000).toFixed(1)
  console.log(await welcome(context, seconds))
  const where = { namespace: 'default', service: 'frontend', portName: 'http' }
  const traffic = new Traffic({ client: shop, ...where, network, log, signal })
  await Promise.all([traffic.run(), new TrafficLine(traffic).show(signal)])
}

async function welcome({ installation, rootDir }: Context, seconds: string): Promise<string> {
  return `The demo is ready after ${seconds} s: two simulated members (${demoMembers.map(({ name }) => name).join(', ')}), two logical clusters
(${demoClusters.join(', ')}), and an application in ${demoClusters[0]}. A simulated client sends it 20 requests per second, to the endpoints that are
ready. Nothing here is real but the API servers, and kcp itself: no program runs in the pods.

${guideText({ rootDir, kcp: 'bin/kcp' })}
Console, for ${ticketMs / 60_000} minutes and one browser (later: bin/kcp console):

  ${await signInLink(installation, { as: 'installation' })}

Stop with Ctrl-C: ${rootDir} is removed, unless you gave it with --root-dir.
`
}

interface Context extends DemoOptions {
  readonly installation: Installation
  readonly network: Network
}

/** Starts the members and registers them. */
async function startMembers(context: Context, stack: AsyncDisposableStack): Promise<SimulatedMember[]> {
  const { installation, rootDir, network, log, signal } = context
  const start = async ({ name, region }: (typeof demoMembers)[number], index: number): Promise<SimulatedMember> => {
    const dir = join(rootDir, 'simulated', name)
    await mkdir(dir, { recursive: true, mode: 0o700 })
    const nodes = { region, subnet: firstSubnet + index }
    const member = stack.use(await startSimulatedMember({ name, dir, nodes, network, log, signal }))
    const { clusters } = installation
    await registerMember(member, { serviceNetwork: 'Flat', labels: { region } }, { clusters, log, signal })
    return member
  }
  return await Promise.all(demoMembers.map(start))
}

async function createClusters(clusters: KubeClient, signal: AbortSignal): Promise<void> {
  for (const name of demoClusters) {
    const object: LogicalCluster = { apiVersion: 'kcp.dev/v1alpha1', kind: 'LogicalCluster', metadata: { name } }
    const found = await clusters.tryGet<LogicalCluster>(logicalClusters, { name }, { signal })
    if (found === undefined) await clusters.create(logicalClusters, object, { signal })
  }
  for (const name of demoClusters) await untilReady(clusters, name, { signal, timeoutMs: 60_000, everyMs: 50 })
}

/** Writes the kubeconfig of the guide: a context for each logical cluster, the first one current. */
async function writeKubeconfig({ installation, rootDir, signal }: Context): Promise<void> {
  const { directUrl, pki } = installation
  for (const name of [...demoClusters].reverse()) {
    const cluster = nameOfLogicalCluster(name)
    await useContext(join(rootDir, 'kubeconfig'), {
      ...{ cluster, server: `${directUrl}/clusters/${name}`, ca: pki.servingCa, installation: { rootDir } },
      credentials: await certificateOf(installation, cluster, kubeconfigDays, signal),
    })
  }
}

/** Applies the application of the logical cluster, and waits until it is available. */
async function startApplication(
  { installation, signal }: Context,
  stack: AsyncDisposableStack,
  name: (typeof demoClusters)[number],
): Promise<KubeClient> {
  const transport = stack.use(await openInside(installation, nameOfLogicalCluster(name), signal))
  const client = createClient(transport, { basePath: `/clusters/${name}` })
  const objects = demoObjects(name)
  for (const object of objects) await apply(client, object, signal)
  for (const object of objects) if (object.kind === 'Deployment') await untilAvailable(client, object, signal)
  return client
}

async function apply(client: KubeClient, object: KubeObject, signal: AbortSignal): Promise<void> {
  const { gvr, isNamespaced } = pluralPath(object)
  const ref = { name: object.metadata.name ?? '', ...(isNamespaced && { namespace: 'default' }) }
  await client.patch(gvr, ref, 'apply', object, { fieldManager: 'kcp-demo', force: true, signal })
}

async function untilAvailable(client: KubeClient, object: KubeObject, signal: AbortSignal): Promise<void> {
  const { gvr } = pluralPath(object)
  const ref = { name: object.metadata.name ?? '', namespace: 'default' }
  for (;;) {
    const { status } = await client.get(gvr, ref, { signal })
    const { availableReplicas = 0 } = (status ?? {}) as { availableReplicas?: number }
    if (availableReplicas >= 2) return
    await sleep(100, signal)
  }
}
