// APIExports: keeps each state of the exported definitions as a numbered revision, releases the newest one to the
// consumers step by step, and makes the endpoint slice through which the provider reaches them.
import { isDeepStrictEqual } from 'node:util'
import { LRUCache } from 'lru-cache'
import { groupResourceText, type JsonObject, type JsonValue, type KubeObject } from '#apimachinery/meta/index.ts'
import { systemClock, timestamp } from '#async/index.ts'
import type { KubeClient } from '#client/index.ts'
import {
  apiExportEndpointSlices,
  apiExports,
  apiResourceSchemas,
  identityHashOf,
  identityOf,
  type APIExport,
  type APIExportStatus,
  type ExportedResource,
} from '#crds/index.ts'
import type { ReconcileResult } from '#reconcile/index.ts'
import type { BindingFacts, SharedApis } from '#reconcile/object-graph/index.ts'
import { type ChangedOptions, type ControllerContext, reconcileChanged } from './framework.ts'
import { customResourceDefinitions } from './resources.ts'
import { admissionResources, exportedAdmission } from './exported-admission.ts'
import { dropRevisions, isUnchanged, keepRevision, type Definition } from './export-revisions.ts'
import { nextRelease } from './export-rollout.ts'
import { transferExport } from './export-transfer.ts'
import { condition, type SharingUpdate, withConditions } from './sharing-conditions.ts'

const fieldManager = 'kcp-api-exports'
/** Changes of an export, of its definitions and of its bindings come in groups; one reconcile suffices. */
const collectMs = 100
const withoutSlice = 'apiexports.apis.kcp.io/skip-endpointslice'

/** Reconciles every APIExport until the signal aborts. */
export async function startApiExports(context: ControllerContext): Promise<void> {
  const { sharing } = context
  if (sharing === undefined) return
  await sharing.ready()
  const revised = new Revised()
  const ofDefinitions: ChangedOptions['follow'][string] = ({ key: { cluster } }, enqueue) => {
    for (const name of sharing.exportsOf(cluster)) enqueue({ cluster, name }, collectMs)
  }
  await reconcileChanged(context, {
    name: 'api-exports',
    follow: {
      [groupResourceText(apiExports)]: ({ key: { cluster, name } }, enqueue) => enqueue({ cluster, name }),
      [groupResourceText(apiResourceSchemas)]: ofDefinitions,
      [groupResourceText(customResourceDefinitions)]: ofDefinitions,
      ...Object.fromEntries(admissionResources.map((gvr) => [groupResourceText(gvr), ofDefinitions])),
    },
    listen: (enqueue) =>
      sharing.follow({
        onExport: () => undefined,
        onBinding({ exportUid, exportName, providerName }) {
          const facts = exportUid === undefined ? undefined : sharing.exportByUid(exportUid)
          if (facts !== undefined) enqueue({ cluster: facts.cluster, name: facts.name }, collectMs)
          else if (providerName !== undefined) {
            // The export is gone, and its revisions go with their last consumers.
            const cluster = sharing.idOf(providerName)
            if (cluster !== undefined) enqueue({ cluster, name: exportName }, collectMs)
          }
        },
      }),
    reconcile: ({ cluster, name }, { client, signal: reconcileSignal }) =>
      reconcileExport({ cluster, name, client, sharing, context, revised, signal: reconcileSignal }),
  })
}

/** A new revision costs a write in each consumer: with many of them, revisions keep a distance. */
const manyConsumers = 100
const minDistanceMs = 10_000

/** When the newest revision of each export was made. */
class Revised {
  readonly #times = new LRUCache<string, number>({ max: 10_000 })

  /** How long the next revision of the export has to wait; if it has not, it counts as made now. */
  waitMs(exportUid: string): number {
    const now = systemClock.monotonic()
    const left = (this.#times.get(exportUid) ?? -Infinity) + minDistanceMs - now
    if (left <= 0) this.#times.set(exportUid, now)
    return Math.max(0, left)
  }
}

interface Work {
  readonly revised: Revised
  readonly cluster: string
  readonly name: string
  readonly client: KubeClient
  readonly sharing: SharedApis
  readonly signal: AbortSignal
  readonly context: ControllerContext
}

async function reconcileExport(work: Work): Promise<ReconcileResult | undefined> {
  const { client, name, signal } = work
  const found = await client.tryGet<APIExport>(apiExports, { name }, { signal })
  if (found === undefined || found.metadata.deletionTimestamp !== undefined) {
    await dropRevisions(work, undefined)
    return undefined
  }
  const transfer = await transferExport(found, work)
  if (transfer.isOver === true || transfer.status !== undefined) {
    const conditions = withConditions(found.status?.conditions, transfer.conditions, timestamp(systemClock.now()))
    const next = { ...found, status: { ...(transfer.status ?? found.status), conditions } }
    if (!isDeepStrictEqual(next, found))
      await client.update(apiExports, next, { subresource: 'status', fieldManager, signal })
    // The write is seen, and the export is reconciled again.
    return undefined
  }
  const { definitions, problems } = await definitionsOf(found, work)
  const uid = identityOf(found)
  const before = found.status?.revision ?? 0
  const bindings = [...work.sharing.bindingsOf(uid)]
  const isSame =
    problems.length > 0 ||
    (before > 0 && (await isUnchanged(client, { name, uid, revision: before }, definitions, signal)))
  if (!isSame && bindings.length > manyConsumers) {
    const waitMs = work.revised.waitMs(uid)
    if (waitMs > 0) return { requeueAfterSeconds: waitMs / 1000 }
  }
  const refused = isSame
    ? undefined
    : await keepRevision(client, { name, uid, revision: before + 1 }, definitions, signal)
  if (refused !== undefined) problems.push(refused)
  const revision = isSame || refused !== undefined ? before : before + 1
  const updated = bindings.filter((binding) => binding.revision === revision)
  const held = bindings.filter((binding) => binding.held !== undefined && binding.revision !== revision)
  const release = nextRelease(found, { isNew: revision !== before, bindings, held, revision }, work.sharing)
  const admission = await exportedAdmission(found, client, signal)
  const { admission: _former, ...former } = found.status ?? {}
  const url = work.context.viewUrl?.(work.sharing.nameOf(work.cluster) ?? '', name)
  const now = timestamp(systemClock.now())
  const status: APIExportStatus = {
    ...former,
    ...(admission !== undefined && { admission }),
    identityHash: identityHashOf(uid),
    ...(revision > 0 && { revision }),
    consumers: bindings.length,
    updatedConsumers: updated.length,
    heldConsumers: held.slice(0, 10).map(({ cluster, held: message = '' }) => ({
      cluster: work.sharing.nameOf(cluster) ?? cluster,
      message,
    })),
    rollout: { released: release.percent, ...(release.order.length > 0 && { groups: release.groups }) },
    conditions: withConditions(
      found.status?.conditions,
      [
        condition('IdentityValid'),
        condition(
          'ResourcesValid',
          problems.length === 0 ? undefined : { reason: 'InvalidResources', message: problems.join('; ') },
        ),
        condition(
          'VirtualWorkspaceURLsReady',
          url === undefined ? { reason: 'NoAddress', message: 'The server does not know its own address.' } : undefined,
        ),
        ...transfer.conditions,
        rolledOut(found, { updated: updated.length, all: bindings.length, held }),
      ],
      now,
    ),
  }
  if (!isDeepStrictEqual(status, found.status))
    await client.update(apiExports, { ...found, status }, { subresource: 'status', fieldManager, signal })
  if (url !== undefined) await keepSlice(work, found, url)
  await dropRevisions(work, { uid, revision })
  return undefined
}

function rolledOut(
  { spec }: APIExport,
  { updated, all, held }: { updated: number; all: number; held: readonly BindingFacts[] },
): SharingUpdate {
  if (updated === all) return { type: 'RolledOut', status: 'True', reason: 'Done' }
  const count = `${updated} of ${all} consumers have the newest revision`
  const { pause = false, percent = 100 } = spec?.rollout ?? {}
  const said = (reason: string, message: string) => condition('RolledOut', { reason, message, severity: 'Info' })
  const [first] = held
  if (first !== undefined) return said('Held', `${count}. ${held.length} would break: ${first.held ?? ''}`)
  if (pause) return said('Paused', `${count}. The rollout is paused by spec.rollout.pause.`)
  if (percent < 100) return said('Partial', `${count}. spec.rollout.percent is ${percent}.`)
  return said('InProgress', `${count}.`)
}

async function definitionsOf({ spec }: APIExport, work: Work) {
  const definitions: Definition[] = []
  const problems: string[] = []
  for (const resource of spec?.resources ?? []) {
    if (/(^|\.)kcp\.(dev|io)$/.test(resource.group)) {
      problems.push(`group "${resource.group}" belongs to the installation`)
      continue
    }
    const found = resource.crd === undefined ? await ofSchema(resource, work) : await ofDefinition(resource, work)
    if (typeof found === 'string') problems.push(found)
    else definitions.push(found)
  }
  definitions.sort((a, b) => (a.name < b.name ? -1 : 1))
  return { definitions, problems }
}

interface SchemaObject extends KubeObject {
  spec: JsonObject & { group: string; names: { plural: string }; versions: JsonObject[] }
}

async function ofSchema({ name, group, schema = '' }: ExportedResource, { client, signal }: Work) {
  if (schema === '') return `resource "${name}.${group}" names no schema and no crd`
  const found = await client.tryGet<SchemaObject>(apiResourceSchemas, { name: schema }, { signal })
  if (found === undefined) return `APIResourceSchema "${schema}" does not exist`
  const { names, scope, versions, conversion } = found.spec
  if (names.plural !== name || found.spec.group !== group)
    return `APIResourceSchema "${schema}" is not of "${name}.${group}"`
  const asCrd = versions.map(({ schema: openAPIV3Schema = {}, ...rest }) => ({ ...rest, schema: { openAPIV3Schema } }))
  return definition(found, { group, names, scope: scope ?? '', versions: asCrd, ...withConversion(conversion) })
}

interface CrdObject extends KubeObject {
  spec: JsonObject & {
    group: string
    names: { plural: string }
    conversion?: { webhook?: { clientConfig?: JsonObject } }
  }
  status?: { conditions?: { type: string; status: string }[] }
}

async function ofDefinition({ name, group, crd = '' }: ExportedResource, { client, signal }: Work) {
  const found = await client.tryGet<CrdObject>(customResourceDefinitions, { name: crd }, { signal })
  if (found === undefined) return `CustomResourceDefinition "${crd}" does not exist`
  if (crd !== `${name}.${group}`) return `CustomResourceDefinition "${crd}" is not of "${name}.${group}"`
  const isEstablished = found.status?.conditions?.some(
    ({ type, status }) => type === 'Established' && status === 'True',
  )
  if (isEstablished !== true) return `CustomResourceDefinition "${crd}" is not established`
  if (found.metadata.deletionTimestamp !== undefined) return `CustomResourceDefinition "${crd}" is being deleted`
  if (found.spec.conversion?.webhook?.clientConfig?.['service'] !== undefined)
    return `CustomResourceDefinition "${crd}" has a conversion webhook behind a Service, which consumers cannot reach: use a url`
  const { names, scope, versions, conversion } = found.spec
  return definition(found, {
    group,
    names,
    scope: scope ?? '',
    versions: versions ?? [],
    ...withConversion(conversion),
  })
}

const withConversion = (conversion: JsonValue | undefined): JsonObject =>
  conversion === undefined ? {} : { conversion }

function definition({ metadata }: KubeObject, spec: JsonObject): Definition {
  const { group, names } = spec as { group: string; names: { plural: string } }
  const name = groupResourceText({ group, resource: names.plural })
  return { name, schemaName: metadata.name ?? '', uid: metadata.uid ?? '', text: JSON.stringify(spec) }
}

/** Makes the endpoint slice of the same name, and keeps the URL of every slice of the export. */
async function keepSlice({ client, name, signal }: Work, of: APIExport, url: string): Promise<void> {
  const { items } = await client.list<Slice>(apiExportEndpointSlices, { signal })
  const slices = items.filter(({ spec }) => spec.export.name === name && (spec.export.path ?? '') === '')
  const isWanted = of.metadata.annotations?.[withoutSlice] === undefined
  if (isWanted && !items.some(({ metadata }) => metadata.name === name)) {
    const { uid = '' } = of.metadata
    const ownerReferences = [{ apiVersion: 'apis.kcp.io/v1alpha2', kind: 'APIExport', name, uid }]
    const slice: Slice = {
      apiVersion: 'apis.kcp.io/v1alpha1',
      kind: 'APIExportEndpointSlice',
      metadata: { name, ownerReferences },
      spec: { export: { name } },
    }
    slices.push(await client.create(apiExportEndpointSlices, slice, { fieldManager, signal }))
  }
  for (const slice of slices) {
    if (slice.status?.endpoints?.[0]?.url === url) continue
    const conditions = withConditions(undefined, [condition('APIExportValid')], timestamp(systemClock.now()))
    const status = { endpoints: [{ url }], conditions }
    await client.update(apiExportEndpointSlices, { ...slice, status }, { subresource: 'status', fieldManager, signal })
  }
}

interface Slice extends KubeObject {
  spec: { export: { path?: string; name: string } }
  status?: { endpoints?: { url: string }[]; conditions?: object[] }
}
