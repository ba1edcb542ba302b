// The resources of a logical cluster of its own: the built-in ones, and what its CustomResourceDefinitions add.
import { parseApiVersion, type GroupVersionResource, type KubeObject } from '../../apimachinery/meta/index.ts'
import type { ClusterObjects, Entry } from '../../store/hub/index.ts'
import { builtInResource, builtInResources } from '../resources/builtin-resources.ts'
import { builtInSchema } from '../resources/builtin-schemas.ts'
import type { Catalog, ServedCrd } from './catalog.ts'
import { crdStorageKey, crdStrategy } from '../apiextensions/crd-strategy.ts'
import { compileCrd, isEstablished, type CompiledCrd, type CustomResourceDefinition } from '../apiextensions/index.ts'
import { customStrategy } from '../apiextensions/custom-strategy.ts'
import { upgradeOnRead } from '../resources/upgrade-on-read.ts'
import { decodeObject } from '../resources/object-bytes.ts'
import { storageKeyOf, type ResourceDefinition } from '../resources/resource-definition.ts'
import type { ResourceInfo } from '../resources/resource-info.ts'
import { storageOf } from '../kinds/conversions.ts'
import { builtInStrategy } from '../kinds/index.ts'

export class ClusterCatalog implements Catalog {
  private readonly builtIn = new Map<string, ResourceDefinition>()
  // A CRD is compiled on first use. The hub keeps the same Entry while a CRD does not change, so Entry can be the key.
  private readonly compiled = new WeakMap<Entry, CompiledCrd | undefined>()
  private readonly custom = new WeakMap<CompiledCrd, Map<string, ResourceDefinition>>()

  find(objects: ClusterObjects, gvr: GroupVersionResource): ResourceDefinition | undefined {
    return this.findBuiltIn(gvr) ?? this.findCustom(objects, gvr)
  }

  findBuiltIn(gvr: GroupVersionResource): ResourceDefinition | undefined {
    const key = `${gvr.resource}.${gvr.version}.${gvr.group}`
    const known = this.builtIn.get(key)
    if (known !== undefined) return known
    const info = builtInResource(gvr)
    if (info === undefined) return undefined
    const definition: ResourceDefinition = {
      info,
      ...storageOf(info),
      inVersion: (apiVersion) => this.builtInVersion(info, apiVersion),
      schema: builtInSchema(info),
      ...(info.group === '' ? deprecationOf(info.resource) : {}),
      strategy:
        info.resource === 'customresourcedefinitions' ? crdStrategy(builtInStrategy(info)) : builtInStrategy(info),
    }
    this.builtIn.set(key, definition)
    return definition
  }

  /** A built-in resource in another version, which may be of another group: Events are in two. */
  private builtInVersion(
    { resource, group, version }: ResourceInfo,
    apiVersion: string,
  ): ResourceDefinition | undefined {
    const other = this.findBuiltIn({ ...parseApiVersion(apiVersion), resource })
    return other?.storageKey === this.findBuiltIn({ group, version, resource })?.storageKey ? other : undefined
  }

  private findCustom(
    objects: ClusterObjects,
    { group, version, resource }: GroupVersionResource,
  ): ResourceDefinition | undefined {
    const entry = objects.get(crdStorageKey, '', `${resource}.${group}`)
    if (entry === undefined) return undefined
    const compiled = this.compile(entry)
    return compiled === undefined ? undefined : this.definitionOf(compiled, version)
  }

  private definitionOf(compiled: CompiledCrd, version: string): ResourceDefinition | undefined {
    let versions = this.custom.get(compiled)
    if (versions === undefined) {
      versions = new Map<string, ResourceDefinition>()
      this.custom.set(compiled, versions)
    }
    const known = versions.get(version)
    if (known !== undefined) return known
    const facts = compiled.versions.find(({ info }) => info.version === version)
    if (facts === undefined) return undefined
    const { info } = facts
    const { storageSchema, changed } = compiled
    // compileCrd uses one object for equal schemas, so identity is enough.
    const shownAs = facts.schema === storageSchema ? undefined : facts.schema
    const complete = upgradeOnRead(storageSchema, { changed, shownAs })
    const definition: ResourceDefinition = {
      info,
      ...(complete === undefined ? {} : { complete }),
      inVersion: (apiVersion) => {
        const other = parseApiVersion(apiVersion)
        return other.group === info.group ? this.definitionOf(compiled, other.version) : undefined
      },
      storageKey: storageKeyOf(info),
      storageApiVersion: compiled.storageApiVersion,
      schema: facts.schema,
      strategy: customStrategy({ ...facts, ...(shownAs === undefined ? {} : { storageSchema }) }),
      ...(facts.deprecationWarning === undefined ? {} : { deprecationWarning: facts.deprecationWarning }),
      custom: { columns: facts.columns, ...(facts.scale === undefined ? {} : { scale: facts.scale }) },
    }
    versions.set(version, definition)
    return definition
  }

  equivalents(objects: ClusterObjects, { info, storageKey }: ResourceDefinition): readonly ResourceDefinition[] {
    const others = info.builtIn
      ? builtInVersions(storageKey).map((other) => this.findBuiltIn(other))
      : this.versionsOfCrd(objects, storageKey).map((version) => this.findCustom(objects, { ...info, version }))
    return others.filter(
      (other): other is ResourceDefinition =>
        other !== undefined && (other.info.version !== info.version || other.info.group !== info.group),
    )
  }

  private versionsOfCrd(objects: ClusterObjects, name: string): readonly string[] {
    const entry = objects.get(crdStorageKey, '', name)
    const compiled = entry && this.compile(entry)
    return compiled?.versions.map(({ info }) => info.version) ?? []
  }

  all(objects: ClusterObjects): readonly ResourceInfo[] {
    const infos = [...builtInResources()]
    for (const { compiled } of this.crds(objects)) infos.push(...compiled.resourceInfos)
    return infos
  }

  crds(objects: ClusterObjects): readonly ServedCrd[] {
    return objects.list({ resource: crdStorageKey }).flatMap((entry) => {
      const compiled = this.compile(entry)
      return compiled === undefined ? [] : [{ entry, compiled }]
    })
  }

  /** Undefined if the names of the CRD were not accepted: then nothing is served. */
  private compile(entry: Entry): CompiledCrd | undefined {
    if (this.compiled.has(entry)) return this.compiled.get(entry)
    const crd = decodeObject(entry.bytes) as KubeObject & CustomResourceDefinition
    const compiled = isEstablished(crd) ? compileCrd(crd) : undefined
    this.compiled.set(entry, compiled)
    return compiled
  }
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
