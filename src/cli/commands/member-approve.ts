// `kcp member approve NAME`: accepts the agent of a member in pull mode that has shown the token, or that was away for
// longer than its certificate was valid.
import type { DeepReadonly } from '#client/index.ts'
import { agentKeyOf, agentPhase, memberClusters, waitingAgent, type MemberCluster } from '#crds/index.ts'
import { ExitError } from '#cli/process/exit-error.ts'
import { processSignal } from '#cli/process/process-signal.ts'
import { memberOf } from './credentials.ts'
import type { InstallationFlags } from './flags.ts'
import { openInstallation } from './installation.ts'
import { columns } from './output.ts'

interface Flags extends InstallationFlags {
  readonly key?: string
  readonly show?: boolean
}

/** Runs the command. */
export async function run(name: string, { key: wanted, show = false, ...flags }: Flags): Promise<void> {
  const signal = processSignal()
  await using installation = await openInstallation(flags, signal)
  const member = await memberOf(installation, name, signal)
  const waiting = waitingAgent(member, Date.now())
  if (waiting === undefined && !(show && member.status?.agent !== undefined))
    throw new ExitError(whyNot(member, agentPhase(member, Date.now())))
  process.stdout.write(claimsText(member))
  if (show || waiting === undefined) return
  if (wanted !== undefined && wanted !== waiting.key)
    throw new ExitError(`the agent of "${name}" has another key than "${wanted}": nothing was approved`)
  const patch = { spec: { agent: { approval: waiting.approval } } }
  await installation.clusters.patch(memberClusters, { name }, 'merge', patch, { signal })
  console.log(`approved; watch it with: kubectl get memberclusters ${name}`)
}

function claimsText({ metadata, status }: DeepReadonly<MemberCluster>): string {
  const { askedAt = '', claims = {}, readmission } = status?.agent ?? {}
  return columns([
    ['member', metadata.name],
    ['key', agentKeyOf(status?.agent, readmission?.certificate) ?? ''],
    ['asked', readmission?.askedAt ?? askedAt],
    ['kubernetes', claims.kubernetesVersion ?? 'not told'],
    ['kube-system', claims.kubeSystemUID ?? 'not told'],
    ['agent', claims.agentVersion ?? 'not told'],
  ])
}

function whyNot(
  { metadata: { name }, spec }: DeepReadonly<MemberCluster>,
  phase: ReturnType<typeof agentPhase>,
): string {
  const again = `run kcp member join ${name} --pull again`
  switch (phase) {
    case 'WaitingForAgent':
      return `no agent of "${name}" has asked yet: apply the manifest of kcp member join there; its token is valid until ${spec?.agent?.token?.expires ?? ''}`
    case 'TokenExpired':
      return `no agent of "${name}" has asked before its token has expired: ${again}`
    case 'ApprovalExpired':
      return `the token of "${name}" has expired before its agent was approved: ${again}`
    case 'Approved':
    case 'Enrolled':
      return `the agent of "${name}" is approved already`
    case 'CertificateExpired':
      return `the certificate of the agent of "${name}" has expired, and the agent has not asked for another one: it may be off. If it was off for more than 90 days: ${again}`
    default:
      return `member cluster "${name}" waits for no agent: ${again}`
  }
}
