// `kcp placement explain KIND/NAME`: why a workload runs where it does, filter by filter and score by score.
import { workloadKinds, type WorkloadKind } from '#crds/index.ts'
import { explainWorkload, type WorkloadExplanation } from '#operator/index.ts'
import { createLogger } from '#telemetry/index.ts'
import { ExitError } from '#cli/process/exit-error.ts'
import { processSignal } from '#cli/process/process-signal.ts'
import { logicalClusterOf } from './credentials.ts'
import type { InstallationFlags } from './flags.ts'
import { openInstallation, openPlacement } from './installation.ts'

interface Flags extends InstallationFlags {
  readonly cluster: string
  readonly namespace: string
}

/** Runs the command. */
export async function run(text: string, { cluster, namespace, ...flags }: Flags): Promise<void> {
  const [kindText = '', name = ''] = text.split('/')
  const kind = tryKind(kindText)
  if (kind === undefined || name === '') {
    const kinds = workloadKinds.map((row) => row.kind.toLowerCase()).join(', ')
    throw new ExitError(`"${text}" is not KIND/NAME of a workload; kinds: ${kinds}`)
  }
  const signal = processSignal()
  await using installation = await openInstallation(flags, signal)
  await using placement = await openPlacement(installation, { log: createLogger({ level: 'warn' }), signal })
  const found = explainWorkload(placement.inputs, { kind, cluster, namespace, name })
  if (found === undefined) await logicalClusterOf(installation, cluster, signal)
  if (found === undefined)
    throw new ExitError(`there is no ${kind.kind} "${namespace}/${name}" in logical cluster "${cluster}"`)
  console.log(explanationText(found))
}

/**
 * Finds a kind of workload by its kind, its resource or kubectl's short name, in any case, with or without the group.
 */
function tryKind(text: string): WorkloadKind | undefined {
  const [wanted = '', ...group] = text.toLowerCase().split('.')
  return workloadKinds.find(
    ({ kind, gvr }) =>
      [kind.toLowerCase(), gvr.resource, shortNames[gvr.resource]].includes(wanted) &&
      (group.length === 0 || group.join('.') === gvr.group),
  )
}

const shortNames: Readonly<Record<WorkloadKind['gvr']['resource'], string | undefined>> = {
  deployments: 'deploy',
  statefulsets: 'sts',
  daemonsets: 'ds',
  replicasets: 'rs',
  replicationcontrollers: 'rc',
  cronjobs: 'cj',
  pods: 'po',
  jobs: undefined,
}

function explanationText({
  target,
  source,
  placedOn,
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
    ...waits.map((wait) => `waits for: ${wait}`),
    ...failures.map((failure) => `fails in:  ${failure}`),
    `wanted:    ${wanted.kind === 'members' ? wanted.names.join(', ') : wanted.kind}`,
    ...held.map(({ reason, message }) => `held:      ${reason}: ${message}`),
    `balance:   ${balance}`,
    'member clusters, the best first:',
    ...lines,
  ].join('\n')
}
