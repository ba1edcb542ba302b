// `kcp adopt NAMESPACE --from MEMBER --into CLUSTER[/NAMESPACE]`: shows what would be taken over and, if it is asked
// for, follows the adoption until the namespace belongs to the logical cluster. The operator does the work, so this
// command can end at any time and be run again.
import { createInterface } from 'node:readline/promises'
import { sleep } from '#async/index.ts'
import { tolerate } from '#apimachinery/status/index.ts'
import { createClient, httpTransport, loadKubeconfig } from '#client/index.ts'
import {
  adoptableLabel,
  adoptions,
  findCondition,
  logicalClusters,
  memberClusters,
  type Adoption,
  type AdoptionMode,
  type PlannedObject,
} from '#crds/index.ts'
import { renewRights } from '#syncer/index.ts'
import { ExitError, UsageError } from '#cli/process/exit-error.ts'
import { processSignal } from '#cli/process/process-signal.ts'
import { startProgress } from '#cli/process/progress.ts'
import type { InstallationFlags } from './flags.ts'
import { openInstallation, type Installation } from './installation.ts'
import { columns, documentText } from './output.ts'

interface Flags extends InstallationFlags {
  readonly from: string
  readonly into: string
  readonly yes?: boolean
  readonly undo?: boolean
  readonly memberKubeconfig?: string
  readonly memberContext?: string
  /** Seconds. */
  readonly timeout: number
  readonly output: 'table' | 'json' | 'yaml'
}

const namespaces = { group: '', version: 'v1', resource: 'namespaces' } as const
const lookMs = 300

/** Runs the command. */
export async function run(namespace: string, flags: Flags): Promise<void> {
  const { undo = false, yes = false, output } = flags
  const signal = processSignal()
  await using installation = await openInstallation(flags, signal)
  const adoption = await adoptionOf(installation, namespace, flags, signal)
  const context = { installation, flags, name: adoption.metadata.name, signal }
  if (undo) {
    await giveBack(context, adoption, yes)
    return
  }
  const planned = await untilPlanned(context, adoption)
  process.stdout.write(output === 'table' ? planText(planned) : documentText(planned, output))
  const condition = findCondition(planned, 'Adopted')
  if (condition?.status === 'True') {
    console.error(condition.message)
    return
  }
  const refused = findCondition(planned, 'Planned')
  if (refused?.status !== 'True')
    throw new ExitError(`nothing was changed: ${condition?.message ?? refused?.message ?? ''}`)
  if (!yes && !(await isConfirmed(`adopt namespace "${namespace}" of ${flags.from} into ${flags.into}?`))) {
    console.error('nothing was changed; --yes adopts the namespace')
    return
  }
  await follow(context, 'Adopt', 'Adopted')
}

interface Context {
  readonly installation: Installation
  readonly flags: Flags
  readonly name: string
  readonly signal: AbortSignal
}

/** Member names and namespaces have no dots at their ends, so the name belongs to this pair alone. */
function nameFor(member: string, namespace: string): string {
  return `${member}.${namespace}`
}

/** The Adoption of this namespace: the present one, or a new one that only plans. */
async function adoptionOf(
  { clusters }: Installation,
  namespace: string,
  { from: member, into, undo = false }: Flags,
  signal: AbortSignal,
): Promise<Adoption> {
  const [logicalCluster = '', target, ...rest] = into.split('/')
  if (rest.length > 0 || logicalCluster === '' || target === '')
    throw new UsageError(`--into is CLUSTER or CLUSTER/NAMESPACE, not "${into}"`)
  const [cluster, found] = await Promise.all([
    clusters.tryGet(logicalClusters, { name: logicalCluster }, { signal }),
    clusters.tryGet(memberClusters, { name: member }, { signal }),
  ])
  if (found === undefined) throw new ExitError(`there is no MemberCluster "${member}"; kcp get members lists them`)
  if (cluster === undefined) throw new ExitError(`there is no LogicalCluster "${logicalCluster}"; kcp list lists them`)
  const name = nameFor(member, namespace)
  const known = await clusters.tryGet<Adoption>(adoptions, { name }, { signal })
  const spec = { member, namespace, logicalCluster, ...(target !== undefined && { targetNamespace: target }) }
  if (known !== undefined) {
    const { logicalCluster: other, targetNamespace: place = namespace, mode = 'Plan' } = known.spec
    const isSame = other === logicalCluster && place === (target ?? namespace)
    if (isSame && (undo || mode === 'Adopt')) return known
    const record = findCondition(known, 'Adopted')
    const isOver = mode === 'Plan' || (mode === 'Undo' && record?.reason === 'Undone')
    if (!isOver)
      throw new ExitError(`Adoption "${name}" is in mode ${mode}, into ${other}/${place}: ${record?.message ?? ''}`)
    // A plan is made anew, so that it tells of the namespace as it is now.
    const { uid } = known.metadata
    await clusters.delete(adoptions, { name }, { ...(uid && { uid }), signal }).catch(tolerate('NotFound'))
  }
  if (undo) throw new ExitError(`namespace "${namespace}" of "${member}" was not adopted into ${into}`)
  const object: Adoption = { apiVersion: 'kcp.dev/v1alpha1', kind: 'Adoption', metadata: { name }, spec }
  return await clusters.create<Adoption>(adoptions, object, { signal })
}

/** Resolves with the Adoption once its plan is there; gives the consent first, if the admin's kubeconfig was given. */
async function untilPlanned(context: Context, { metadata }: Adoption): Promise<Adoption> {
  const { flags, signal } = context
  let hasConsented = flags.memberKubeconfig === undefined
  const began = Date.now()
  using progress = startProgress()
  for (;;) {
    const object = await read(context)
    if (object.metadata.uid !== metadata.uid) throw new ExitError(`Adoption "${context.name}" was created again`)
    const { clusterId, observedGeneration = -1 } = object.status ?? {}
    const adopted = findCondition(object, 'Adopted')
    const isSeen = observedGeneration >= (object.metadata.generation ?? 0) && adopted !== undefined
    if (isSeen && clusterId !== undefined && !hasConsented && adopted.status !== 'True') {
      hasConsented = true
      await consent(context, object.spec.namespace, clusterId)
    } else if (isSeen && (adopted.reason !== 'NotConsented' || flags.memberKubeconfig === undefined)) return object
    if (Date.now() - began > flags.timeout * 1000)
      throw new ExitError(`no plan after ${flags.timeout} s: ${adopted?.message ?? 'does the operator run?'}`)
    progress.tell(adopted?.message ?? 'waiting for the operator')
    await sleep(lookMs, signal)
  }
}

/**
 * Writes the label of consent with the rights of an admin of the member, after kcp's own rights there: the member may have
 * joined with an older release.
 */
async function consent(
  { installation: { clusters }, flags, signal }: Context,
  namespace: string,
  clusterId: string,
): Promise<void> {
  const options = { trusted: true, ...(flags.memberContext !== undefined && { context: flags.memberContext }) }
  const memberKubeconfig = await loadKubeconfig({ file: flags.memberKubeconfig ?? '' }, options)
  await renewRights({ name: flags.from, clusters, memberKubeconfig, signal })
  await using transport = httpTransport(memberKubeconfig)
  const metadata = { labels: { [adoptableLabel]: clusterId } }
  await createClient(transport).patch(namespaces, { name: namespace }, 'merge', { metadata }, { signal })
  console.error(`namespace "${namespace}" has the label ${adoptableLabel}=${clusterId} now`)
}

async function read({ installation, name, signal }: Context): Promise<Adoption> {
  const found = await installation.clusters.tryGet<Adoption>(adoptions, { name }, { signal })
  if (found === undefined) throw new ExitError(`Adoption "${name}" was deleted`)
  return found
}

async function giveBack(context: Context, { spec }: Adoption, yes: boolean): Promise<void> {
  const what = `namespace "${spec.namespace}" to ${spec.member}`
  if (!yes && !(await isConfirmed(`give ${what} back?`))) {
    console.error('nothing was changed; --yes gives the namespace back')
    return
  }
  await follow(context, 'Undo', 'Undone')
}

/** Sets the mode and follows the adoption until it has this reason. */
async function follow(context: Context, mode: AdoptionMode, reason: 'Adopted' | 'Undone'): Promise<void> {
  const { installation, name, flags, signal } = context
  const patched = await installation.clusters.patch<Adoption>(
    adoptions,
    { name },
    'merge',
    { spec: { mode } },
    { signal },
  )
  const generation = patched.metadata.generation ?? 0
  const began = Date.now()
  using progress = startProgress()
  for (;;) {
    const object = await read(context)
    const adopted = findCondition(object, 'Adopted')
    const isSeen = (adopted?.observedGeneration ?? -1) >= generation
    if (isSeen && adopted?.reason === reason) {
      console.log(
        `${reason === 'Adopted' ? 'adopted' : 'given back'} in ${((Date.now() - began) / 1000).toFixed(1)} s: ${adopted.message}`,
      )
      return
    }
    if (isSeen && adopted?.reason === 'CannotUndo') throw new ExitError(`nothing was changed: ${adopted.message}`)
    if (isSeen && adopted?.reason === 'Refused') throw new ExitError(adopted.message)
    if (Date.now() - began > flags.timeout * 1000)
      throw new ExitError(
        `not ${reason === 'Adopted' ? 'adopted' : 'given back'} after ${flags.timeout} s, it goes on: ${adopted?.message ?? ''}`,
      )
    progress.tell(adopted?.message ?? '')
    await sleep(lookMs, signal)
  }
}

async function isConfirmed(question: string): Promise<boolean> {
  if (!process.stdin.isTTY) return false
  using lines = createInterface({ input: process.stdin, output: process.stderr })
  return /^y(es)?$/i.test((await lines.question(`${question} [y/N] `)).trim())
}

/** The objects with what becomes of them, who owns their fields, and the counts. */
function planText({ status }: Adoption): string {
  const { objects = [], counts = [], findings = [] } = status ?? {}
  const rows = objects.map((one) => [one.action, `${one.kind}/${one.name}`, ownersText(one), one.message ?? ''])
  const table = rows.length === 0 ? '' : columns([['ACTION', 'OBJECT', 'OWNERS OF FIELDS', 'WHY'], ...rows])
  const total = counts.map(({ action, objects: count }) => `${action} ${count}`).join(', ')
  const known = findings.map(({ about, message }) => `note: ${about}: ${message}\n`).join('')
  return `${table}${total === '' ? '' : `${total}; -o yaml shows the fields\n`}${known}`
}

function ownersText({ owners = [] }: PlannedObject): string {
  return owners
    .map(
      ({ manager, fields, shared }) =>
        `${manager}: ${shared === 0 ? `keeps ${fields}` : `shares ${shared} of ${fields}`}`,
    )
    .join(', ')
}
