// `kcp bind PROVIDER:EXPORT`: makes the resources of an export of another logical cluster resources of this one.
import { sleep } from '#async/index.ts'
import type { ClusterName, KubeObject } from '#apimachinery/meta/index.ts'
import { isStatusError, tolerate } from '#apimachinery/status/index.ts'
import type { KubeClient } from '#client/index.ts'
import { apiBindings, apiExports, type AcceptedClaim, type APIBinding, type APIExport } from '#crds/index.ts'
import { directOf } from '#cli/across/direct.ts'
import { ExitError, UsageError } from '#cli/process/exit-error.ts'
import { processSignal } from '#cli/process/process-signal.ts'
import { clusterOf, logicalClusterOf, nameOfLogicalCluster, openInside } from './credentials.ts'
import type { InstallationFlags } from './flags.ts'
import { openInstallation, type Installation } from './installation.ts'

interface Flags extends InstallationFlags {
  readonly cluster?: string
  readonly name?: string
  readonly grant?: boolean
  readonly accept?: readonly string[]
  readonly reject?: readonly string[]
  readonly acceptAdmission?: boolean
  /** Seconds. */
  readonly timeout: number
}

const rbac = { group: 'rbac.authorization.k8s.io', version: 'v1' } as const
const clusterRoles = { ...rbac, resource: 'clusterroles' }
const clusterRoleBindings = { ...rbac, resource: 'clusterrolebindings' }
const lookMs = 100

/** Runs the command. */
export async function run(text: string, flags: Flags): Promise<void> {
  const signal = processSignal()
  const [providerText, exportName, ...rest] = text.split(':')
  if (providerText === undefined || exportName === undefined || exportName === '' || rest.length > 0)
    throw new UsageError(`"${text}" is not LOGICALCLUSTER:EXPORT`)
  const provider = nameOfLogicalCluster(providerText)
  const consumer = await clusterOf(flags)
  await using installation = await openInstallation(flags, signal)
  const found = await exportOf(installation, provider, exportName, signal)
  if (flags.grant === true) await grant({ installation, provider, consumer, exportName }, signal)
  await using transport = await openInside(installation, consumer, signal)
  const client = directOf(transport, signal).client(consumer)
  const name = flags.name ?? exportName
  const object: APIBinding = {
    apiVersion: 'apis.kcp.io/v1alpha2',
    kind: 'APIBinding',
    metadata: { name },
    spec: {
      reference: { export: { path: provider, name: exportName } },
      permissionClaims: answersTo(found, flags),
      ...(flags.acceptAdmission === true && { admission: { webhooks: 'Accepted', policies: 'Accepted' } }),
    },
  }
  await client.create(apiBindings, object, { signal }).catch((error: unknown) => {
    if (isStatusError(error, 'Forbidden')) throw new ExitError(`${error.message}; or add --grant`)
    if (!isStatusError(error, 'AlreadyExists')) throw error
    throw new ExitError(`APIBinding "${name}" exists already in logical cluster "${consumer}"; choose another --name`)
  })
  const bound = await untilReady(client, name, { timeoutMs: flags.timeout * 1000, signal })
  const resources = (bound.status?.boundResources ?? []).map(({ group, resource }) => `${resource}.${group}`)
  console.log(`logical cluster "${consumer}" has ${resources.join(', ')} of "${provider}"`)
  const open = openClaims(found, flags)
  if (open.length > 0)
    console.log(`the export claims ${open.join(', ')}: accept or reject it in spec.permissionClaims of the APIBinding`)
  const admission = openAdmission(found, flags)
  if (admission !== undefined) console.log(admission)
}

/** What the export brings that does not act yet; undefined: nothing. */
function openAdmission({ status }: APIExport, { acceptAdmission = false }: Flags): string | undefined {
  const { webhooks = [], policies = [], required = false } = status?.admission ?? {}
  if (acceptAdmission || (webhooks.length + policies.length === 0 && !required)) return undefined
  const parts = [...webhooks, ...policies].join(', ')
  const what = parts === '' ? 'admission of its provider' : `webhooks and policies (${parts})`
  const verb = required ? 'requires' : 'brings'
  return `the export ${verb} ${what}: accept them in spec.admission of the APIBinding, or bind with --accept-admission`
}

async function exportOf(
  installation: Installation,
  provider: ClusterName,
  name: string,
  signal: AbortSignal,
): Promise<APIExport> {
  await using transport = await openInside(installation, provider, signal)
  const found = await directOf(transport, signal).client(provider).tryGet<APIExport>(apiExports, { name }, { signal })
  if (found === undefined) throw new ExitError(`there is no APIExport "${name}" in logical cluster "${provider}"`)
  return found
}

interface Grant {
  readonly installation: Installation
  readonly provider: ClusterName
  readonly consumer: ClusterName
  readonly exportName: string
}

/** Lets all users of the consumer bind the export, by RBAC of the provider. */
async function grant({ installation, provider, consumer, exportName }: Grant, signal: AbortSignal): Promise<void> {
  const { status } = await logicalClusterOf(installation, consumer, signal)
  await using transport = await openInside(installation, provider, signal)
  const client = directOf(transport, signal).client(provider)
  const role = `kcp:bind:${exportName}`
  const rules = [
    { apiGroups: [apiExports.group], resources: ['apiexports'], resourceNames: [exportName], verbs: ['bind'] },
  ]
  const apiVersion = 'rbac.authorization.k8s.io/v1'
  const create = (gvr: typeof clusterRoles, object: KubeObject) =>
    client.create(gvr, object, { signal }).catch(tolerate('AlreadyExists'))
  await create(clusterRoles, { apiVersion, kind: 'ClusterRole', metadata: { name: role }, rules })
  await create(clusterRoleBindings, {
    apiVersion,
    kind: 'ClusterRoleBinding',
    metadata: { name: `${role}:${consumer}` },
    subjects: [{ kind: 'Group', apiGroup: rbac.group, name: `system:cluster:${status?.id ?? ''}` }],
    roleRef: { apiGroup: rbac.group, kind: 'ClusterRole', name: role },
  })
}

/** The answers to the claims that the flags name. Throws UsageError for what the export does not claim. */
function answersTo({ spec }: APIExport, { accept = [], reject = [] }: Flags): AcceptedClaim[] {
  const claims = spec?.permissionClaims ?? []
  const answers = [
    ...accept.map((text) => ['Accepted', text] as const),
    ...reject.map((text) => ['Rejected', text] as const),
  ]
  return answers.map(([state, text]) => {
    const claim = claims.find((one) => claimText(one) === text || `${one.resource}.${one.group ?? ''}` === text)
    if (claim === undefined) {
      const known = claims.map(claimText).join(', ')
      throw new UsageError(
        `the export does not claim "${text}"; ${known === '' ? 'it claims nothing' : `it claims ${known}`}`,
      )
    }
    const { defaultSelector, ...rest } = claim
    return { ...rest, selector: defaultSelector ?? { matchAll: true }, state }
  })
}

function openClaims({ spec }: APIExport, { accept = [], reject = [] }: Flags): string[] {
  const answered = new Set([...accept, ...reject])
  return (spec?.permissionClaims ?? []).map(claimText).filter((text) => !answered.has(text))
}

/** `secrets.core` or `widgets.example.io`, as kcp's own plugin has it. */
function claimText({ group = '', resource }: { readonly group?: string; readonly resource: string }): string {
  return `${resource}.${group === '' ? 'core' : group}`
}

async function untilReady(
  client: KubeClient,
  name: string,
  { timeoutMs, signal }: { readonly timeoutMs: number; readonly signal: AbortSignal },
): Promise<APIBinding> {
  const began = Date.now()
  for (;;) {
    const binding = await client.get<APIBinding>(apiBindings, { name }, { signal })
    const ready = binding.status?.conditions?.find(({ type }) => type === 'Ready')
    if (ready?.status === 'True') return binding
    if (Date.now() - began > timeoutMs)
      throw new ExitError(
        `the binding is not ready after ${timeoutMs / 1000} s: ${ready?.message ?? 'nothing is reported yet'}`,
      )
    await sleep(lookMs, signal)
  }
}
