// `kcp cordon MEMBER` and `kcp uncordon MEMBER`: whether a member takes new workloads. What runs there stays.
import { memberClusters, memberState } from '#crds/index.ts'
import { processSignal } from '#cli/process/process-signal.ts'
import { memberOf } from './credentials.ts'
import type { InstallationFlags } from './flags.ts'
import { openInstallation } from './installation.ts'

/** The run of one of the two commands. */
export function runCordon(state: 'Cordoned' | 'Active'): (name: string, flags: InstallationFlags) => Promise<void> {
  return async (name, flags) => {
    const signal = processSignal()
    await using installation = await openInstallation(flags, signal)
    const before = memberState(await memberOf(installation, name, signal))
    await installation.clusters.patch(memberClusters, { name }, 'merge', { spec: { state } }, { signal })
    const result = state === 'Active' ? 'takes workloads again' : 'takes no new workloads'
    const drained =
      before === 'Draining' ? '; its drain has ended, and workloads that have moved stay where they are' : ''
    console.log(`member cluster "${name}" ${result}${drained}`)
  }
}
