// Places objects of kinds that members export: by the rules, filters and moves of workloads, on members that export the
// kind to the logical cluster. How an object moves is what the export says.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { timestamp, type Clock } from '#async/index.ts'
import { clusterInKey, keyFor, parseKey, type DeepReadonly } from '#client/index.ts'
import {
  customSourceOf,
  definitionName,
  exportedMoves,
  heldAnnotation,
  memberStatusAnnotation,
  memberStatusesOf,
  newEvent,
  contentHash,
  placedOn,
  placedOnAnnotation,
  type CustomObjectReport,
  type ExportedMove,
  type MemberCluster,
  type PlacedOn,
  type WorkloadKind,
} from '#crds/index.ts'
import { isStatusError, tolerate } from '#apimachinery/status/index.ts'
import { admitsCluster, onAdmission } from '#operator/exported-apis/admission.ts'
import { membersOf, storageOf } from '#operator/exported-apis/negotiate.ts'
import type { ImportedObjects, MemberApis } from '#operator/exported-apis/member-apis.ts'
import type { OperatorContext } from '#operator/framework/operator-context.ts'
import type { Candidate, Choice, CopySeen } from '#placement/index.ts'
import type { KeyQueue, ReconcileResult } from '#reconcile/index.ts'
import { candidatesFor, choiceOfObject, lostOf } from './observe.ts'
import { moveBegun, moveEvent, settledEvent, settledOn, type EventText } from './moves.ts'
import type { PlacementInputs } from './placement-inputs.ts'
import { plan, type PlanOptions } from './plan.ts'
import { heldMessage } from './status.ts'

const events = { group: '', version: 'v1', resource: 'events' } as const
/** Changes of members within this time lead to one look at their objects. */
const collectMs = 200

interface Dependencies {
  readonly context: OperatorContext
  readonly inputs: PlacementInputs
  readonly apis: MemberApis
  readonly clock: Clock
  readonly times: Omit<PlanOptions, 'nowMs'>
  readonly queue: KeyQueue
  readonly signal: AbortSignal
}

/** A key of the queue: `NAME CLUSTER|NAMESPACE/NAME`, or `all NAME`. */
export function clusterOfImportedKey(key: string): string {
  return clusterInKey(key.slice(key.indexOf(' ') + 1))
}

/** Decides about all objects of exported kinds, then on every change. Returns the function that ends it. */
export function followImported({ inputs, apis, queue }: Dependencies): () => void {
  const all = (): void => {
    for (const { api } of apis.openedObjects()) queue.addAfter(`all ${definitionName(api)}`, collectMs)
  }
  const ends = [
    apis.onObjects(({ api, informer }) => {
      const name = definitionName(api)
      informer.onChange(({ key }) => queue.add(`${name} ${key}`))
    }),
    apis.onShown((key) => {
      const { cluster = '', name } = parseKey(key)
      const found = [...apis.openedObjects()].find(({ api }) => definitionName(api) === name)
      for (const object of found?.groups.keysOf(cluster) ?? []) queue.add(`${name} ${object}`)
    }),
    inputs.members.onChange(({ before, after }) => {
      if (factsOf(before) !== factsOf(after)) all()
    }),
    inputs.namespaces.onChange(({ key, before, after }) => {
      if (before === undefined || after === undefined) return
      const { cluster = '', name } = parseKey(key)
      for (const { api, groups } of apis.openedObjects())
        for (const object of groups.keysOf(`${cluster}|${name}`)) queue.add(`${definitionName(api)} ${object}`)
    }),
    inputs.tenantPlacements.onChange(({ key }) => {
      for (const { api, groups } of apis.openedObjects())
        for (const object of groups.keysOf(clusterInKey(key))) queue.add(`${definitionName(api)} ${object}`)
    }),
    inputs.adminPlacements.onChange(all),
    onAdmission(inputs.clusters, all),
  ]
  return () => {
    for (const end of ends) end()
  }
}

/** Decides about one object, and writes the decision on it. */
export async function placeImported(
  key: string,
  dependencies: Dependencies,
  signal: AbortSignal,
): Promise<ReconcileResult> {
  const { apis, queue } = dependencies
  const [first, rest] = [key.slice(0, key.indexOf(' ')), key.slice(key.indexOf(' ') + 1)]
  const name = first === 'all' ? rest : first
  const found = [...apis.openedObjects()].find(({ api }) => definitionName(api) === name)
  if (found === undefined) return {}
  if (first === 'all') {
    for (const object of found.informer.store.keys()) queue.add(`${name} ${object}`)
    return {}
  }
  return await placeOne({ found, name, key: rest }, dependencies, signal)
}

interface Subject {
  readonly found: ImportedObjects
  readonly name: string
  readonly key: string
}

async function placeOne(subject: Subject, dependencies: Dependencies, signal: AbortSignal): Promise<ReconcileResult> {
  const { found, name, key } = subject
  const { context, inputs, apis, clock, times } = dependencies
  const object = found.informer.store.get(key)
  const { cluster = '', namespace = '' } = parseKey(key)
  const shown = apis.definitions(context, dependencies.signal).store.get(keyFor({ cluster, name })) as
    KubeObject | undefined
  const owner = inputs.clusters.store.get(cluster)
  if (object === undefined || shown === undefined || owner === undefined) return {}
  if (object.metadata.deletionTimestamp !== undefined) return {}
  const exporting = inputs.members.store
    .list()
    .filter((member) => exports(member, name) && admitsCluster(member, cluster, inputs.clusters))
  const before = placedOn(object as KubeObject)
  // What is in a member that does not export the kind any more goes by itself, and nobody waits for it.
  const present = Object.fromEntries(
    Object.entries(before).filter(([member]) => exporting.some(({ metadata }) => metadata.name === member)),
  )
  const nowMs = clock.now()
  const choice = choiceFor(subject, { object, shown, exporting, present, nowMs }, dependencies)
  if (choice === undefined) return {}
  const observed = {
    choice,
    placedOn: present,
    seen: (member: string): CopySeen => ({
      ...copySeen(object, member),
      ...(inputs.isFenced(member) && { gone: true, isFenced: true }),
      ...lostOf(choice, member, nowMs),
    }),
    // No Service leads to the object, and no workload has to move with it.
    networkOf: () => 'Flat' as const,
    siblings: () => [],
  }
  const next = plan(observed, { ...times, nowMs, forwardSeconds: 0 })
  const after = next.placedOn
  const held = next.isWritten ? heldMessage(next.decision.held) : ''
  const heldBefore = object.metadata.annotations?.[heldAnnotation] ?? ''
  const gone = Object.keys(before).filter((member) => present[member] === undefined && !inputs.isKnown(member))
  if (JSON.stringify(after) !== JSON.stringify(before) || held !== heldBefore || gone.length > 0) {
    const version = storageOf(shown['spec'] as Parameters<typeof storageOf>[0]) ?? ''
    const client = context.virtual(`/clusters/${cluster}`)
    const { name: objectName = '', resourceVersion } = object.metadata
    const annotations = {
      [placedOnAnnotation]: Object.keys(after).length === 0 ? null : JSON.stringify(after),
      [heldAnnotation]: held === '' ? null : held,
      ...Object.fromEntries(gone.map((member) => [memberStatusAnnotation(member), null])),
    }
    const gvr = { group: found.api.group, resource: found.api.resource, version }
    const ref = { ...(namespace && { namespace }), name: objectName }
    await client
      .patch(gvr, ref, 'merge', { metadata: { resourceVersion, annotations } }, { signal })
      .catch(tolerate('NotFound'))
    await tell(
      subject,
      { object, before: present, after, choice, held: held === heldBefore ? '' : held },
      dependencies,
      signal,
    )
  }
  return next.requeueAfterSeconds === undefined ? {} : { requeueAfterSeconds: next.requeueAfterSeconds }
}

interface Facts {
  readonly object: DeepReadonly<KubeObject>
  readonly shown: KubeObject
  readonly exporting: readonly DeepReadonly<MemberCluster>[]
  readonly present: PlacedOn
  readonly nowMs: number
}

function choiceFor(
  { name, key }: Subject,
  { object, shown, exporting, present, nowMs }: Facts,
  { inputs }: Dependencies,
): Choice | undefined {
  const { cluster = '', namespace = '' } = parseKey(key)
  const owner = inputs.clusters.store.get(cluster)
  if (owner === undefined) return undefined
  const usable = new Set(membersOf(shown))
  const candidates = candidatesFor(owner, { workload: object, key }, inputs, nowMs).map((candidate): Candidate =>
    usable.has(candidate.name) ? candidate : { ...candidate, unknownField: '' },
  )
  const withPresent = {
    ...object,
    metadata: {
      ...object.metadata,
      annotations: { ...object.metadata.annotations, [placedOnAnnotation]: JSON.stringify(present) },
    },
  }
  const choice = choiceOfObject({ workload: withPresent, cluster, namespace, candidates, claims: [] }, inputs, nowMs)
  const move = moveOf(exporting, name)
  if (choice === undefined) return undefined
  const { rebalance: _rule, rebalancing: _move, ...rest } = choice
  return { ...rest, move, demand: { ...rest.demand, requests: new Map(), runsOnce: move !== 'makeBeforeBreak' } }
}

const moves: Readonly<Record<ExportedMove, WorkloadKind['move']>> = {
  Never: 'stays',
  BreakBeforeMake: 'breakBeforeMake',
  MakeBeforeBreak: 'makeBeforeBreak',
}

/** The strictest of what the members say. */
function moveOf(exporting: readonly DeepReadonly<MemberCluster>[], name: string): WorkloadKind['move'] {
  const said = new Set(
    exporting.flatMap(({ spec }) =>
      (spec?.exportedAPIs ?? []).filter((api) => definitionName(api) === name).map(({ move = 'Never' }) => move),
    ),
  )
  return moves[exportedMoves.find((move) => said.has(move)) ?? 'Never']
}

function exports({ spec }: DeepReadonly<MemberCluster>, name: string): boolean {
  return spec?.exportedAPIs?.some((api) => definitionName(api) === name) ?? false
}

/** Knowledge about the copy in a member, from its report. */
function copySeen(object: DeepReadonly<KubeObject>, member: string): CopySeen {
  const reported = memberStatusesOf<CustomObjectReport>(object as KubeObject)[member]
  const observed = reported?.observed === customSourceOf(object)
  return {
    observed,
    available: observed && reported.ready === true,
    published: true,
    endpointsGone: true,
    gone: reported === undefined,
  }
}

interface Told {
  readonly object: DeepReadonly<KubeObject>
  readonly before: PlacedOn
  readonly after: PlacedOn
  readonly choice: Choice
  /** A new reason why it is not placed; empty: none. */
  readonly held: string
}

async function tell(
  { key }: Subject,
  { object, before, after, choice, held }: Told,
  { context, clock }: Dependencies,
  signal: AbortSignal,
): Promise<void> {
  const move = moveBegun(before, after, choice)
  const settled = settledOn(before, after)
  const texts: EventText[] = [
    ...(move ? [moveEvent(move)] : []),
    ...(settled ? [settledEvent(settled)] : []),
    ...(held === '' ? [] : [{ type: 'Warning' as const, reason: 'Held', message: held }]),
  ]
  const { cluster = '', namespace = '', name } = parseKey(key)
  const now = timestamp(clock.now())
  const { uid = '', resourceVersion = '' } = object.metadata
  const about = {
    apiVersion: object.apiVersion,
    kind: object.kind,
    ...(namespace && { namespace }),
    name,
    uid,
    resourceVersion,
  }
  for (const { type = 'Normal', reason, message } of texts) {
    const at = {
      namespace: namespace || 'default',
      name: `${name.slice(0, 200)}.${contentHash([uid, reason, message, now])}`,
    }
    const event = newEvent({ metadata: at, about, type, reason, message, component: 'kcp-placement', now })
    await context
      .virtual(`/clusters/${cluster}`)
      .create(events, event, { signal })
      .catch((error: unknown) => {
        if (!isStatusError(error)) throw error
        context.log.debug('could not write an event', { cluster, namespace, name, error })
      })
  }
}

/** The fields of a MemberCluster that decisions depend on, as text. */
function factsOf(member: DeepReadonly<MemberCluster> | undefined): string {
  const conditions = member?.status?.conditions ?? []
  const of = (wanted: string): string | undefined => conditions.find(({ type }) => type === wanted)?.status
  return JSON.stringify([
    member?.spec,
    member?.metadata.labels,
    member?.metadata.deletionTimestamp,
    of('Ready'),
    of('Reachable'),
  ])
}
