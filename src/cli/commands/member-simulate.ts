// `kcp member simulate NAME`: runs a member in this process, without containers, and registers it.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isStatusError } from '#apimachinery/status/index.ts'
import type { ServiceNetwork } from '#crds/index.ts'
import { startSimulatedMember, usualTiming, type SimulatedMember } from '#simulation/index.ts'
import { createLogger, type LogLevel } from '#telemetry/index.ts'
import { ExitError, messageOf, UsageError } from '#cli/process/exit-error.ts'
import { aborted, processSignal, untilStopped } from '#cli/process/process-signal.ts'
import { settleMemory } from '#cli/process/settle-memory.ts'
import type { InstallationFlags } from './flags.ts'
import { openInstallation } from './installation.ts'
import { followPower, powerAnnotation, registerMember, unregisterMember } from './simulated-members.ts'

interface Flags extends InstallationFlags {
  readonly nodes: number
  readonly nodeCpu: string
  readonly nodeMemory: string
  readonly region?: string
  readonly port: number
  readonly podStartMs: number
  readonly serviceNetwork: Exclude<ServiceNetwork, 'Gateway'>
  readonly dataDir?: string
  readonly logLevel: LogLevel
}

/** How long the MemberCluster may take to be deleted at the end. Service managers kill a program after some ten seconds. */
const unregisterMs = 5000

/** Runs the command. */
export async function run(name: string, flags: Flags): Promise<void> {
  if (!/^[a-z0-9]([-a-z0-9]{0,50}[a-z0-9])?$/.test(name))
    throw new UsageError(
      `"${name}" is not a valid name of a simulated member: lower-case letters, digits and "-", at most 52`,
    )
  const signal = processSignal()
  await untilStopped(signal, () => simulate(name, flags, signal))
}

async function simulate(name: string, flags: Flags, signal: AbortSignal): Promise<void> {
  const log = createLogger({ level: flags.logLevel })
  await using stack = new AsyncDisposableStack()
  const { clusters } = stack.use(await openInstallation(flags, signal))
  const dir = flags.dataDir ?? (await mkdtemp(join(tmpdir(), 'kcp-member-')))
  if (flags.dataDir === undefined) stack.defer(() => rm(dir, { recursive: true, force: true }))
  const life = new AbortController()
  stack.defer(() => life.abort(new DOMException('the member stops', 'AbortError')))
  const member = stack.use(await startMember(name, flags, { dir, log, signal: life.signal }))
  const registration = {
    serviceNetwork: flags.serviceNetwork,
    ...(flags.region !== undefined && { labels: { region: flags.region } }),
  }
  await registerMember(member, registration, { clusters, log, signal }).catch((error: unknown) => {
    if (!isStatusError(error, 'Conflict')) throw error
    const advice = `a member that was killed leaves its MemberCluster behind: kubectl delete membercluster ${name}, or use another name`
    throw new ExitError(`${error.message} (${advice})`, { cause: error })
  })
  stack.use(
    followPower([member], { clusters, log, signal }, ({ isOn }) =>
      console.log(`member "${name}" is ${isOn ? 'on' : 'off'}`),
    ),
  )
  settleMemory()
  console.log(welcome(name, flags))
  await aborted(signal)
  if (flags.dataDir === undefined)
    await endRegistration(member, { clusters, signal: AbortSignal.timeout(unregisterMs) })
}

async function startMember(
  name: string,
  { nodes, nodeCpu, nodeMemory, region, port, podStartMs }: Flags,
  process: { readonly dir: string; readonly log: ReturnType<typeof createLogger>; readonly signal: AbortSignal },
): Promise<SimulatedMember> {
  const timing = { ...usualTiming, startMs: Math.round(podStartMs * 0.4), pullMs: Math.round(podStartMs * 0.6) }
  const size = { count: nodes, cpu: nodeCpu, memory: nodeMemory, ...(region !== undefined && { region }) }
  try {
    return await startSimulatedMember({ name, nodes: size, timing, port, ...process })
  } catch (error) {
    const { code } = error as { code?: string }
    if (code === 'EADDRINUSE' || code === 'EACCES')
      throw new ExitError(`cannot listen on 127.0.0.1:${port}: choose another port with --port`, { cause: error })
    throw error
  }
}

async function endRegistration(
  member: SimulatedMember,
  context: Parameters<typeof unregisterMember>[1],
): Promise<void> {
  try {
    console.log(`deleting MemberCluster "${member.name}" ...`)
    if (await unregisterMember(member, context)) return
    console.error(
      `warning: MemberCluster "${member.name}" is still being deleted: kubectl get membercluster ${member.name}`,
    )
  } catch (error) {
    console.error(`warning: MemberCluster "${member.name}" was not deleted: ${messageOf(error)}`)
  }
}

function welcome(name: string, { nodes, dataDir }: Flags): string {
  const end = dataDir === undefined ? 'its MemberCluster and its data are deleted then' : `its data stays in ${dataDir}`
  return `simulated member "${name}" is registered, with ${nodes} node${nodes === 1 ? '' : 's'}; watch it with: kubectl get memberclusters ${name}
Turn it off:  kubectl annotate membercluster ${name} ${powerAnnotation}=off    (on again: ${powerAnnotation}-)
Stop with Ctrl-C; ${end}.`
}
