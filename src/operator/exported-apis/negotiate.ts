// The definition that one logical cluster gets of an API, from the definitions of the members that export it there. Pure.
import { LRUCache } from 'lru-cache'
import { parseJsonText } from '#apimachinery/json/index.ts'
import { isJsonObject, type JsonObject, type KubeObject } from '#apimachinery/meta/index.ts'
import {
  commonDefinition,
  compareSchemas,
  isDeeperThan,
  parseStructuralSchema,
  type CommonDefinition,
  type DefinitionLoss,
} from '#apimachinery/schema/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import { WorkBudget } from '#apimachinery/work-budget/index.ts'
import {
  droppedFieldsAnnotation,
  exportedByAnnotation,
  exportedFromLabel,
  heldChangeAnnotation,
  maxDefinitionDepth,
  maxDroppedFields,
  unchangingHash,
  type DroppedField,
  type SeenDefinition,
} from '#crds/index.ts'

/** A member that exports the API and admits the logical cluster; the oldest first. */
export interface ApiCandidate {
  readonly name: string
  /** Undefined: this process has not read it yet. */
  readonly definition: SeenDefinition | undefined
}

export interface NegotiationInput {
  readonly name: string
  readonly candidates: readonly ApiCandidate[]
  /** The definition that the logical cluster has from members. */
  readonly shown: KubeObject | undefined
  /** What objects of the logical cluster would lose with this definition. */
  readonly cut: (spec: JsonObject, storage: string) => Cut
}

export interface Cut {
  /** How many objects would lose something. */
  readonly objects: number
  /** What they would lose, bounded. */
  readonly fields: readonly string[]
}

export interface Negotiated {
  /** The definition to show; undefined: nothing is known yet, or no member has one. */
  readonly definition: KubeObject | undefined
  /** The members that may take objects. */
  readonly members: readonly string[]
  /** Why other candidates may not, by member. */
  readonly incompatible: ReadonlyMap<string, string>
  readonly dropped: readonly DroppedField[]
  /** Why the definition stays as it is. */
  readonly held?: string
}

/** Bytes of the JSON of a definition's versions. */
const maxBytes = 1024 * 1024
/** Steps for one negotiation: some 0.1 s. */
const maxSteps = 5_000_000
const approvalAnnotation = 'api-approved.kubernetes.io'

export function negotiate(input: NegotiationInput): Negotiated {
  const { candidates, shown } = input
  const before = membersOf(shown)
  const incompatible = new Map<string, string>()
  const known: { member: string; spec: JsonObject; approval?: string }[] = []
  const away: string[] = []
  // First the members that logical clusters use already: another one does not take the API from them.
  const order = [...candidates].sort((a, b) => Number(before.includes(b.name)) - Number(before.includes(a.name)))
  for (const { name, definition } of order) {
    if (definition === undefined) {
      if (before.includes(name)) away.push(name)
    } else if ('problem' in definition) incompatible.set(name, definition.problem)
    else if (isDeeperThan(definition.spec, maxDefinitionDepth))
      incompatible.set(name, `the schema of ${input.name} is nested too deeply`)
    else if (JSON.stringify(definition.spec['versions']).length > maxBytes)
      incompatible.set(name, `the schema of ${input.name} has more than 1 MiB`)
    else known.push({ member: name, ...definition })
  }
  const shownSpec = isJsonObject(shown?.['spec']) ? shown['spec'] : undefined
  // A member that cannot be asked has agreed to the present definition, so the API does not become wider without it.
  const standIn = away.length > 0 && shownSpec !== undefined ? [{ member: away.join(', '), spec: shownSpec }] : []
  const found = combineOneByOne([...standIn, ...known], incompatible)
  const agreeing = [...away, ...known.map(({ member }) => member).filter((member) => !incompatible.has(member))].sort()
  if (found === undefined) return { definition: undefined, members: away, incompatible, dropped: [] }
  const approval = known.find((one) => one.approval !== undefined)?.approval
  const dropped = droppedFields(found.losses)
  const next = { spec: found.spec, members: agreeing, dropped, approval }
  const held = shownSpec === undefined ? undefined : heldReason(shownSpec, found, input)
  if (held === undefined || shownSpec === undefined)
    return { definition: definitionOf(input, next), members: agreeing, incompatible, dropped }
  for (const { member, spec } of known) {
    const why = incompatible.get(member) ?? whyNarrower(shownSpec, spec)
    if (why !== undefined) incompatible.set(member, `${why}: ${held}`)
  }
  const members = agreeing.filter((member) => !incompatible.has(member))
  const kept = { spec: shownSpec, members, dropped: droppedFieldsOf(shown), approval, held }
  return { definition: definitionOf(input, kept), members, incompatible, dropped: kept.dropped, held }
}

/** The members of a definition that comes from members. */
export function membersOf(shown: KubeObject | undefined): string[] {
  const { annotations, labels } = shown?.metadata ?? {}
  const text = annotations?.[exportedByAnnotation] ?? labels?.[exportedFromLabel] ?? ''
  return text.split(',').filter((name) => name !== '')
}

type Found = Exclude<CommonDefinition, { conflict: unknown }>
interface Known {
  readonly member: string
  readonly spec: JsonObject
}

/** The common definition of all. Where there is none, members are left out, beginning with the last. */
function combineOneByOne(known: readonly Known[], incompatible: Map<string, string>): Found | undefined {
  if (known.length === 0) return undefined
  const all = combine(known)
  if ('spec' in all) return all
  let agreed: Found | undefined
  const together: Known[] = []
  for (const one of known) {
    const found = combine([...together, one])
    if ('spec' in found) {
      together.push(one)
      agreed = found
    } else incompatible.set(one.member, found.problem)
  }
  return agreed
}

type Combined = Found | { readonly problem: string }

/** Many logical clusters have the same members, so what was found is kept. */
const combinations = new LRUCache<string, Combined>({ max: 64 })
const comparisons = new LRUCache<string, { readonly why: string | undefined }>({ max: 1000 })

function combine(known: readonly Known[]): Combined {
  const key = JSON.stringify(known.map(({ member, spec }) => [member, unchangingHash(spec)]))
  const before = combinations.get(key)
  if (before !== undefined) return before
  const found = combineNow(known)
  combinations.set(key, found)
  return found
}

function combineNow(known: readonly Known[]): Combined {
  try {
    const found = commonDefinition(known, { work: new WorkBudget({ steps: maxSteps }) })
    if ('spec' in found) return found
    const { version, path, what } = found.conflict
    return {
      problem: `it has no common definition with the others: ${[version, path, what].filter(Boolean).join(' ')}`,
    }
  } catch (error) {
    if (isStatusError(error) || error instanceof RangeError) return { problem: error.message }
    throw error
  }
}

/** Why the present definition must stay: objects would lose fields with the new one. */
function heldReason(shown: JsonObject, { spec, storage }: Found, { name, cut }: NegotiationInput): string | undefined {
  if (!isNarrower(shown, spec)) return undefined
  const { objects, fields } = cut(spec, storage)
  if (objects === 0) return undefined
  const what = fields.length === 0 ? '' : ` ${fields.join(', ')}`
  return `the change of ${name} is held, because ${objects} stored ${objects === 1 ? 'object' : 'objects'} would lose${what}`
}

function isNarrower(before: JsonObject, after: JsonObject): boolean {
  return whyNarrower(before, after) !== undefined
}

/** What the second definition does not accept or keep of the first; undefined if it accepts and keeps all. */
function whyNarrower(before: JsonObject, after: JsonObject): string | undefined {
  const key = `${unchangingHash(before)} ${unchangingHash(after)}`
  const known = comparisons.get(key) ?? { why: compareNow(before, after) }
  comparisons.set(key, known)
  return known.why
}

function compareNow(before: JsonObject, after: JsonObject): string | undefined {
  for (const field of ['scope', 'names.kind'] as const) {
    const [was, is] = [before, after].map((spec) => at(spec, field))
    if (was !== is) return `${field} is ${JSON.stringify(is)}`
  }
  const later = versionsOf(after)
  for (const [name, schema] of versionsOf(before)) {
    const other = later.get(name)
    if (other === undefined) return `${name} is not served`
    const harm = compareSchemas(parseStructuralSchema(schema), parseStructuralSchema(other)).find(
      (difference) => difference.harm !== 'changed',
    )
    if (harm !== undefined) return `${name} ${harm.path} ${harm.what}`
  }
  return undefined
}

function at(value: JsonObject, path: string): unknown {
  return path.split('.').reduce<unknown>((one, key) => (isJsonObject(one) ? one[key] : undefined), value)
}

/** The schemas of the served versions. */
export function versionsOf(spec: JsonObject): Map<string, JsonObject> {
  const versions = Array.isArray(spec['versions']) ? spec['versions'].filter(isJsonObject) : []
  return new Map(
    versions.flatMap((version) => {
      const schema = at(version, 'schema.openAPIV3Schema')
      if (version['served'] !== true || typeof version['name'] !== 'string') return []
      return [[version['name'], isJsonObject(schema) ? schema : openSchema] as const]
    }),
  )
}

const openSchema: JsonObject = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true }

/** The name of the stored version. */
export function storageOf(spec: JsonObject): string | undefined {
  const versions = Array.isArray(spec['versions']) ? spec['versions'].filter(isJsonObject) : []
  const name = versions.find(({ storage }) => storage === true)?.['name']
  return typeof name === 'string' ? name : undefined
}

/** The dropped fields with the members that lack them; bounded. */
function droppedFields(losses: readonly DefinitionLoss[]): DroppedField[] {
  return losses
    .filter(({ kind }) => kind === 'dropped')
    .slice(0, maxDroppedFields)
    .map(({ version = '', path, members }) => ({
      version,
      path: path.slice(0, 1024),
      members: members.slice(0, 10),
    }))
}

function droppedFieldsOf(shown: KubeObject | undefined): DroppedField[] {
  const text = shown?.metadata.annotations?.[droppedFieldsAnnotation]
  return text === undefined ? [] : (parseJsonText(text) as unknown as DroppedField[])
}

interface Shown {
  readonly spec: JsonObject
  readonly members: readonly string[]
  readonly dropped: readonly DroppedField[]
  readonly approval: string | undefined
  readonly held?: string
}

function definitionOf(
  { name, shown, candidates }: NegotiationInput,
  { spec, members, dropped, approval, held }: Shown,
): KubeObject {
  const before = shown?.metadata.labels?.[exportedFromLabel]
  const first =
    before !== undefined && members.includes(before)
      ? before
      : candidates.find((one) => members.includes(one.name))?.name
  const { group, scope, names, versions } = spec
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: {
      name,
      labels: { [exportedFromLabel]: first ?? before ?? '' },
      annotations: {
        [exportedByAnnotation]: members.join(','),
        ...(dropped.length > 0 && { [droppedFieldsAnnotation]: JSON.stringify(dropped) }),
        ...(held !== undefined && { [heldChangeAnnotation]: held }),
        ...(approval !== undefined && { [approvalAnnotation]: approval }),
      },
    },
    spec: { group, scope, names, versions },
  }
}
