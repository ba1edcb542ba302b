// Compiles a CustomResourceDefinition into the data that serve it: rows of the resource table, schemas, columns.
// Results are interned by content: a thousand logical clusters with the same CRD share one compiled form.
import { createHash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { apiVersionOf, compareVersions, type JsonObject } from '#apimachinery/meta/index.ts'
import { parseStructuralSchema, type SchemaNode } from '#apimachinery/schema/index.ts'
import type { WebhookConversion } from '#virtualapi/kinds/resources/resource-definition.ts'
import type { ResourceInfo, SubresourceInfo } from '#virtualapi/kinds/resources/resource-info.ts'
import type { CrdColumn, CrdVersion, CustomResourceDefinition } from './crd-types.ts'

/** One version of a CustomResourceDefinition. */
export interface CompiledVersion {
  readonly info: ResourceInfo
  readonly listKind: string
  readonly schema: SchemaNode
  /** The columns of kubectl's table after NAME: the columns of the CRD, or Age if it has none. */
  readonly columns: readonly CrdColumn[]
  readonly scale?: {
    readonly specReplicasPath: string
    readonly statusReplicasPath: string
    readonly labelSelectorPath?: string
  }
  readonly hasStatus: boolean
  /** Field selectors besides metadata.name and metadata.namespace, such as `spec.color`. */
  readonly selectableFields: readonly string[]
  /** Text of the `Warning` header on every response for this version. */
  readonly deprecationWarning?: string
}

/** The compiled form of a CustomResourceDefinition. Immutable, and shared by logical clusters. */
export interface CompiledCrd {
  /** PLURAL.GROUP. */
  readonly name: string
  /** The hash of all fields that the compiled form depends on. */
  readonly hash: string
  /** True if the definition was changed since it was created: then stored objects may still follow an older schema. */
  readonly changed: boolean
  /** Served versions, in the order of the spec. */
  readonly versions: readonly CompiledVersion[]
  /** Versions that are listed but not served: stored objects and entries of managedFields may still be in them. */
  readonly unserved: readonly CompiledVersion[]
  /** The schemas of all listed versions, by apiVersion. */
  readonly schemas: ReadonlyMap<string, SchemaNode>
  /** The same versions as rows of the resource table. */
  readonly resourceInfos: readonly ResourceInfo[]
  readonly storageVersion: string
  /** Schema of the storage version: stored objects follow it, whatever the version in which they are read. */
  readonly storageSchema: SchemaNode
  /** apiVersion of stored objects. */
  readonly storageApiVersion: string
  /** Present if the conversion strategy is Webhook. Otherwise conversion only rewrites the apiVersion. */
  readonly conversion?: WebhookConversion
}

// Entries are weighed by the length of their source text, because one schema may be a thousand times larger than
// another. A character of a parsed schema takes some 3 bytes, but a character of a compiled rule takes some 120.
const maxCharacters = 64 * 1024 * 1024
const charactersPerRuleCharacter = 40
const compiled = new LRUCache<string, CompiledCrd>({ max: 10_000, maxSize: maxCharacters })
const schemas = new LRUCache<string, SchemaNode>({ max: 20_000, maxSize: maxCharacters })

/**
 * The compiled form of a CRD that passed validateCrd and has its defaults. Definitions with equal content share the
 * same object while it is in the cache. The names are status.acceptedNames if there are any, or else spec.names.
 */
export function compileCrd(crd: CustomResourceDefinition): CompiledCrd {
  const { spec, status, metadata } = crd
  const changed = (metadata.generation ?? 1) > 1
  const { group, scope, versions, conversion } = spec
  const names = status?.acceptedNames?.plural ? status.acceptedNames : spec.names
  const text = JSON.stringify([group, scope, names, versions, conversion, changed])
  const hash = createHash('sha256').update(text).digest('base64url')
  let entry = compiled.get(hash)
  if (entry === undefined) {
    entry = compile(crd, names, { hash, changed })
    compiled.set(hash, entry, { size: weightOf(text) })
  }
  return entry
}

/** Parses a schema. Equal schemas share the same object while it is in the cache. */
export function internSchema(schema: JsonObject): SchemaNode {
  const text = JSON.stringify(schema)
  const hash = createHash('sha256').update(text).digest('base64url')
  let node = schemas.get(hash)
  if (node === undefined) {
    node = parseStructuralSchema(schema)
    schemas.set(hash, node, { size: weightOf(text) })
  }
  return node
}

/**
 * The weight of a definition or schema in the caches. `text`: its JSON. It is at most half of a cache, because heavier
 * schemas must be cached, too.
 */
function weightOf(text: string): number {
  let ruleCharacters = 0
  for (const member of ['"rule":"', '"messageExpression":"'])
    for (let at = text.indexOf(member); at >= 0; at = text.indexOf(member, at)) {
      const start = (at += member.length)
      while (at < text.length && text[at] !== '"') at += text[at] === '\\' ? 2 : 1
      ruleCharacters += at - start
    }
  return Math.min(text.length + ruleCharacters * charactersPerRuleCharacter, maxCharacters / 2)
}

function compile(
  { spec }: CustomResourceDefinition,
  names: CustomResourceDefinition['spec']['names'],
  { hash, changed }: { hash: string; changed: boolean },
): CompiledCrd {
  const { group, versions: all } = spec
  const storageVersion = all.find(({ storage }) => storage)?.name ?? all[0]?.name ?? ''
  const newestServed = all
    .filter(({ served, deprecated }) => served && deprecated !== true)
    .map(({ name }) => name)
    .sort(compareVersions)[0]
  const compiledAll = all.map((version) => ({
    isServed: version.served,
    facts: compileVersion(spec, names, version, { storageVersion, newestServed }),
  }))
  const versions = compiledAll.flatMap(({ isServed, facts }) => (isServed ? [facts] : []))
  return {
    name: `${names.plural}.${group}`,
    hash,
    changed,
    versions,
    unserved: compiledAll.flatMap(({ isServed, facts }) => (isServed ? [] : [facts])),
    schemas: schemasOf(spec),
    resourceInfos: versions.map(({ info }) => info),
    storageVersion,
    storageSchema: internSchema(all.find(({ name }) => name === storageVersion)?.schema?.openAPIV3Schema ?? {}),
    storageApiVersion: apiVersionOf({ group, version: storageVersion }),
    ...conversionOf(spec),
  }
}

function conversionOf({
  group,
  versions,
  conversion,
}: CustomResourceDefinition['spec']): Pick<CompiledCrd, 'conversion'> {
  if (conversion?.strategy !== 'Webhook') return {}
  const apiVersion = ({ name }: CrdVersion): string => apiVersionOf({ group, version: name })
  const storage = versions.find(({ storage: isStorage }) => isStorage) ?? versions[0]
  return {
    conversion: {
      storageApiVersion: storage === undefined ? '' : apiVersion(storage),
      schemas: schemasOf({ group, versions }),
      clientConfig: conversion.webhook?.clientConfig ?? {},
      reviewVersions: conversion.webhook?.conversionReviewVersions ?? [],
    },
  }
}

function schemasOf({
  group,
  versions,
}: Pick<CustomResourceDefinition['spec'], 'group' | 'versions'>): Map<string, SchemaNode> {
  return new Map(
    versions.map(({ name, schema }) => [
      apiVersionOf({ group, version: name }),
      internSchema(schema?.openAPIV3Schema ?? {}),
    ]),
  )
}

/** The verbs of custom resources, in the order of upstream's discovery documents. */
const verbs = ['delete', 'deletecollection', 'get', 'list', 'patch', 'create', 'update', 'watch']
const subresourceVerbs = ['get', 'patch', 'update']

const ageColumn: CrdColumn = {
  name: 'Age',
  type: 'date',
  jsonPath: '.metadata.creationTimestamp',
  description:
    'CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed to be set in happens-before order across separate operations. Clients may not set this value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata',
}

function compileVersion(
  { group, scope }: CustomResourceDefinition['spec'],
  names: CustomResourceDefinition['spec']['names'],
  source: CrdVersion,
  { storageVersion, newestServed }: { storageVersion: string; newestServed: string | undefined },
): CompiledVersion {
  const { name: version, schema, subresources, additionalPrinterColumns = [], selectableFields = [] } = source
  const {
    kind,
    plural,
    singular = kind.toLowerCase(),
    listKind = `${kind}List`,
    shortNames = [],
    categories = [],
  } = names
  const hasStatus = subresources?.status !== undefined
  const scale = subresources?.scale
  const below: SubresourceInfo[] = []
  if (hasStatus) below.push({ name: 'status', group, version, kind, verbs: subresourceVerbs })
  if (scale) below.push({ name: 'scale', group: 'autoscaling', version: 'v1', kind: 'Scale', verbs: subresourceVerbs })
  const info: ResourceInfo = {
    group,
    version,
    resource: plural,
    singular,
    kind,
    namespaced: scope === 'Namespaced',
    verbs,
    shortNames,
    categories,
    subresources: below,
    storageVersionHash: storageVersionHash(group, storageVersion, kind),
    builtIn: false,
  }
  const warning = source.deprecationWarning ?? deprecationText(newestServed, { group, version, kind })
  return {
    info,
    listKind,
    schema: internSchema(schema?.openAPIV3Schema ?? {}),
    columns: additionalPrinterColumns.length > 0 ? additionalPrinterColumns : [ageColumn],
    ...(scale === undefined ? {} : { scale }),
    hasStatus,
    selectableFields: selectableFields.map(({ jsonPath }) => jsonPath.replace(/^\./, '')),
    ...(source.deprecated === true ? { deprecationWarning: warning } : {}),
  }
}

/**
 * The default deprecation warning; it names the newest served version that is not deprecated, if that version is newer.
 */
function deprecationText(
  newest: string | undefined,
  { group, version, kind }: { group: string; version: string; kind: string },
): string {
  const text = `${group}/${version} ${kind} is deprecated`
  return newest === undefined || compareVersions(newest, version) >= 0
    ? text
    : `${text}; use ${group}/${newest} ${kind}`
}

function storageVersionHash(group: string, version: string, kind: string): string {
  return createHash('sha256').update(`${group}/${version}/${kind}`).digest().subarray(0, 8).toString('base64')
}
