// The CustomResourceDefinition of a member as logical clusters get it. Pure.
import { cloneJson, type KubeObject } from '#apimachinery/meta/index.ts'
import { exportedFromLabel } from '#crds/index.ts'

const approval = 'api-approved.kubernetes.io'
const maxBytes = 1024 * 1024

interface Version {
  readonly name: string
  readonly storage: boolean
  readonly subresources?: { readonly status?: object; readonly scale?: object }
}
interface DefinitionSpec {
  readonly group: string
  readonly scope: string
  readonly names: object
  readonly versions: readonly Version[]
  readonly conversion?: { readonly strategy?: string }
}

export type DefinitionUp =
  | { readonly problem: string }
  | {
      readonly definition: KubeObject
      /** The version in which objects are synced. */
      readonly version: string
      readonly hasStatus: boolean
    }

/**
 * The definition for logical clusters, or why there is none. Where the member converts by a webhook, which only its own
 * API server can call, the stored version alone is offered.
 */
export function definitionUp(live: KubeObject, member: string): DefinitionUp {
  const { name = '', annotations } = live.metadata
  const { group, scope, names, versions, conversion } = cloneJson(live['spec']) as DefinitionSpec
  if (scope !== 'Namespaced') return { problem: `${name} is cluster-scoped: only namespaced resources are exported` }
  const stored = versions.find(({ storage }) => storage)
  if (stored === undefined) return { problem: `${name} has no stored version` }
  if (JSON.stringify(versions).length > maxBytes) return { problem: `the schema of ${name} has more than 1 MiB` }
  const approved = annotations?.[approval]
  const definition: KubeObject = {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: {
      name,
      labels: { [exportedFromLabel]: member },
      ...(approved !== undefined && { annotations: { [approval]: approved } }),
    },
    spec: { group, scope, names, versions: conversion?.strategy === 'Webhook' ? [stored] : versions },
  }
  return { definition, version: stored.name, hasStatus: stored.subresources?.status !== undefined }
}
