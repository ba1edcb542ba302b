// `kcp placement explain KIND/NAME`: why a workload runs where it does, filter by filter and score by score.
import { explainWorkload, type WorkloadExplanation } from '#operator/index.ts'
import { createLogger } from '#telemetry/index.ts'
import { parseWorkload } from '#cli/across/workloads.ts'
import { ExitError } from '#cli/process/exit-error.ts'
import { processSignal } from '#cli/process/process-signal.ts'
import { clusterOf, logicalClusterOf } from './credentials.ts'
import type { InstallationFlags } from './flags.ts'
import { openInstallation, openPlacement } from './installation.ts'
import { currentKcpContext } from './kubeconfig-file.ts'
import { documentText } from './output.ts'

interface Flags extends InstallationFlags {
  readonly cluster?: string
  readonly namespace?: string
  readonly output: 'text' | 'json' | 'yaml'
}

/** Runs the command. */
export async function run(text: string, flags: Flags): Promise<void> {
  const { kind, name } = parseWorkload(text)
  const cluster = await clusterOf(flags)
  const namespace = flags.namespace ?? (await currentKcpContext())?.namespace ?? 'default'
  const signal = processSignal()
  await using installation = await openInstallation(flags, signal)
  // First, because informers would wait for a server that does not answer.
  await logicalClusterOf(installation, cluster, signal)
  await using placement = await openPlacement(installation, { log: createLogger({ level: 'warn' }), signal })
  const found = explainWorkload(placement.inputs, { kind, cluster, namespace, name })
  if (found === undefined)
    throw new ExitError(`there is no ${kind.kind} "${namespace}/${name}" in logical cluster "${cluster}"`)
  process.stdout.write(flags.output === 'text' ? `${explanationText(found)}\n` : documentText(found, flags.output))
}

/** The explanation as lines for a terminal. */
export function explanationText({
  target,
  source,
  placedOn,
  asleep,
  waits,
  failures,
  balance,
  decision,
  members,
}: WorkloadExplanation): string {
  const asked = target.kind === 'members' ? target.names.join(', ') : target.kind
  const copies = Object.entries(placedOn).map(
    ([member, { state, since = '', replicas }]) =>
      `${member} (${state} since ${since}${replicas === undefined ? '' : `, ${replicas} replicas`})`,
  )
  const { wanted, held } = decision
  const lines = members.map(({ cluster, chosen, current, refusals, scores }) => {
    const marks = [...(chosen ? ['chosen'] : []), ...(current ? ['has a copy'] : [])]
    const values = scores.map(({ name, value }) => `${name}=${value}`).join(' ')
    const reasons = refusals.map(({ reason, message }) => `\n    ${reason}: ${message}`).join('')
    return `  ${cluster}${marks.length === 0 ? '' : ` (${marks.join(', ')})`}: ${values}${reasons}`
  })
  return [
    `asked for: ${asked} (by ${source})`,
    `placed on: ${copies.join(', ') || 'nothing'}`,
    ...(asleep === undefined ? [] : [`asleep:    ${asleep}`]),
    ...waits.map((wait) => `waits for: ${wait}`),
    ...failures.map((failure) => `fails in:  ${failure}`),
    `wanted:    ${wanted.kind === 'members' ? wanted.names.join(', ') : wanted.kind}`,
    ...held.map(({ reason, message }) => `held:      ${reason}: ${message}`),
    `balance:   ${balance}`,
    'member clusters, the best first:',
    ...lines,
  ].join('\n')
}
