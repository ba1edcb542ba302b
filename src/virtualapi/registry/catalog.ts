// What a logical cluster serves: the built-in resources, and what its CustomResourceDefinitions add.
import { apiVersionOf, type GroupVersionResource, type KubeObject } from '../../apimachinery/meta/index.ts'
import type { ClusterObjects, Entry } from '../../store/hub/index.ts'
import { builtInResource, builtInResources } from './builtin-resources.ts'
import { builtInSchema } from './builtin-schemas.ts'
import { compileCrd, type CompiledCrd, type CustomResourceDefinition } from './crds/index.ts'
import { customStrategy } from './custom-strategy.ts'
import { decodeObject } from './object-bytes.ts'
import { storageKeyOf, type ResourceDefinition } from './resource-definition.ts'
import type { ResourceInfo } from './resource-info.ts'
import { storageOf } from './strategies/conversions.ts'
import { builtInStrategy } from './strategies/index.ts'

export const crdStorageKey = 'customresourcedefinitions.apiextensions.k8s.io'

export class Catalog {
  private readonly builtIn = new Map<string, ResourceDefinition>()
  // A CRD is compiled when its bytes are first asked for; an unchanged one is the same Entry.
  private readonly compiled = new WeakMap<Entry, CompiledCrd>()
  private readonly custom = new WeakMap<CompiledCrd, Map<string, ResourceDefinition>>()

  /** The resource of this name and version in this logical cluster, or undefined where it serves none. */
  find(objects: ClusterObjects, gvr: GroupVersionResource): ResourceDefinition | undefined {
    return this.findBuiltIn(gvr) ?? this.findCustom(objects, gvr)
  }

  /** The resource if it is built in: the same in every logical cluster. */
  findBuiltIn(gvr: GroupVersionResource): ResourceDefinition | undefined {
    const key = `${gvr.resource}.${gvr.version}.${gvr.group}`
    const known = this.builtIn.get(key)
    if (known !== undefined) return known
    const info = builtInResource(gvr)
    if (info === undefined) return undefined
    const definition: ResourceDefinition = {
      info,
      ...storageOf(info),
      schema: builtInSchema(info),
      strategy: builtInStrategy(info),
    }
    this.builtIn.set(key, definition)
    return definition
  }

  private findCustom(
    objects: ClusterObjects,
    { group, version, resource }: GroupVersionResource,
  ): ResourceDefinition | undefined {
    const entry = objects.get(crdStorageKey, '', `${resource}.${group}`)
    if (entry === undefined) return undefined
    const compiled = this.compile(entry)
    if (!compiled.served) return undefined
    return this.definitionOf(compiled, version)
  }

  private definitionOf(compiled: CompiledCrd, version: string): ResourceDefinition | undefined {
    let versions = this.custom.get(compiled)
    if (versions === undefined) this.custom.set(compiled, (versions = new Map()))
    const known = versions.get(version)
    if (known !== undefined) return known
    const facts = compiled.versions.get(version)
    if (facts === undefined) return undefined
    const { info } = facts
    const definition: ResourceDefinition = {
      info,
      storageKey: storageKeyOf(info),
      storageApiVersion: apiVersionOf({ group: info.group, version: compiled.storageVersion }),
      schema: facts.schema,
      strategy: customStrategy(facts),
      custom: { columns: facts.columns, ...(facts.scale === undefined ? {} : { scale: facts.scale }) },
    }
    versions.set(version, definition)
    return definition
  }

  /** All that this logical cluster serves, for discovery. */
  all(objects: ClusterObjects): readonly ResourceInfo[] {
    const infos = [...builtInResources()]
    for (const crd of this.crds(objects)) if (crd.served) for (const { info } of crd.versions.values()) infos.push(info)
    return infos
  }

  /** The compiled CustomResourceDefinitions of this logical cluster. */
  crds(objects: ClusterObjects): readonly CompiledCrd[] {
    return objects.list({ resource: crdStorageKey }).map((entry) => this.compile(entry))
  }

  private compile(entry: Entry): CompiledCrd {
    const known = this.compiled.get(entry)
    if (known !== undefined) return known
    const compiled = compileCrd(decodeObject(entry.bytes) as KubeObject & CustomResourceDefinition)
    this.compiled.set(entry, compiled)
    return compiled
  }
}
