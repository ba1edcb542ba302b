// The resources of a logical cluster: built-in resources, the resources of its CustomResourceDefinitions, resources that
// other logical clusters share with it, and `members`.
import { apiVersionOf, parseApiVersion, type GroupVersionResource, type KubeObject } from '#apimachinery/meta/index.ts'
import { forbidden } from '#apimachinery/status/index.ts'
import { memberCrd, members, sharedApisGroup } from '#crds/index.ts'
import type { ClusterObjects, Entry } from '#store/watch-cache/index.ts'
import { builtInResource, builtInResources } from '#virtualapi/kinds/resources/builtin-resources.ts'
import { builtInSchema } from '#virtualapi/kinds/resources/builtin-schemas.ts'
import type { Catalog, DocumentedCrd, ServedCrd } from './catalog.ts'
import type { DefinitionSource, SharedDefinition } from './sharing/definition-source.ts'
import { versionConversions } from './sharing/convert-versions.ts'
import { isSystemDefinition, systemDefinition, systemDefinitions } from './sharing/system-definitions.ts'
import { crdStorageKey, crdStrategy } from './apiextensions/crd-strategy.ts'
import { compileCrd, isEstablished, type CompiledCrd, type CustomResourceDefinition } from './apiextensions/index.ts'
import { customStrategy } from './apiextensions/custom-strategy.ts'
import { upgradeOnRead } from '#virtualapi/kinds/resources/upgrade-on-read.ts'
import { decodeObject } from '#virtualapi/kinds/resources/object-bytes.ts'
import {
  storageKeyOf,
  type ResourceDefinition,
  type Strategy,
} from '#virtualapi/kinds/resources/resource-definition.ts'
import type { ResourceInfo } from '#virtualapi/kinds/resources/resource-info.ts'
import { storageOf } from '#virtualapi/kinds/conversions.ts'
import { builtInStrategy } from '#virtualapi/kinds/index.ts'
import { policyStrategy } from './policy-strategy.ts'

export interface CatalogOptions {
  /** True if there are members; then logical clusters serve the resource `members`. Default: false. */
  readonly hasMembers?: () => boolean
  /** True: a plain cluster, which serves nothing of ours. */
  readonly isPlain?: boolean
  /** False: the group apis.kcp.io is not served. Default: it is, except in a plain cluster. */
  readonly sharedApis?: boolean
  /** Definitions of other logical clusters. The first source that has a definition is taken. */
  readonly sources?: readonly DefinitionSource[]
}

export class ClusterCatalog implements Catalog {
  readonly #hasMembers: () => boolean
  readonly #hasSharedApis: boolean
  readonly #sources: readonly DefinitionSource[]
  #projected: ResourceDefinition | undefined
  readonly #builtIn = new Map<string, ResourceDefinition>()
  // A CRD is compiled on first use. The watch cache keeps the same Entry while a CRD does not change, so Entry can be
  // the key.
  readonly #compiled = new WeakMap<Entry, CompiledCrd | undefined>()
  // The compiled CRDs of the base layer by name. They are equal in all logical clusters, but their entries are made
  // again and again.
  readonly #compiledBase = new Map<string, CompiledCrd | undefined>()
  readonly #custom = new WeakMap<CompiledCrd, Map<string, ResourceDefinition>>()
  readonly #sharedVersions = new WeakMap<ResourceDefinition, ResourceDefinition>()

  constructor({ hasMembers = () => false, isPlain = false, sharedApis = !isPlain, sources = [] }: CatalogOptions = {}) {
    this.#hasMembers = hasMembers
    this.#hasSharedApis = sharedApis
    this.#sources = isPlain ? [] : [...(sharedApis ? [systemDefinitions] : []), ...sources]
  }

  find(objects: ClusterObjects, gvr: GroupVersionResource): ResourceDefinition | undefined {
    return (
      this.findBuiltIn(gvr) ??
      this.#findCustom(objects, gvr) ??
      this.#findShared(objects, gvr) ??
      this.#findMembers(gvr)
    )
  }

  findOurs({ group, version, resource }: GroupVersionResource): ResourceDefinition | undefined {
    const name = `${resource}.${group}`
    const found = this.#isOurs(name) ? systemDefinition(name) : undefined
    return found && this.versionOf(found, version)
  }

  load(objects: ClusterObjects, signal: AbortSignal): Promise<void> | undefined {
    const loads = this.#sources.flatMap((source) => source.load(objects, signal) ?? [])
    return loads.length === 0 ? undefined : Promise.all(loads).then(() => undefined)
  }

  shared(objects: ClusterObjects): readonly SharedDefinition[] {
    const found = new Map<string, SharedDefinition>()
    for (const source of this.#sources)
      for (const definition of source.all(objects)) {
        const name = definition.compiled.name
        if (!found.has(name) && !this.#isOwn(objects, name)) found.set(name, definition)
      }
    return [...found.values()]
  }

  #isOwn(objects: ClusterObjects, name: string): boolean {
    return !this.#isOurs(name) && objects.get(crdStorageKey, '', name) !== undefined
  }

  #isOurs(name: string): boolean {
    return this.#hasSharedApis && isSystemDefinition(name)
  }

  sharedDefinition(objects: ClusterObjects, name: string): SharedDefinition | undefined {
    for (const source of this.#sources) {
      const found = source.find(objects, name)
      if (found !== undefined) return found
    }
    return undefined
  }

  #findShared(
    objects: ClusterObjects,
    { group, version, resource }: GroupVersionResource,
  ): ResourceDefinition | undefined {
    const found = this.sharedDefinition(objects, `${resource}.${group}`)
    return found === undefined ? undefined : this.versionOf(found, version)
  }

  /** A version of a shared definition. Its objects can be created while the definition is shared. */
  versionOf({ compiled, isTerminating }: SharedDefinition, version: string): ResourceDefinition | undefined {
    const own = this.#definitionOf(compiled, version)
    if (own === undefined) return undefined
    let definition = this.#sharedVersions.get(own)
    if (definition === undefined) {
      definition = {
        ...own,
        isShared: true,
        strategy: { ...own.strategy, prepareForCreate: this.#requireShared(compiled.name, own) },
      }
      this.#sharedVersions.set(own, definition)
    }
    return isTerminating ? withoutCreate(definition) : definition
  }

  #requireShared(name: string, { info }: ResourceDefinition): NonNullable<Strategy['prepareForCreate']> {
    return (object, { objects }) => {
      if (this.sharedDefinition(objects, name)?.isTerminating === false) return
      throw forbidden(info, object.metadata.name ?? '', 'create not allowed while the resource is being withdrawn')
    }
  }

  variant(): string {
    return this.#hasMembers() ? 'members' : ''
  }

  /** The definition of resource `members`. A tenant's own definition of that name takes precedence. */
  #findMembers({ group, version, resource }: GroupVersionResource): ResourceDefinition | undefined {
    if (resource !== members.resource || group !== members.group || version !== members.version) return undefined
    return this.#hasMembers() ? this.#membersDefinition() : undefined
  }

  #membersDefinition(): ResourceDefinition | undefined {
    if (this.#projected !== undefined) return this.#projected
    const found = this.#definitionOf(compileCrd(membersCrd()), members.version)
    this.#projected = found && { ...found, info: readOnly(found.info), isProjected: true }
    return this.#projected
  }

  findBuiltIn(gvr: GroupVersionResource): ResourceDefinition | undefined {
    const key = `${gvr.resource}.${gvr.version}.${gvr.group}`
    const known = this.#builtIn.get(key)
    if (known !== undefined) return known
    const info = builtInResource(gvr)
    if (info === undefined) return undefined
    const definition: ResourceDefinition = {
      info,
      ...storageOf(info),
      inVersion: (apiVersion) => this.#builtInVersion(info, apiVersion),
      schema: builtInSchema(info),
      ...(info.group === '' ? deprecationOf(info.resource) : {}),
      strategy: this.#strategyOf(info),
    }
    this.#builtIn.set(key, definition)
    return definition
  }

  #strategyOf(info: ResourceInfo): Strategy {
    const strategy = builtInStrategy(info)
    switch (info.resource) {
      case 'customresourcedefinitions':
        return crdStrategy(strategy)
      case 'validatingadmissionpolicies':
        return policyStrategy(strategy, this)
      default:
        return strategy
    }
  }

  /** A built-in resource in another version, which may be in another group: Events are in two groups. */
  #builtInVersion({ resource, group, version }: ResourceInfo, apiVersion: string): ResourceDefinition | undefined {
    const other = this.findBuiltIn({ ...parseApiVersion(apiVersion), resource })
    return other?.storageKey === this.findBuiltIn({ group, version, resource })?.storageKey ? other : undefined
  }

  #findCustom(
    objects: ClusterObjects,
    { group, version, resource }: GroupVersionResource,
  ): ResourceDefinition | undefined {
    const name = `${resource}.${group}`
    const entry = objects.get(crdStorageKey, '', name)
    if (entry === undefined || this.#isOurs(name)) return undefined
    const compiled = this.#compile(entry)
    return compiled === undefined ? undefined : this.#definitionOf(compiled, version)
  }

  /**
   * The definition of a version; undefined if it is not served. `listed`: versions that are listed but not served
   * count, too.
   */
  #definitionOf(compiled: CompiledCrd, version: string, { listed = false } = {}): ResourceDefinition | undefined {
    const isServed = compiled.versions.some(({ info }) => info.version === version)
    return isServed || listed ? this.#listedDefinition(compiled, version) : undefined
  }

  #listedDefinition(compiled: CompiledCrd, version: string): ResourceDefinition | undefined {
    let versions = this.#custom.get(compiled)
    if (versions === undefined) {
      versions = new Map<string, ResourceDefinition>()
      this.#custom.set(compiled, versions)
    }
    const known = versions.get(version)
    if (known !== undefined) return known
    const facts = [...compiled.versions, ...compiled.unserved].find(({ info }) => info.version === version)
    if (facts === undefined) return undefined
    const { info } = facts
    const { storageSchema, changed, conversion, schemas, storageApiVersion } = compiled
    // compileCrd uses one object for equal schemas, so identity is enough.
    const shownAs = facts.schema === storageSchema || conversion !== undefined ? undefined : facts.schema
    const complete =
      conversion === undefined
        ? upgradeOnRead(storageSchema, {
            changed,
            shownAs: facts.schema,
            stored: { schemas, apiVersion: storageApiVersion },
          })
        : upgradeOnRead(facts.schema, { changed })
    const completing = complete === undefined ? {} : { complete }
    const definition: ResourceDefinition = {
      info,
      ...(conversion === undefined ? completing : { conversion: { ...conversion, complete } }),
      inVersion: (apiVersion) => {
        const other = parseApiVersion(apiVersion)
        return other.group === info.group ? this.#definitionOf(compiled, other.version, { listed: true }) : undefined
      },
      storageKey: storageKeyOf(info),
      storageApiVersion: conversion === undefined ? compiled.storageApiVersion : apiVersionOf(info),
      schema: facts.schema,
      strategy: customStrategy({ ...facts, ...(shownAs === undefined ? {} : { storageSchema }) }),
      ...(facts.deprecationWarning === undefined ? {} : { deprecationWarning: facts.deprecationWarning }),
      custom: { columns: facts.columns, ...(facts.scale === undefined ? {} : { scale: facts.scale }) },
    }
    const converted = this.#withVersionConversion(definition, compiled)
    versions.set(version, converted)
    return converted
  }

  /** One of our own kinds in an older version. The write path works on its storage version. */
  #withVersionConversion(definition: ResourceDefinition, compiled: CompiledCrd): ResourceDefinition {
    const { group, resource, version } = definition.info
    const conversion = group === sharedApisGroup ? versionConversions[resource] : undefined
    if (conversion === undefined || version === compiled.storageVersion) return definition
    const stored = this.#listedDefinition(compiled, compiled.storageVersion)
    return stored === undefined ? definition : { ...definition, ...conversion, strategy: stored.strategy }
  }

  equivalents(objects: ClusterObjects, { info, storageKey }: ResourceDefinition): readonly ResourceDefinition[] {
    const others = info.builtIn
      ? builtInVersions(storageKey).map((other) => this.findBuiltIn(other))
      : this.#versionsOfCrd(objects, storageKey).map((version) => this.find(objects, { ...info, version }))
    return others.filter(
      (other): other is ResourceDefinition =>
        other !== undefined && (other.info.version !== info.version || other.info.group !== info.group),
    )
  }

  #versionsOfCrd(objects: ClusterObjects, name: string): readonly string[] {
    const entry = objects.get(crdStorageKey, '', name)
    const compiled = entry === undefined ? this.sharedDefinition(objects, name)?.compiled : this.#compile(entry)
    return compiled?.versions.map(({ info }) => info.version) ?? []
  }

  all(objects: ClusterObjects): readonly ResourceInfo[] {
    const infos = [...builtInResources()]
    for (const { compiled } of this.documented(objects)) infos.push(...compiled.resourceInfos)
    return infos
  }

  documented(objects: ClusterObjects): readonly DocumentedCrd[] {
    const own = this.crds(objects).map(({ entry, compiled }) => ({
      compiled,
      read: () => decodeObject(entry.bytes) as KubeObject & CustomResourceDefinition,
    }))
    const isShown = this.#hasMembers() && this.find(objects, members)?.isProjected === true
    const projected = isShown ? [{ compiled: compiledMembers(), read: membersCrd }] : []
    return [...own, ...this.shared(objects), ...projected]
  }

  async compileInTurns(objects: ClusterObjects, turn: () => Promise<void>, signal: AbortSignal): Promise<void> {
    await this.load(objects, signal)
    for (const entry of objects.list({ resource: crdStorageKey }))
      if (!this.#compiled.has(entry)) {
        this.#compile(entry)
        await turn()
      }
  }

  crds(objects: ClusterObjects): readonly ServedCrd[] {
    return objects.list({ resource: crdStorageKey }).flatMap((entry) => {
      const compiled = this.#compile(entry)
      return compiled === undefined ? [] : [{ entry, compiled }]
    })
  }

  /** The compiled CRD; undefined if its names were not accepted, so that it is not served. */
  #compile(entry: Entry): CompiledCrd | undefined {
    if (this.#compiled.has(entry)) return this.#compiled.get(entry)
    const { name } = entry.key
    const known = entry.base ? this.#compiledBase.get(name) : undefined
    const compiled = known ?? compileEntry(entry)
    if (entry.base) this.#compiledBase.set(name, compiled)
    this.#compiled.set(entry, compiled)
    return compiled
  }
}

function withoutCreate(definition: ResourceDefinition): ResourceDefinition {
  const { info } = definition
  return { ...definition, info: { ...info, verbs: info.verbs.filter((verb) => verb !== 'create') } }
}

const membersCrd = (): CustomResourceDefinition => memberCrd() as unknown as CustomResourceDefinition
const readOnly = (info: ResourceInfo): ResourceInfo => ({ ...info, verbs: ['get', 'list', 'watch'], subresources: [] })

/**
 * The definition of `members` for documents. Its hash differs from the hash of every definition that a tenant can
 * write.
 */
function compiledMembers(): CompiledCrd {
  const compiled = compileCrd(membersCrd())
  const versions = compiled.versions.map((version) => ({ ...version, info: readOnly(version.info) }))
  return { ...compiled, hash: `${compiled.hash} read only`, versions, resourceInfos: versions.map(({ info }) => info) }
}

function compileEntry(entry: Entry): CompiledCrd | undefined {
  const crd = decodeObject(entry.bytes) as KubeObject & CustomResourceDefinition
  return isEstablished(crd) ? compileCrd(crd) : undefined
}

let versionsByStorage: ReadonlyMap<string, readonly ResourceInfo[]> | undefined

/** The built-in resource versions that are stored under this key. */
function builtInVersions(storageKey: string): readonly ResourceInfo[] {
  versionsByStorage ??= Map.groupBy(builtInResources(), (info) => storageOf(info).storageKey)
  return versionsByStorage.get(storageKey) ?? []
}

const deprecated: Readonly<Record<string, string>> = {
  componentstatuses: 'v1 ComponentStatus is deprecated in v1.19+',
  endpoints: 'v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice',
}

function deprecationOf(resource: string): { deprecationWarning?: string } {
  const deprecationWarning = deprecated[resource]
  return deprecationWarning === undefined ? {} : { deprecationWarning }
}
