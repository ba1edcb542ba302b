// `kcp fence MEMBER`: declares that nothing runs any more in a member cluster that does not respond.
import { isStatusError } from '#apimachinery/status/index.ts'
import { findCondition, memberClusters, type MemberCluster } from '#crds/index.ts'
import { ExitError } from '#cli/process/exit-error.ts'
import { processSignal } from '#cli/process/process-signal.ts'
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
  const member = await clusters.get<MemberCluster>(memberClusters, { name }, { signal }).catch((error: unknown) => {
    if (isStatusError(error, 'NotFound'))
      throw new ExitError(`there is no MemberCluster "${name}"; kubectl get mc lists them`)
    throw error
  })
  if (!undo && findCondition(member, 'Reachable')?.status !== 'False')
    throw new ExitError(`member cluster "${name}" answers, so it cannot be fenced; drain it instead: kcp drain ${name}`)
  await clusters.patch(memberClusters, { name }, 'merge', { spec: { fenced: undo ? null : true } }, { signal })
  console.log(`member cluster "${name}" is ${undo ? 'not fenced any more' : 'fenced: its workloads start elsewhere'}`)
}
