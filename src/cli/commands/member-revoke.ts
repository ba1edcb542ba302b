// `kcp member revoke NAME`: the certificates of a member's agent do not count any more.
import { memberClusters } from '#crds/index.ts'
import { ExitError } from '#cli/process/exit-error.ts'
import { processSignal } from '#cli/process/process-signal.ts'
import { memberOf } from './credentials.ts'
import type { InstallationFlags } from './flags.ts'
import { openInstallation } from './installation.ts'

/** Runs the command. */
export async function run(name: string, flags: InstallationFlags): Promise<void> {
  const signal = processSignal()
  await using installation = await openInstallation(flags, signal)
  const { clusters } = installation
  const member = await memberOf(installation, name, signal)
  if (member.spec?.agent === undefined && member.status?.agent === undefined)
    throw new ExitError(`member cluster "${name}" has no agent`)
  // First the grant, without which no certificate counts and none is issued.
  await clusters.patch(memberClusters, { name }, 'merge', { spec: { agent: null } }, { signal })
  await clusters.patch(
    memberClusters,
    { name },
    'merge',
    { status: { agent: null } },
    { subresource: 'status', signal },
  )
  console.log(
    `the agent of "${name}" is refused from now on; what runs there goes on. Join it again with: kcp member join ${name} --pull`,
  )
}
