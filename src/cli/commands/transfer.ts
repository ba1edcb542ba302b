// `kcp transfer NAME --to FILE`: a logical cluster goes to another installation while it is in use. Each step is durable
// in one of the two, so that a command that was broken off goes on when it runs again; until the switch, `--abort`
// undoes all of it.
import { hash, randomBytes, randomUUID } from 'node:crypto'
import { performance } from 'node:perf_hooks'
import { sleep } from '#async/index.ts'
import { clusterIdOf, type ClusterName, type KubeObject } from '#apimachinery/meta/index.ts'
import { isStatusError, tolerate } from '#apimachinery/status/index.ts'
import { createClient, type KubeClient, type Transport } from '#client/index.ts'
import {
  fillingOf,
  isOwnAnnotation,
  logicalClusters,
  systemNamespace,
  transferAnnotation,
  transferOf,
  type LogicalCluster,
  type TransferNote,
} from '#crds/index.ts'
import { transferPath, transferSecretName, type TransferState, type TransferStep } from '#snapshot/index.ts'
import { ExitError, UsageError } from '#cli/process/exit-error.ts'
import { processSignal } from '#cli/process/process-signal.ts'
import { untilReady } from './create.ts'
import { logicalClusterOf, nameOfLogicalCluster } from './credentials.ts'
import { rootDirFlag, type InstallationFlags } from './flags.ts'
import { installationOfFile, openDirect, openInstallation, type Installation } from './installation.ts'
import { whenServed } from './restore.ts'
import { copyChanges, differingResources, HeldObjects, type Copying } from './transfer-objects.ts'

interface Flags extends InstallationFlags {
  readonly to: string
  readonly toContext?: string
  readonly parent?: string
  readonly abort?: boolean
  readonly forwardDays: number
}

/** The source takes writes again after this time, if the command ends in between. */
const closedSeconds = 30
/** With fewer changes than this in a round, the source can be closed for the last ones. */
const fewChanges = 100
const maxRounds = 20
/** Attempts to switch; each fails if the objects at both ends differ. */
const maxSwitches = 3
/** How long a server may take to learn of an annotation. */
const learnMs = 15_000
/** Revisions that the source may have shown after its last write. */
const revisionSlack = 10_000

const secrets = { group: '', version: 'v1', resource: 'secrets' } as const
const namespaces = { group: '', version: 'v1', resource: 'namespaces' } as const

/** Runs the command. */
export async function run(text: string, flags: Flags): Promise<void> {
  const name = nameOfLogicalCluster(text)
  const signal = processSignal()
  await using stack = new AsyncDisposableStack()
  const source = await openEnd(await openInstallation(flags, signal), { name, stack })
  const found = {
    ...(await installationOfFile(flags.to)),
    ...(flags.toContext !== undefined && { hostContext: flags.toContext }),
  }
  const target = await openEnd(await openInstallation(found, signal), { name, stack })
  if (source.installation.directUrl === target.installation.directUrl)
    throw new UsageError(`--to ${flags.to} is the installation that "${name}" is in`)
  const move: Move = { name, flags, source, target, signal }
  if (flags.abort === true) {
    await abort(move)
    console.log(`the move of "${name}" was undone; it goes on where it was`)
    return
  }
  const begun = await begin(move)
  const moved =
    begun.phase === 'Moved' ? undefined : await copyAndSwitch({ ...move, ...begun }).catch(explained(move, begun))
  await finish({ ...move, ...begun })
  const { server } = begun
  const pause = moved === undefined ? '' : `; writes waited for ${Math.round(moved.pauseMs)} ms`
  console.log(`"${name}" has moved to ${server}${pause}`)
  if (flags.forwardDays > 0)
    console.log(
      `for ${flags.forwardDays} days, requests at its old address are passed on, as long as it is not deleted here`,
    )
  console.log(`a kubeconfig of the new place:  kcp kubeconfig ${name}${installationFlags(found)}`)
}

function installationFlags(flags: InstallationFlags): string {
  return flags.rootDir === undefined ? ` --host-kubeconfig ${flags.hostKubeconfig ?? ''}` : rootDirFlag(flags)
}

/** One installation, and the logical cluster in it. */
interface End {
  readonly installation: Installation
  readonly transport: Transport
  /** The API of the logical cluster, as the installation. */
  readonly client: KubeClient
}

interface Move {
  readonly name: ClusterName
  readonly flags: Flags
  readonly source: End
  readonly target: End
  readonly signal: AbortSignal
}

interface Begun {
  readonly id: string
  /** This run of the command: objects of an earlier one are refused from now on. */
  readonly run: string
  readonly key: string
  readonly phase: TransferState['phase']
  /** The URL of the logical cluster at the target. */
  readonly server: string
}

async function openEnd(
  installation: Installation,
  { name, stack }: { readonly name: ClusterName; readonly stack: AsyncDisposableStack },
): Promise<End> {
  stack.use(installation)
  const transport = stack.use(await openDirect(installation))
  return { installation, transport, client: createClient(transport, { basePath: `/clusters/${name}` }) }
}

function post({ client }: End, step: TransferStep, signal: AbortSignal): Promise<TransferState> {
  return client.raw(transferPath, { method: 'POST', body: step, signal }) as Promise<TransferState>
}

/** Like `post`, for a server that may not have read the annotation of the LogicalCluster yet. */
async function postWhenKnown(end: End, step: TransferStep, signal: AbortSignal): Promise<TransferState> {
  const until = Date.now() + learnMs
  for (;;) {
    try {
      return await post(end, step, signal)
    } catch (error) {
      const isUnknown = isStatusError(error, 'Conflict') && error.message.includes(transferAnnotation)
      if (!isUnknown || Date.now() > until) throw error
      await sleep(20, signal)
    }
  }
}

async function stateOf({ client }: End, signal: AbortSignal): Promise<TransferState> {
  return (await client.raw(transferPath, { signal })) as TransferState
}

/** Notes the move in both installations, and makes the logical cluster at the target. */
async function begin(move: Move): Promise<Begun> {
  const { name, source, target, flags, signal } = move
  const object = await logicalClusterOf(source.installation, name, signal)
  await requireMovable(object, move)
  const there = await target.installation.clusters.tryGet<LogicalCluster>(logicalClusters, { name }, { signal })
  const id = transferOf(object)?.id ?? randomUUID()
  if (
    there !== undefined &&
    transferOf(there)?.id !== id &&
    transferOf(object)?.moved !== true &&
    !(await isOpenBy(move, id))
  )
    throw new ExitError(`the installation of --to has a LogicalCluster "${name}" already`)
  const value: TransferNote = { role: 'source', id, with: target.installation.directUrl }
  if (transferOf(object)?.id !== id) await note(source.installation, object, value, signal)
  const run = randomUUID()
  const { phase, revision } = await stateOf(source, signal)
  if (phase === 'Moved') {
    const secret = await readSecret(source.installation.clusters, name, signal)
    return { id, run, phase, key: secret?.key ?? '', server: secret?.server ?? '' }
  }
  try {
    const kept = await readSecret(source.installation.clusters, name, signal)
    const key = kept?.id === id ? kept.key : randomBytes(32).toString('hex')
    // The key is durable here before the target knows its hash.
    await writeSecret(move, { id, key, server: '' })
    const made = there ?? (await makeTarget(object, move, { id, key }))
    await whenServed(target.client, signal)
    const server = await urlOf(target, name, signal)
    await writeSecret(move, { id, key, server, uid: made.metadata.uid ?? '' })
    const received = await postWhenKnown(target, { do: 'receive', id, run, above: revision + revisionSlack }, signal)
    if (received.revision <= revision && flags.forwardDays > 0)
      throw new ExitError(
        `resourceVersions of the target (${received.revision}) are behind those of "${name}" (${revision}) and cannot be raised, so clients at the old address could not tell old from new; --forward-days 0 moves it without passing requests on`,
      )
    return { id, run, key, phase, server }
  } catch (error) {
    return await undone(error, move)
  }
}

async function requireMovable(object: LogicalCluster, { name, source, target, signal }: Move): Promise<void> {
  const known = transferOf(object)
  if (known?.role === 'source' && known.with !== target.installation.directUrl)
    throw new ExitError(`"${name}" is on its way to ${known.with}; --to must lead there, to go on or to --abort`)
  if (known?.moved === true) return
  if (object.metadata.deletionTimestamp !== undefined) throw new ExitError(`"${name}" is being deleted`)
  const waits = fillingOf(object)
  if (waits !== undefined) throw new ExitError(`"${name}" is not whole: ${waits}`)
  const { items } = await source.installation.clusters.list<LogicalCluster>(logicalClusters, { signal })
  const child = items.find(({ spec }) => spec?.parentRef?.name === name)
  if (child !== undefined)
    throw new ExitError(`"${child.metadata.name}" is below "${name}", and a tree does not move as a whole`)
}

/** Whether an earlier run has opened the target already. */
async function isOpenBy({ target, signal }: Move, id: string): Promise<boolean> {
  const state = await stateOf(target, signal).catch((error: unknown) => {
    if (isStatusError(error, 'NotFound')) return undefined
    throw error
  })
  return state?.phase === 'Open' && state.id === id
}

/** Writes the annotation. Rejects with ExitError if somebody else has changed the object since it was read. */
async function note(
  { clusters }: Installation,
  { metadata: { name, uid, resourceVersion } }: LogicalCluster,
  value: TransferNote | null,
  signal: AbortSignal,
): Promise<void> {
  const annotations = { [transferAnnotation]: value === null ? null : JSON.stringify(value) }
  const metadata = { uid, resourceVersion, annotations }
  await clusters.patch(logicalClusters, { name }, 'merge', { metadata }, { signal }).catch((error: unknown) => {
    if (!isStatusError(error, 'Conflict')) throw error
    throw new ExitError(
      `LogicalCluster "${name}" was changed at the same time, perhaps by another kcp transfer: try again`,
    )
  })
}

interface SecretContent {
  readonly id: string
  readonly key: string
  readonly server: string
}

async function readSecret(clusters: KubeClient, name: string, signal: AbortSignal): Promise<SecretContent | undefined> {
  const ref = { namespace: systemNamespace, name: transferSecretName(name) }
  const found = await clusters.tryGet<KubeObject>(secrets, ref, { signal })
  if (found === undefined) return undefined
  const data = (found['data'] ?? {}) as Readonly<Record<string, string>>
  const text = (field: string): string => Buffer.from(data[field] ?? '', 'base64').toString()
  return { id: text('id'), key: text('key'), server: text('server') }
}

/** Keeps the way to the target at the source. `uid`: that of the LogicalCluster there, once it exists. */
async function writeSecret(
  { name, flags, source, target, signal }: Move,
  { uid, ...content }: SecretContent & { readonly uid?: string },
): Promise<void> {
  const { clusters } = source.installation
  const { pki } = target.installation
  const days = flags.forwardDays
  const credential =
    uid === undefined || days === 0
      ? undefined
      : await pki.issueClientCertificate({
          commonName: 'kcp:transfer',
          organizations: ['system:masters'],
          realm: clusterIdOf(uid),
          days,
        })
  const stringData = {
    ...content,
    ca: pki.servingCa,
    ...(credential && { cert: credential.certificate, certKey: credential.key }),
  }
  const metadata = { name: transferSecretName(name), namespace: systemNamespace }
  const data = Object.fromEntries(
    Object.entries(stringData).map(([field, value]) => [field, Buffer.from(value).toString('base64')]),
  )
  const secret = { apiVersion: 'v1', kind: 'Secret', metadata, data }
  const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: systemNamespace } }
  await clusters.create(namespaces, namespace, { signal }).catch(tolerate('AlreadyExists', 'Forbidden'))
  await clusters.delete(secrets, metadata, { signal }).catch(tolerate('NotFound'))
  await clusters.create(secrets, secret, { signal })
}

async function makeTarget(
  { metadata, spec }: LogicalCluster,
  { name, source, target, flags, signal }: Move,
  { id, key }: Pick<Begun, 'id' | 'key'>,
): Promise<LogicalCluster> {
  const value: TransferNote = {
    role: 'target',
    id,
    with: `${source.installation.directUrl}/clusters/${name}`,
    keyHash: hash('sha256', key),
  }
  const kept = Object.entries(metadata.annotations ?? {}).filter(
    ([key]) => !isOwnAnnotation(key) && !key.startsWith('kcp.dev/'),
  )
  const { source: _source, parentRef: _parent, ...rest } = spec ?? {}
  const object: LogicalCluster = {
    apiVersion: 'kcp.dev/v1alpha1',
    kind: 'LogicalCluster',
    metadata: {
      name,
      annotations: { ...Object.fromEntries(kept), [transferAnnotation]: JSON.stringify(value) },
      ...(metadata.labels !== undefined && { labels: metadata.labels }),
    },
    spec: { ...rest, ...(flags.parent !== undefined && { parentRef: { name: flags.parent } }) },
  }
  return await target.installation.clusters.create<LogicalCluster>(logicalClusters, object, { signal })
}

/** The URL of the logical cluster that reaches the server itself. */
async function urlOf({ installation: { clusters } }: End, name: string, signal: AbortSignal): Promise<string> {
  const until = Date.now() + learnMs
  for (;;) {
    const { status } = await clusters.get<LogicalCluster>(logicalClusters, { name }, { signal })
    const url = status?.directURL ?? status?.url
    if (url !== undefined) return url
    if (Date.now() > until)
      throw new ExitError(`no operator of the target has looked at "${name}" yet; try kcp diagnose`)
    await sleep(50, signal)
  }
}

/** Copies until little is left, then switches. Resolves with the time for which writes waited. */
async function copyAndSwitch(move: Move & Begun): Promise<{ readonly pauseMs: number }> {
  const { name, source, target, id, run, signal } = move
  const copying: Copying = { source: source.client, target: target.client, run, known: undefined, since: 0, signal }
  const began = performance.now()
  for (let round = 1; round <= maxRounds; round++) {
    const { objects, changes, bytes } = await copyChanges(copying)
    const seconds = ((performance.now() - began) / 1000).toFixed(1)
    console.log(`${objects} objects at revision ${copying.since}: ${changes} changes, ${bytes} bytes; ${seconds} s`)
    if (round > 1 && changes <= fewChanges) break
  }
  for (let attempt = 1; ; attempt++) {
    // Another run, or --abort, may have changed its mind.
    const note = transferOf(await logicalClusterOf(source.installation, name, signal))
    if (note?.id !== id) throw new ExitError(`the move of "${name}" was undone by another command`)
    const closedAt = performance.now()
    await postWhenKnown(source, { do: 'close', id, run, seconds: closedSeconds }, signal)
    try {
      await copyChanges(copying)
      const differing = await differingResources(copying)
      if (differing.length === 0) {
        const { opened } = await post(source, { do: 'commit', id, run }, signal)
        if (opened !== true) await openTarget(move)
        return { pauseMs: performance.now() - closedAt }
      }
      if (attempt === maxSwitches)
        throw new ExitError(
          `these objects change at the target by themselves: ${differing.join(', ')}; it was not switched`,
        )
      console.error(`these differ at both ends and are copied again: ${differing.join(', ')}`)
    } catch (error) {
      await post(source, { do: 'reopen', id, run }, new AbortController().signal).catch(() => undefined)
      throw error
    }
    await post(source, { do: 'reopen', id, run }, signal)
    copying.since = 0
    await copyChanges(copying)
  }
}

async function openTarget({ source, target, id, key, signal }: Move & Begun): Promise<void> {
  const { revision } = await stateOf(source, signal)
  await postWhenKnown(target, { do: 'open', id, key, above: revision + revisionSlack }, signal)
}

/** What is left to do after the switch; may run twice. */
async function finish(move: Move & Begun): Promise<void> {
  const { name, source, target, id, signal } = move
  if ((await stateOf(target, signal)).phase !== 'Open') await openTarget(move)
  const there = await logicalClusterOf(target.installation, name, signal)
  const uid = there.metadata.uid
  if (transferOf(there)?.id === id)
    await target.installation.clusters.patch(
      logicalClusters,
      { name },
      'merge',
      { metadata: { uid, annotations: { [transferAnnotation]: null } } },
      { signal },
    )
  await untilReady(target.installation.clusters, name, { signal, timeoutMs: 60_000 })
  const value: TransferNote = { role: 'source', id, with: move.server || target.installation.directUrl, moved: true }
  const annotations = { [transferAnnotation]: JSON.stringify({ ...value, with: target.installation.directUrl }) }
  await source.installation.clusters.patch(
    logicalClusters,
    { name },
    'merge',
    { metadata: { annotations } },
    { signal },
  )
}

/** Undoes the move, unless it is over. */
async function abort(move: Move): Promise<void> {
  const { name, source, target, signal } = move
  const object = await logicalClusterOf(source.installation, name, signal)
  const known = transferOf(object)
  if (known?.role !== 'source') throw new ExitError(`"${name}" is not on its way anywhere`)
  if (known.with !== target.installation.directUrl)
    throw new ExitError(`"${name}" is on its way to ${known.with}; --to must lead there`)
  const { phase } = await stateOf(source, signal)
  if (phase === 'Moved') throw new ExitError(`"${name}" has moved already; kcp transfer from there brings it back`)
  // From here on a command that still runs cannot switch.
  await note(source.installation, object, null, signal)
  await postWhenKnown(source, { do: 'reopen', id: known.id }, signal)
  const there = await target.installation.clusters.tryGet<LogicalCluster>(logicalClusters, { name }, { signal })
  if (there !== undefined && transferOf(there)?.id === known.id) {
    const uid = there.metadata.uid ?? ''
    await target.installation.clusters.delete(logicalClusters, { name }, { uid, signal }).catch(tolerate('NotFound'))
    await whenGone(target, { name, uid }, signal)
  }
  const ref = { namespace: systemNamespace, name: transferSecretName(name) }
  await source.installation.clusters.delete(secrets, ref, { signal }).catch(tolerate('NotFound'))
}

async function whenGone(
  { installation: { clusters } }: End,
  { name, uid }: { readonly name: string; readonly uid: string },
  signal: AbortSignal,
): Promise<void> {
  const until = Date.now() + 60_000
  for (;;) {
    const found = await clusters.tryGet<LogicalCluster>(logicalClusters, { name }, { signal })
    if (found?.metadata.uid !== uid) return
    if (Date.now() > until)
      throw new ExitError(`LogicalCluster "${name}" of the target does not go; try kcp diagnose there`)
    await sleep(100, signal)
  }
}

/** True for a refusal that another try would meet again. */
function isRefusal(error: unknown): boolean {
  if (error instanceof HeldObjects) return true
  if (error instanceof ExitError) return true
  return isStatusError(error) && error.code >= 400 && error.code < 500 && ![401, 409, 429].includes(error.code)
}

/** Undoes the move after a refusal, and rejects with its reason; leaves it as it is after any other error. */
async function undone(error: unknown, move: Move): Promise<never> {
  const { name, signal } = move
  if (!isRefusal(error)) throw error
  signal.throwIfAborted()
  await abort(move)
  const message = error instanceof Error ? error.message : String(error)
  throw new ExitError(`"${name}" was not moved, and nothing has changed: ${message}`, { cause: error })
}

function explained(move: Move, { id }: Begun) {
  return async (error: unknown): Promise<never> => {
    const { name, source } = move
    const state = await stateOf(source, new AbortController().signal).catch(() => undefined)
    if (state?.phase === 'Moved' && state.id === id) throw error
    if (isRefusal(error)) return await undone(error, move)
    console.error(`the same command goes on; with --abort, it undoes what was done, and "${name}" stays where it is`)
    throw error
  }
}
