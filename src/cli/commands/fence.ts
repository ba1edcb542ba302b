// `kcp fence MEMBER`: declares that nothing runs any more in a member cluster that does not respond.
import { findCondition, memberClusters } from '#crds/index.ts'
import { ExitError } from '#cli/process/exit-error.ts'
import { processSignal } from '#cli/process/process-signal.ts'
import { memberOf } from './credentials.ts'
import type { InstallationFlags } from './flags.ts'
import { openInstallation } from './installation.ts'

interface Flags extends InstallationFlags {
  readonly undo?: boolean
}

/** Runs the command. */
export async function run(name: string, { undo = false, ...flags }: Flags): Promise<void> {
  const signal = processSignal()
  await using installation = await openInstallation(flags, signal)
  const { clusters } = installation
  const member = await memberOf(installation, name, signal)
  if (!undo && findCondition(member, 'Reachable')?.status !== 'False')
    throw new ExitError(`member cluster "${name}" answers, so it cannot be fenced; drain it instead: kcp drain ${name}`)
  await clusters.patch(memberClusters, { name }, 'merge', { spec: { fenced: undo ? null : true } }, { signal })
  console.log(`member cluster "${name}" is ${undo ? 'not fenced any more' : 'fenced: its workloads start elsewhere'}`)
}
