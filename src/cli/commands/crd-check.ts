// `kcp crd check OLD NEW`: the incompatible differences between two states of a CustomResourceDefinition, and how many
// stored objects the new state breaks. Objects are tried on a server inside this process, which has the new definition:
// so the answer is that of the rules, formats and expressions of a real update.
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseAllDocuments } from 'yaml'
import type { GroupVersionResource, JsonObject, KubeObject } from '#apimachinery/meta/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import { sleep } from '#async/index.ts'
import { clusterOf as clusterOfObject, type KubeClient } from '#client/index.ts'
import { createLogger } from '#telemetry/index.ts'
import {
  compareDefinitions,
  createPki,
  createPkiMaterial,
  type ComparedDefinition,
  type DefinitionDifference,
} from '#virtualapi/index.ts'
import { directOf, type Direct } from '#cli/across/direct.ts'
import { objectsOf } from '#cli/across/tables.ts'
import { ExitCode, ExitError } from '#cli/process/exit-error.ts'
import { processSignal } from '#cli/process/process-signal.ts'
import { startProgress, type Progress } from '#cli/process/progress.ts'
import { startPlainServer } from '#cli/roles/plain-server.ts'
import { nameOfLogicalCluster } from './credentials.ts'
import type { InstallationFlags } from './flags.ts'
import { openDirect, openInstallation } from './installation.ts'
import { documentText, printable } from './output.ts'

interface Flags extends InstallationFlags {
  readonly clusters?: readonly string[]
  readonly allClusters?: boolean
  readonly output: 'text' | 'json' | 'yaml'
}

const definitions = { group: 'apiextensions.k8s.io', version: 'v1', resource: 'customresourcedefinitions' } as const
/** How many broken objects the output names. */
const maxNamed = 10
const establishedWithinMs = 30_000

interface Broken {
  readonly cluster: string
  readonly namespace?: string
  readonly name: string
  /** The words of the server. */
  readonly message: string
  /** `dropped`: the object is valid, but loses fields. */
  readonly harm: 'refused' | 'dropped'
}

interface Report {
  readonly definition: string
  readonly differences: readonly DefinitionDifference[]
  /** Absent unless logical clusters were named. */
  readonly objects?: {
    readonly checked: number
    readonly refused: number
    readonly dropped: number
    readonly examples: readonly Broken[]
  }
}

/** Runs the command. Rejects with ExitCode 1 if a difference or an object is harmed. */
export async function run(oldText: string, newFile: string, flags: Flags): Promise<void> {
  const signal = processSignal()
  const report = await checked(oldText, newFile, flags, signal)
  process.stdout.write(flags.output === 'text' ? reportText(report) : documentText(report, flags.output))
  const isHarmed = report.differences.some(({ harm }) => harm !== 'changed')
  if (isHarmed || (report.objects?.examples.length ?? 0) > 0) throw new ExitCode(1)
}

async function checked(oldText: string, newFile: string, flags: Flags, signal: AbortSignal): Promise<Report> {
  const after = await definitionIn(newFile)
  const clusters = (flags.clusters ?? []).map(nameOfLogicalCluster)
  const isAsked = flags.allClusters === true || clusters.length > 0
  const isFile = /[/.](ya?ml|json)$/.test(oldText) || oldText === '-' || oldText.includes('/')
  if (isFile && !isAsked)
    return { definition: nameIn(after), differences: compareDefinitions(await definitionIn(oldText), after) }
  if (!isFile && !isAsked)
    throw new ExitError(`"${oldText}" is no file; with --clusters NAME it is read from a logical cluster`)
  const progress = startProgress()
  try {
    await using installation = await openInstallation(flags, signal)
    await using transport = await openDirect(installation)
    const direct = directOf(transport, signal)
    const before = isFile ? await definitionIn(oldText) : await definitionOf(direct, oldText, clusters)
    const objects = await storedObjects(direct, before, { clusters, progress })
    const broken = await tried(objects, after, { progress, signal })
    return {
      definition: nameIn(after),
      differences: compareDefinitions(before, after),
      objects: {
        checked: objects.length,
        refused: broken.filter(({ harm }) => harm === 'refused').length,
        dropped: broken.filter(({ harm }) => harm === 'dropped').length,
        examples: broken.slice(0, maxNamed),
      },
    }
  } finally {
    progress[Symbol.dispose]()
  }
}

/** The only CustomResourceDefinition of a file. Rejects with ExitError if there is none or several. */
async function definitionIn(file: string): Promise<ComparedDefinition> {
  const text = await readFile(file === '-' ? '/dev/stdin' : file, 'utf8').catch((error: unknown) => {
    throw new ExitError(`cannot read "${file}": ${(error as Error).message}`)
  })
  const documents = parseAllDocuments(text)
  const failed = Array.isArray(documents) ? documents.flatMap(({ errors }) => errors)[0] : undefined
  if (failed !== undefined) throw new ExitError(`"${file}" is no YAML: ${failed.message}`)
  const found = documents.map((document) => document.toJS() as JsonObject | null).filter(isDefinition)
  const [first] = found
  if (first === undefined || found.length > 1)
    throw new ExitError(
      `"${file}" has ${found.length} CustomResourceDefinitions of apiextensions.k8s.io/v1; it must have one`,
    )
  return first
}

function isDefinition(document: JsonObject | null): document is JsonObject & ComparedDefinition {
  if (document?.['kind'] !== 'CustomResourceDefinition' || document['apiVersion'] !== 'apiextensions.k8s.io/v1')
    return false
  const spec = document['spec'] as Partial<ComparedDefinition['spec']> | undefined
  return Array.isArray(spec?.versions) && typeof spec.names === 'object'
}

function nameIn({ metadata }: ComparedDefinition): string {
  return metadata.name ?? ''
}

async function definitionOf(direct: Direct, name: string, clusters: readonly string[]): Promise<ComparedDefinition> {
  const [first] = clusters
  if (first === undefined) throw new ExitError('with --all-clusters the old definition must be a file')
  const found = await direct.client(first).tryGet<KubeObject>(definitions, { name }, { signal: direct.signal })
  if (found === undefined) throw new ExitError(`logical cluster "${first}" has no CustomResourceDefinition "${name}"`)
  return found as KubeObject & ComparedDefinition
}

/** The objects of the kind in the logical clusters; with none named, in all. */
async function storedObjects(
  direct: Direct,
  { spec }: ComparedDefinition,
  { clusters, progress }: { readonly clusters: readonly string[]; readonly progress: Progress },
): Promise<readonly KubeObject[]> {
  const version =
    spec.versions.find(({ storage, served }) => storage && served) ?? spec.versions.find(({ served }) => served)
  if (version === undefined) throw new ExitError('the old definition serves no version')
  progress.tell(`reading ${spec.names.plural}`)
  const gvr = { group: spec.group, version: version.name, resource: spec.names.plural }
  const resource = { gvr, kind: spec.names.kind, namespaced: spec.scope === 'Namespaced', isCustom: true }
  return await objectsOf(direct, clusters, { resource })
}

/** The objects that a server with the new definition refuses or takes without some of their fields. */
async function tried(
  objects: readonly KubeObject[],
  definition: ComparedDefinition,
  { progress, signal }: { readonly progress: Progress; readonly signal: AbortSignal },
): Promise<readonly Broken[]> {
  const dir = await mkdtemp(join(tmpdir(), 'kcp-crd-check-'))
  try {
    const { clientCa } = createPki(await createPkiMaterial())
    await using server = await startPlainServer({
      ...{ dir, isDurable: false, host: '127.0.0.1', port: 0, clientCa, withoutPlugins: [] },
      ...{ log: createLogger({ level: 'error' }), signal },
    })
    const gvr = await install(server.client, definition, signal)
    const broken: Broken[] = []
    for (const [at, object] of objects.entries()) {
      if (at % 100 === 0) progress.tell(`trying object ${at + 1} of ${objects.length}`)
      const found = await tryObject(server.client, gvr, { object, signal })
      if (found !== undefined) broken.push(found)
    }
    return broken
  } finally {
    await rm(dir, { recursive: true, force: true })
  }
}

/** Creates the definition and waits until it is served. Rejects with ExitError if the server refuses it. */
async function install(
  client: KubeClient,
  { apiVersion, kind, metadata, spec }: ComparedDefinition,
  signal: AbortSignal,
): Promise<GroupVersionResource> {
  const object = {
    apiVersion,
    kind,
    metadata: { name: metadata.name ?? '', annotations: metadata.annotations ?? {} },
    spec,
  }
  // A webhook of the tenant would be called from here: versions are compared without conversion.
  const alone = { ...object, spec: { ...spec, conversion: { strategy: 'None' } } }
  await client.create(definitions, alone as KubeObject, { signal }).catch((error: unknown) => {
    throw isStatusError(error) ? new ExitError(`the new definition is refused: ${error.message}`) : error
  })
  const version = spec.versions.find(({ storage }) => storage)?.name ?? ''
  const gvr = { group: spec.group, version, resource: spec.names.plural }
  const until = performance.now() + establishedWithinMs
  for (;;) {
    try {
      await client.list(gvr, { limit: 1, signal })
      return gvr
    } catch (error) {
      if (!isStatusError(error, 'NotFound') || performance.now() > until) throw error
      await sleep(20, signal)
    }
  }
}

async function tryObject(
  client: KubeClient,
  gvr: GroupVersionResource,
  { object, signal }: { readonly object: KubeObject; readonly signal: AbortSignal },
): Promise<Broken | undefined> {
  const { name = '', namespace, labels = {}, annotations = {} } = object.metadata
  const metadata = { name, ...(namespace !== undefined && { namespace: 'default' }), labels, annotations }
  const candidate = { ...object, apiVersion: `${gvr.group}/${gvr.version}`, metadata }
  const path = `/apis/${gvr.group}/${gvr.version}${namespace === undefined ? '' : '/namespaces/default'}/${gvr.resource}`
  try {
    await client.raw(`${path}?dryRun=All&fieldValidation=Strict`, { method: 'POST', body: candidate, signal })
    return undefined
  } catch (error) {
    if (!isStatusError(error)) throw error
    const harm = error.message.includes('strict decoding error') ? ('dropped' as const) : ('refused' as const)
    const cluster = clusterOfObject(object) ?? ''
    return { cluster, ...(namespace !== undefined && { namespace }), name, message: error.message, harm }
  }
}

function reportText({ definition, differences, objects }: Report): string {
  const lines = differences.map(
    ({ version, path, harm, what }) => `${harm.padEnd(8)} ${version === undefined ? '' : `${version} `}${path} ${what}`,
  )
  if (objects !== undefined) {
    const { checked: count, refused, dropped, examples } = objects
    lines.push(`of ${count} stored objects ${refused} would be refused and ${dropped} would lose fields`)
    for (const { cluster, namespace = '', name, message } of examples)
      lines.push(`  ${cluster} ${namespace === '' ? '' : `${namespace}/`}${name}: ${message}`)
    const more = refused + dropped - examples.length
    if (more > 0) lines.push(`  and ${more} more`)
  }
  const head =
    differences.length === 0
      ? `${definition}: every object that the old definition accepts is valid under the new one`
      : `${definition}: ${differences.length} incompatible ${differences.length === 1 ? 'difference' : 'differences'}`
  return `${[head, ...lines].map(printable).join('\n')}\n`
}
